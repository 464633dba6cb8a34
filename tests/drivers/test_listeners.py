from __future__ import annotations

import asyncio

from uphold.core.events import Forgotten
from uphold.drivers.listeners import Listeners


def test_one_who_stops_listening_while_told_is_told_the_fact_at_hand_only():
    heard = []
    listeners = Listeners()

    def once(fact):
        heard.append(fact)
        listeners.remove(once)

    async def scene():
        listeners.add(once)
        listeners.tell(Forgotten(slot="a"))
        listeners.tell(Forgotten(slot="b"))

    asyncio.run(scene())
    assert heard == [Forgotten(slot="a")]
