from __future__ import annotations

import pytest

from uphold.core.events import Note, Recorded
from uphold.core.statuses import State
from uphold.errors import Malformed
from uphold.journal.rows import event_row, rows_of, slot_row, storable, worker_row
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, entry, news, status


def test_an_event_becomes_its_columns_in_order():
    assert event_row(news(7)) == (
        7,
        "e-7",
        "worker.connected",
        "worker",
        "api",
        "2026-02-05T14:30:22.000Z",
        "info",
        '{"slot":"api","generation":1,"pid":42}',
        "order-1",
    )


@pytest.mark.accepts("B-79", "C-131")
@pytest.mark.parametrize("sign", ["w", "ü", "\U0001f680", "\udc80"])
def test_a_summary_is_never_longer_than_its_column_and_is_cut_between_characters(owner, sign):
    summary = worker_row(status(why=sign * 5000), owner)[6]
    assert len(summary) == 255
    assert summary.encode().decode() == summary


@pytest.mark.accepts("O-32")
def test_a_worker_row_says_what_people_want_to_know(owner):
    assert worker_row(status(error=None), owner) == (
        "api",
        "2026-02-05T14:30:16.000Z",
        42,
        "host-1",
        "running",
        None,
        "up and ready",
        "supervisor-1",
        "process",
        None,
        "running",
        "healthy",
        3,
        5,
    )
    failed = worker_row(status(state=State.FAILED, identity=None, terms=None), owner)
    assert (failed[2], failed[4], failed[11]) == (None, "error", "unhealthy")


def test_halves_of_characters_do_not_stop_the_writing(owner):
    odd = "caf\udce9"
    note = Note(type="x", entity_type="file", entity_id=odd, payload={odd: odd})
    batch = Batch(
        events=[Recorded(seq=1, id="1", at=0.0, event=note)],
        slots=[status(why=odd)],
        meta={odd: odd},
    )
    rows = rows_of(batch, boot_id=BOOT, owner=owner)
    for table in rows[:8]:
        for row in table:
            assert all(not isinstance(value, str) or value.encode() for value in row)
    assert storable(odd) == "caf\\udce9"
    assert storable("größe") == "größe"


def test_what_cannot_be_written_is_refused_before_any_transaction(owner):
    for batch in (
        Batch(meta={"journal.audit_head": "forged"}),
        Batch(events=["not an event"]),
        Batch(audit=[entry(1), None]),
        Batch(slots=[None]),
    ):
        with pytest.raises(Malformed):
            rows_of(batch, boot_id=BOOT, owner=owner)


def test_a_slot_row_keeps_apart_what_finding_a_process_needs():
    row = slot_row(status(), BOOT)
    assert row[:5] == ("api", BOOT, "running", 3, "nonce-42")
