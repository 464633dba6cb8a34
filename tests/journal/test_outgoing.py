"""What is to be copied of a journal: rows after a place, and only durable ones."""

from __future__ import annotations

import pytest

from recorder.ledgers import ME, alter, entry, event, job, some, write
from uphold.errors import StoreUnavailable
from uphold.journal import outgoing
from uphold.journal.outgoing import BEGINNING, Cursor, Outgoing
from uphold.ports.journals import Batch


@pytest.fixture
def reading(path):
    with Outgoing(path) as journal:
        yield journal


def test_rows_come_in_order_after_a_place(path, reading):
    write(path, some(1, 5))
    assert reading.supervisor_id() == ME
    assert [row["seq"] for row in reading.events_after(2, 4, 10)] == [3, 4]
    assert [row["position"] for row in reading.audit_after(0, 5, 2)] == [1, 2]
    assert [row["rev"] for row in reading.jobs_after(3, 5, 10)] == [4, 5]


@pytest.mark.accepts("P10")
def test_only_what_the_disk_itself_has_is_durable_until_the_journal_is_closed(path, reading):
    later = Batch(events=[event(3)], audit=[entry(3)], jobs=[job(3), job(1, "failed")])
    write(path, some(1, 2), later, close=False)
    assert reading.durable() == Cursor(events=2, audit=2, jobs=2)
    assert reading.waiting(BEGINNING).rows == 5  # the first job has changed since, and waits too
    reading.close()
    write(path)
    durable = reading.durable()
    assert (durable.events, durable.audit) == (3, 5)  # two jobs were interrupted, and are told so
    assert durable.jobs >= 4


def test_what_waits_is_counted_with_its_age(path, reading):
    write(path, some(1, 4))
    waiting = reading.waiting(Cursor(events=1, audit=3, jobs=4))
    assert (waiting.events, waiting.audit, waiting.jobs) == (3, 1, 0)
    assert waiting.oldest == "2026-02-05T14:30:15.002Z"
    nothing = reading.waiting(Cursor(events=4, audit=4, jobs=4))
    assert (nothing.rows, nothing.oldest) == (0, None)


def test_a_place_is_gone_on_from_as_long_as_the_same_rows_stand_there(path, reading):
    write(path, some(1, 4))
    there = Cursor(events=4, event_id="abcdef01-4", audit=4, audit_id="job_20260205_000004", jobs=4)
    assert reading.resumed(there) == there
    assert reading.resumed(BEGINNING) == BEGINNING


@pytest.mark.parametrize(
    "place",
    [
        Cursor(events=4, event_id="99999999-4", audit=4, audit_id="job_20260205_000004"),
        Cursor(events=9, event_id="abcdef01-9", audit=4, audit_id="job_20260205_000004"),
    ],
)
def test_another_journal_is_read_from_its_beginning(path, reading, place):
    write(path, some(1, 4))
    assert reading.resumed(place) == BEGINNING


def test_positions_of_the_audit_that_began_again_are_noticed(path, reading):
    write(path, some(1, 4))
    alter(path, "DELETE FROM audit_log_t")
    write(path, Batch(audit=[entry(5)], durable=True))
    last = Cursor(events=4, event_id="abcdef01-4", audit=4, audit_id="job_20260205_000004", jobs=4)
    went_on = reading.resumed(last)
    assert (went_on.events, went_on.audit, went_on.jobs) == (4, 0, 4)


def test_what_was_pruned_meanwhile_does_not_send_anybody_back(path, reading):
    write(path, some(1, 9))
    alter(path, "DELETE FROM events_t WHERE seq < 8")
    last = Cursor(events=4, event_id="abcdef01-4", audit=9, audit_id="job_20260205_000009", jobs=9)
    assert reading.resumed(last) == last


def test_of_large_rows_only_some_are_read_at_once(path, reading, monkeypatch):
    monkeypatch.setattr(outgoing, "_ROOM", 10_000)
    large = [event(n, payload={"why": "x" * 6000}) for n in range(1, 8)]
    write(path, Batch(events=large, durable=True))
    assert [row["seq"] for row in reading.events_after(0, 7, 100)] == [1, 2]
    assert [row["seq"] for row in reading.events_after(2, 7, 100)] == [3, 4]


def test_a_journal_of_an_older_version_can_be_copied_too(path, reading):
    write(path, some(1, 3))
    alter(
        path,
        "DROP TRIGGER jobs_begin",
        "DROP TRIGGER jobs_change",
        "DROP INDEX jobs_by_rev",
        "ALTER TABLE jobs_t DROP COLUMN rev",
    )
    assert len(reading.jobs_after(0, reading.durable().jobs, 10)) == 3


def test_the_supervisors_own_row_is_read_with_its_host(path, reading):
    write(path, some(1, 1))
    row = reading.supervisor_row()
    assert (row["id"], row["name"], row["hostname"]) == (ME, "orion", "host-1")


def test_where_there_is_no_journal_that_is_said(reading):
    with pytest.raises(StoreUnavailable, match="no journal"):
        reading.durable()
