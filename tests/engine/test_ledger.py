from __future__ import annotations

import asyncio

import pytest

from uphold.core.events import Note
from uphold.core.statuses import SlotStatus
from uphold.engine import ledger as ledgers
from uphold.engine.ledger import Ledger, merge_without_news
from uphold.errors import StoreUnavailable
from uphold.ports.journals import AuditEntry, Batch, JobRow
from uphold.testing.clocks import FakeClock
from uphold.testing.journals import MemoryJournal


def note():
    return Note(type="x", entity_type="worker", entity_id="w")


def made():
    journal = MemoryJournal()
    return journal, Ledger(journal=journal, clock=FakeClock(), last_seq=0, origin="abc")


async def seqs(journal):
    return [event["seq"] for event in await journal.events(limit=1000)]


@pytest.mark.accepts("P14")
def test_what_could_not_be_written_is_written_before_the_next_in_order():
    async def go():
        journal, ledger = made()
        journal.unavailable = True
        for _ in range(3):
            assert not await ledger.write(Batch(events=ledger.number([note()])))
        assert ledger.trouble
        assert not await ledger.retry()
        journal.unavailable = False
        assert await ledger.write(Batch(events=ledger.number([note()])))
        assert ledger.trouble is None
        assert await seqs(journal) == [1, 2, 3, 4]

    asyncio.run(go())


@pytest.mark.accepts("P14", "T10")
def test_an_order_takes_along_what_was_kept_and_asks_for_the_same_room():
    """What waits before it would otherwise be refused the room that is kept back for orders."""

    class OnlyDurable(MemoryJournal):
        async def append(self, batch):
            if not batch.durable:
                raise StoreUnavailable("the disk is full.")
            await super().append(batch)

    async def go():
        journal = OnlyDurable()
        ledger = Ledger(journal=journal, clock=FakeClock(), last_seq=0, origin="abc")
        assert not await ledger.write(Batch(events=ledger.number([note()])))
        await ledger.write_or_refuse(Batch(events=ledger.number([note()])))
        assert await seqs(journal) == [1, 2]

    asyncio.run(go())


@pytest.mark.accepts("P10", "P11")
def test_a_refused_order_leaves_no_hole_in_the_numbers():
    async def go():
        journal, ledger = made()
        journal.unavailable = True
        entry = AuditEntry(
            id="o",
            actor="a",
            action="stop",
            target_type="worker",
            target_id="w",
            label=None,
            at=0.0,
            details={},
        )
        with pytest.raises(StoreUnavailable):
            await ledger.write_or_refuse(
                Batch(events=ledger.number([note(), note()]), audit=[entry])
            )
        journal.unavailable = False
        assert await ledger.retry()
        (gap,) = await journal.events()
        assert gap["type"] == "gap"
        assert gap["payload"] == {"from_seq": 1, "to_seq": 2}
        assert journal.audit == [], "what was refused is not on record as taken"
        assert ledger.number([note()])[0].seq == 3

    asyncio.run(go())


def test_a_long_outage_keeps_the_latest_rows_and_names_the_news_given_up(monkeypatch):
    monkeypatch.setattr(ledgers, "MOST_KEPT", 10)

    async def go():
        journal, ledger = made()
        journal.unavailable = True
        for generation in range(1, 31):
            status = SlotStatus(slot="w", generation=generation)
            await ledger.write(Batch(events=ledger.number([note()]), slots=[status]))
        journal.unavailable = False
        await ledger.retry()
        assert journal.recall().slots["w"].generation == 30
        events = await journal.events(limit=1000)
        assert events[0]["type"] == "gap"
        assert events[0]["payload"]["from_seq"] == 1
        assert [e["seq"] for e in events][1:] == list(range(events[0]["seq"] + 1, 31))

    asyncio.run(go())


def test_merging_keeps_what_is_current_and_forgets_what_is_forgotten():
    job = JobRow(
        id="j",
        task_id=None,
        type="stop",
        target="a",
        label=None,
        state="running",
        created_at=0.0,
        updated_at=0.0,
    )
    merged = merge_without_news(
        [
            Batch(slots=[SlotStatus(slot="a", generation=1)], jobs=[job], meta={"k": "1"}),
            Batch(forgotten=["a"], slots=[SlotStatus(slot="b")], meta={"k": "2"}),
            Batch(forgotten=["b"]),
            Batch(slots=[SlotStatus(slot="b", generation=3)]),
        ]
    )
    assert [s.slot for s in merged.slots] == ["b"]
    assert merged.forgotten == ("a",)
    assert merged.meta == {"k": "2"}
    assert [j.id for j in merged.jobs] == ["j"]
    assert merged.events == ()


@pytest.mark.accepts("P10")
def test_merging_gives_up_news_but_never_the_audit_or_an_override():
    entry = AuditEntry(
        id="o.succeeded",
        actor="a",
        action="restart.succeeded",
        target_type="worker",
        target_id="w",
        label=None,
        at=0.0,
        details={},
    )
    merged = merge_without_news(
        [Batch(audit=[entry], overrides={"w": "{}"}), Batch(overrides={"v": None})]
    )
    assert list(merged.audit) == [entry]
    assert merged.overrides == {"w": "{}", "v": None}
