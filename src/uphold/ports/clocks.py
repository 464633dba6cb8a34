"""Time, as the engine sees it."""

from __future__ import annotations

from typing import Protocol

from uphold.core.events import Moment


class Clock(Protocol):
    """Reads both clocks at once and waits on the monotonic one."""

    def now(self) -> Moment:
        """Read the clocks."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let that much monotonic time pass."""
        ...
