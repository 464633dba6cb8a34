from __future__ import annotations

import asyncio

from uphold.core.absorbing import Observed
from uphold.core.declaring import Declaration
from uphold.core.events import Note
from uphold.core.statuses import SlotStatus, SupervisorStatus
from uphold.engine.board import Board
from uphold.engine.ledger import Ledger
from uphold.ports.journals import Batch
from uphold.testing.clocks import FakeClock
from uphold.testing.journals import MemoryJournal


def test_every_change_is_a_new_version_and_the_old_one_stays():
    async def go():
        board = Board()
        first = board.snapshot
        board.declare(Declaration(version=1, paused=True), ())
        second = board.snapshot
        board.believe(Observed().with_changes([SlotStatus(slot="w")], ()), ())
        assert [first.version, second.version, board.snapshot.version] == [0, 1, 2]
        assert second.status is SupervisorStatus.PAUSED
        assert "w" not in second.observed.slots
        assert "w" in board.snapshot.observed.slots

    asyncio.run(go())


def test_news_are_recorded_before_anybody_hears_them():
    async def go():
        journal, clock = MemoryJournal(), FakeClock()
        board = Board()
        ledger = Ledger(journal=journal, clock=clock, last_seq=0, origin="x")
        listener = board.bus.subscribe()
        note = Note(type="x", entity_type="worker", entity_id="w")
        await board.tell(ledger, [note], Batch(slots=[SlotStatus(slot="w")]))
        heard = await anext(listener)
        assert heard.event == note
        assert [event["seq"] for event in await journal.events()] == [heard.seq]
        assert "w" in journal.recall().slots, "rows that belong together are written together"

    asyncio.run(go())
