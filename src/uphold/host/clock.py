"""The machine's clocks: the only place that reads them.

Waits follow the monotonic clock; wall time is only printed.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from uphold.core.events import Moment
from uphold.core.specs import Instant
from uphold.core.times import parse_utc, utc_text
from uphold.host.proctable import boot_id

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MachineClock", "boot_id", "parse_utc", "utc_text"]


class MachineClock:
    """The real clocks of this machine."""

    __slots__ = ()

    def now(self) -> Moment:
        """Read both clocks."""
        mono = Instant(time.monotonic())  # noqa: TID251 - this is where the clock is read
        return Moment(mono=mono, wall=time.time())  # noqa: TID251 - this is where the clock is read

    async def sleep(self, seconds: float) -> None:
        """Let that much monotonic time pass."""
        await asyncio.sleep(seconds)

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` once at this instant; the answer cancels it."""
        # The loop's own clock is the same monotonic one.
        return asyncio.get_running_loop().call_at(at, ring).cancel
