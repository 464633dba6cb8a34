"""Time, as the engine sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.events import Moment
    from uphold.core.specs import Instant


class Clock(Protocol):
    """Reads both clocks at once and waits on the monotonic one."""

    def now(self) -> Moment:
        """Read the clocks."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let that much monotonic time pass."""
        ...

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` once at this instant; the answer cancels it."""
        ...
