from __future__ import annotations

import asyncio

from uphold.sdk.awaiting import Stopping


def test_a_sleeper_sleeps_its_time_or_wakes_up():
    async def story():
        stopping = Stopping()
        assert not await stopping.wait(0)
        assert not await stopping.wait(0.001)
        assert (stopping(), stopping.is_set()) == (False, False)
        asleep = [asyncio.ensure_future(stopping.wait(3600)) for _ in range(3)]
        await asyncio.sleep(0)
        stopping.set()
        assert await asyncio.gather(*asleep) == [True, True, True]
        assert await stopping
        assert stopping.blocking.wait()

    asyncio.run(asyncio.wait_for(story(), 60))
