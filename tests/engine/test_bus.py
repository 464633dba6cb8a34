from __future__ import annotations

import asyncio

import pytest

from uphold.core.events import Note, Recorded
from uphold.engine.bus import LocalBus


def event(seq):
    note = Note(type="x", entity_type="worker", entity_id="w")
    return Recorded(seq=seq, id=str(seq), at=float(seq), event=note)


async def drained(subscription):
    subscription.close()
    return [recorded async for recorded in subscription]


def test_what_is_published_before_anybody_listens_is_not_heard():
    async def go():
        bus = LocalBus()
        bus.publish([event(1)])
        late = bus.subscribe()
        bus.publish([event(2)])
        assert [r.seq for r in await drained(late)] == [2]

    asyncio.run(go())


@pytest.mark.accepts("M-43", "P11")
def test_the_gap_names_exactly_what_was_lost():
    async def go():
        bus = LocalBus()
        slow = bus.subscribe(most=2)
        for seq in range(1, 6):
            bus.publish([event(seq)])
        assert slow.lost == 3
        first, *rest = await drained(slow)
        assert first.event.payload == {"from_seq": 1, "to_seq": 3, "lost": 3}
        assert [r.seq for r in rest] == [4, 5]

    asyncio.run(go())


def test_a_waiting_listener_is_woken_and_let_go():
    async def go():
        bus = LocalBus()
        subscription = bus.subscribe()
        heard = asyncio.create_task(anext(subscription))
        await asyncio.sleep(0)
        bus.publish([event(7)])
        assert (await heard).seq == 7
        ending = asyncio.create_task(anext(subscription, None))
        await asyncio.sleep(0)
        bus.close()
        assert await ending is None
        bus.publish([event(8)])
        assert [r async for r in subscription] == []

    asyncio.run(go())
