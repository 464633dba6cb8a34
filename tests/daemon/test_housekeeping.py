"""What is done now and then, on a clock that only moves when told."""

from __future__ import annotations

import asyncio

from uphold.core.events import Note
from uphold.core.specs import JournalSpec, Settings, SupervisorSpec
from uphold.daemon.housekeeping import EVERY, TURNS_TO_PRUNE, keep_house, keep_of
from uphold.errors import StoreUnavailable
from uphold.testing.clocks import FakeClock

NOTE = Note(type="supervisor.lock_restored", entity_type="supervisor", entity_id="s", payload={})


class Past:
    """A journal that has so much to forget."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.asked = []

    async def prune(self, now):
        self.asked.append(now)
        step = self.steps.pop(0) if self.steps else 0
        if isinstance(step, Exception):
            raise step
        return step


def kept(past, turns, restored=lambda: iter(())):
    told = []

    async def tell(note):
        told.append(note)

    async def script():
        clock = FakeClock()
        task = asyncio.ensure_future(keep_house(past, restored, tell, clock))
        for _ in range(turns):
            await clock.advance(EVERY)
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(script())
    return told


def test_the_past_is_let_go_of_every_few_minutes_until_nothing_is_left_to_go():
    past = Past(5, 5, 0)
    kept(past, TURNS_TO_PRUNE - 1)
    assert past.asked == []
    kept(past, TURNS_TO_PRUNE)
    assert len(past.asked) == 3


def test_a_journal_that_cannot_be_written_is_tried_again_later():
    past = Past(StoreUnavailable("the disk is full"), 3, 0)
    kept(past, 2 * TURNS_TO_PRUNE)
    assert len(past.asked) == 3


def test_what_somebody_removed_is_put_back_and_told():
    assert kept(Past(), 2, restored=lambda: iter([NOTE])) == [NOTE, NOTE]


def test_settings_say_how_much_is_kept():
    spec = JournalSpec(events_for=1.0, events_at_most=2, jobs_for=3.0, audit_for=4.0)
    keep = keep_of(Settings(supervisor=SupervisorSpec(name="s"), workers={}, journal=spec))
    assert (keep.events_age, keep.events, keep.jobs_age, keep.audit_age) == (1.0, 2, 3.0, 4.0)
