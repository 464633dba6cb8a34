"""Virtual time for proofs of many steps."""

from __future__ import annotations

import asyncio

from uphold.testing.clocks import FakeClock


class EagerClock(FakeClock):
    """Settles when the loop has nothing left to do, instead of after many rounds."""

    async def settle(self) -> None:
        ready = asyncio.get_running_loop()._ready
        await asyncio.sleep(0)
        while ready:
            await asyncio.sleep(0)
