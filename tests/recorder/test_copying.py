"""Copying a journal: everything once, in order, whoever dies when."""

from __future__ import annotations

import json
import os

import pytest
from sqlalchemy import event as happening

from recorder.ledgers import (
    Copy,
    Desk,
    alter,
    assert_same,
    entry,
    event,
    job,
    original,
    some,
    write,
)
from uphold.errors import StoreUnavailable
from uphold.journal.audit import BEGINNING as FIRST_HASH
from uphold.journal.audit import COLUMNS, chained
from uphold.journal.outgoing import BEGINNING
from uphold.ports.journals import Batch


@pytest.fixture
def desk(tmp_path, url):
    made = Desk(tmp_path, url)
    yield made
    made.store.close()


@pytest.fixture
def copy(server, url):
    return Copy(server, url)


@pytest.mark.accepts("P10", "P18")
def test_everything_is_copied_once_and_in_order(desk, copy):
    write(desk.journal, some(1, 300), some(301, 45))
    step = desk.copy(at_once=100)
    assert_same(copy, desk.journal)
    assert (step.place.lost, step.place.set_aside) == (0, 0)
    assert desk.copy().rows == 0
    assert_same(copy, desk.journal)


def test_what_comes_later_is_added_and_jobs_are_as_they_are_now(desk, copy):
    write(desk.journal, some(1, 3))
    desk.copy()
    write(desk.journal, some(4, 2), Batch(jobs=[job(2, "succeeded"), job(4, "failed")]))
    desk.copy()
    assert_same(copy, desk.journal)
    assert copy.jobs()["job_20260205_000002"] == "succeeded"


@pytest.mark.accepts("P10")
def test_the_chain_of_the_audit_can_be_verified_in_the_copy(desk, copy):
    odd = entry(3, actor="Zoë \N{GRINNING FACE}", details={"reason": "näh\n\t'quoted' \\ %s {x}"})
    write(desk.journal, some(1, 2), Batch(audit=[odd], durable=True))
    desk.copy()
    stored = ", ".join(column for column in COLUMNS if column != "created_at")
    before = FIRST_HASH
    times = original(desk.journal, "SELECT created_at FROM audit_log_t ORDER BY rowid")
    rows = copy.rows(f"SELECT {stored}, prev_hash, hash FROM audit_log_t ORDER BY position")
    assert len(rows) == 3
    for (*content, previous, digest), (at,) in zip(rows, times, strict=True):
        content.insert(COLUMNS.index("created_at"), at)
        assert previous == before
        assert digest == chained(tuple(content), previous)
        before = digest


def test_times_are_real_times_in_utc(desk, copy, server):
    write(desk.journal, some(1, 1))
    desk.copy()
    ((at,),) = copy.rows("SELECT timestamp FROM events_t")
    assert at.replace(tzinfo=None).isoformat(timespec="milliseconds") == "2026-02-05T14:30:15.001"


@pytest.mark.accepts("P10", "P18", "T04")
def test_only_what_is_on_the_disk_itself_is_copied(desk, copy):
    later = Batch(events=[event(3)], audit=[entry(3)], jobs=[job(3)])
    write(desk.journal, some(1, 2), later, close=False)
    desk.copy()
    assert copy.events() == [1, 2]
    assert len(copy.audit()) == len(copy.jobs()) == 2
    write(desk.journal, Batch(durable=True), close=False)
    desk.copy()
    assert_same(copy, desk.journal)


@pytest.mark.accepts("P18")
def test_events_that_were_gone_before_they_were_copied_are_counted(desk, copy):
    write(desk.journal, some(1, 10))
    desk.copy()
    write(desk.journal, some(11, 10))
    alter(desk.journal, "DELETE FROM events_t WHERE seq BETWEEN 11 AND 15 OR seq = 18")
    step = desk.copy(at_once=2)
    assert step.place.lost == 6
    assert copy.events() == [*range(1, 11), 16, 17, 19, 20]
    assert "5 events were gone before they could be copied" in desk.lines
    assert desk.copy().place.lost == 6  # it is not forgotten


def test_what_a_gap_tells_of_was_never_there_and_is_not_counted(desk, copy):
    gap = {"type": "gap", "entity_type": "supervisor", "entity_id": "journal"}
    write(desk.journal, some(1, 2))
    desk.copy()
    told = event(9, **gap, payload={"from_seq": 3, "to_seq": 9})
    write(desk.journal, Batch(events=[told], durable=True))
    assert desk.copy().place.lost == 0


def test_numbers_skipped_after_a_power_cut_are_not_counted(desk, copy):
    write(desk.journal, some(1, 2), close=False)
    desk.copy()
    write(desk.journal, some(1_000_003, 2), boot_id="boot-2")
    assert desk.copy().place.lost == 0
    assert copy.events() == [1, 2, 1_000_003, 1_000_004]


def test_a_journal_that_began_anew_is_copied_from_its_beginning(desk, copy):
    write(desk.journal, some(1, 5))
    desk.copy()
    desk.journal.unlink()
    fresh = [
        Batch(
            events=[event(n) for n in range(1, 9)],
            audit=[entry(n, id=f"other_{n}") for n in range(1, 9)],
            durable=True,
        )
    ]
    for each in fresh[0].events:
        object.__setattr__(each, "id", f"99999999-{each.seq}")
    write(desk.journal, *fresh)
    step = desk.copy()
    assert step.place.lost == 0
    assert len(copy.events()) == 5 + 8
    assert len(copy.audit()) == 5 + 8
    assert "the journal has begun anew: all of it is copied" in desk.lines


def test_audit_positions_that_began_again_leave_nothing_out(desk, copy):
    write(desk.journal, some(1, 5))
    desk.copy()
    alter(desk.journal, "DELETE FROM audit_log_t")
    write(desk.journal, Batch(audit=[entry(6), entry(7)], durable=True))
    desk.copy()
    assert sorted(copy.audit()) == [f"job_20260205_{n:06}" for n in range(1, 8)]


@pytest.mark.accepts("P18")
def test_a_replay_brings_back_what_is_missing_and_makes_nothing_twice(desk, copy, server, url):
    write(desk.journal, some(1, 30))
    desk.copy()
    database = url.rpartition("/")[2]
    server.run("DELETE FROM events_t WHERE seq > 10", database)
    server.run("DELETE FROM audit_log_t", database)
    assert desk.copy().rows == 0  # as far as it knows all is there
    cursor, rows = BEGINNING, 0
    while True:
        step, cursor = desk.copier.replay(cursor, at_once=7)
        rows += step.rows
        if not step.full:
            break
    assert rows == 90
    assert_same(copy, desk.journal)
    assert desk.copy().rows == 0


@pytest.mark.accepts("P18", "B-66", "B-79")
def test_rows_that_do_not_fit_are_cut_or_written_plainly_and_hold_nobody_up(
    tmp_path, server, url, copy
):
    """Somebody else's tables: short columns, and no signs beyond the simplest."""
    narrow = "latin1" if server.kind == "MariaDB" else None
    charset = f" CHARACTER SET {narrow}" if narrow else ""
    database = url.rpartition("/")[2]
    server.run(
        "CREATE TABLE audit_log_t (audit_id VARCHAR(64) PRIMARY KEY,"
        f" actor VARCHAR(10), details_json TEXT){charset}",
        database,
    )
    long = {"origin": "cli", "reason": "x" * 70_000}
    write(
        tmp_path / "journal.db",
        Batch(
            audit=[
                entry(1),
                entry(2, actor="a very long name indeed"),
                entry(3, actor="\N{GRINNING FACE} Zoë", details=long),
                entry(4, actor="nul\0nul"),
                entry(5),
            ],
            events=[event(1, payload={"why": "\0 \N{GRINNING FACE} " + "y" * 100_000})],
            durable=True,
        ),
    )
    desk = Desk(tmp_path, url)
    step = desk.copy()
    assert step.place.set_aside == 0
    assert len(copy.audit()) == 5
    ((payload,),) = copy.rows("SELECT payload FROM events_t")
    assert json.loads(payload)["why"].endswith("y" * 100_000)
    assert any("cut actor of job_20260205_000002" in line for line in desk.lines)


@pytest.mark.accepts("P18")
def test_a_row_that_is_refused_for_itself_is_set_aside_counted_and_told(tmp_path, server, url):
    database = url.rpartition("/")[2]
    server.run(
        "CREATE TABLE audit_log_t (audit_id VARCHAR(64) PRIMARY KEY,"
        " actor VARCHAR(50) CHECK (actor <> 'mallory'))",
        database,
    )
    lines = [entry(n, actor="mallory" if n in (3, 7) else "maria") for n in range(1, 11)]
    write(tmp_path / "journal.db", Batch(audit=lines, events=[event(1)], durable=True))
    desk, copy = Desk(tmp_path, url), Copy(server, url)
    step = desk.copy()
    assert step.place.set_aside == 2
    assert len(copy.audit()) == 8
    assert copy.events() == [1]
    kept = [json.loads(line) for line in (desk.spool / "refused.jsonl").read_text().splitlines()]
    assert [each["row"]["position"] for each in kept] == [3, 7]
    assert sum("audit_log_t refused a row" in line for line in desk.lines) == 2
    assert desk.copy().rows == 0


@pytest.mark.accepts("P18")
def test_a_table_that_refuses_everything_is_told_and_nothing_is_set_aside(tmp_path, server, url):
    database = url.rpartition("/")[2]
    server.run(
        "CREATE TABLE audit_log_t (audit_id VARCHAR(64) PRIMARY KEY,"
        " actor VARCHAR(50) CHECK (actor = 'nobody'))",
        database,
    )
    write(tmp_path / "journal.db", some(1, 5))
    desk, copy = Desk(tmp_path, url), Copy(server, url)
    with pytest.raises(StoreUnavailable) as told:
        desk.copy()
    assert told.value.code == "UPH_STORE_SCHEMA"
    assert not (desk.spool / "refused.jsonl").exists()
    assert copy.events() == []


@pytest.mark.accepts("T04", "T13", "P10")
def test_killed_between_any_two_statements_it_leaves_nothing_out_and_nothing_twice(
    tmp_path, server, url
):
    journal, copy = tmp_path / "journal.db", Copy(server, url)
    write(journal, some(1, 40))
    at = 0
    while _copy_and_die(tmp_path, url, at):
        at += 1
        # A little was committed, or nothing was; and it goes on from there.
        events, audit = copy.rows("SELECT seq FROM events_t ORDER BY seq"), copy.audit()
        assert [seq for (seq,) in events] == list(range(1, len(events) + 1))
        assert len(audit) == len(events)
    assert at > 10
    assert_same(copy, journal)


def _copy_and_die(folder, url, at):
    """Copy in a process that is killed before its statement number `at`; True if it was."""
    child = os.fork()
    if child:
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    try:
        desk = Desk(folder, url)
        desk.copier.prepare()
        count = 0

        def die(*_):
            nonlocal count
            count += 1
            if count > at:
                os.kill(os.getpid(), 9)

        engine = desk.store._engine
        for moment in ("before_cursor_execute", "after_cursor_execute", "commit"):
            happening.listen(engine, moment, die)
        desk.copy(at_once=15)
    finally:
        os._exit(0)


@pytest.mark.accepts("P18")
def test_a_server_that_takes_small_packets_only_gets_all_rows(tmp_path, mariadb):
    url = mariadb.fresh()
    (before,) = mariadb.run("SELECT @@global.max_allowed_packet")
    mariadb.run("SET GLOBAL max_allowed_packet = 65536")
    try:
        large = [
            event(n, payload={"why": "x'" * (40_000 if n == 3 else 3_000)}) for n in range(1, 60)
        ]
        write(tmp_path / "journal.db", some(60, 400), Batch(events=large, durable=True))
        desk = Desk(tmp_path, url)
        assert desk.copy().place.set_aside == 0
        copy = Copy(mariadb, url)
        assert_same(copy, tmp_path / "journal.db")
        ((payload,),) = copy.rows("SELECT payload FROM events_t WHERE seq = 3")
        assert json.loads(payload)["cut"] is True
        assert "cut payload of abcdef01-3 to fit into events_t" in desk.lines
    finally:
        mariadb.run(f"SET GLOBAL max_allowed_packet = {before[0]}")


@pytest.mark.accepts("P10")
def test_a_line_of_the_audit_whose_key_another_supervisor_has_taken_is_not_lost(
    desk, copy, server, url
):
    write(desk.journal, some(1, 4))
    desk.copier.prepare()
    database = url.rpartition("/")[2]
    server.run(
        "INSERT INTO audit_log_t (audit_id, supervisor_id, actor)"
        " VALUES ('job_20260205_000002', 'another', 'theirs')",
        database,
    )
    desk.copy()
    rows = copy.rows("SELECT audit_id, supervisor_id, actor FROM audit_log_t ORDER BY audit_id")
    assert ("job_20260205_000002", "another", "theirs") in rows
    ours = [row for row in rows if row[1] == "supervisor-1"]
    assert len(ours) == 4
    assert sum(row[0].startswith("job_20260205_000002@") for row in ours) == 1
    assert desk.copy().rows == 0
    desk.copier.replay(BEGINNING)
    assert len(copy.audit()) == 5
