"""The machine's clocks for programs that have no loop; the other place that reads them."""

from __future__ import annotations

import time


class PlainClock:
    """Reads the clocks and waits by doing nothing."""

    __slots__ = ()

    def mono(self) -> float:
        """Read the clock that waits follow."""
        return time.monotonic()  # noqa: TID251 - a program without a loop reads its clock here

    def wall(self) -> float:
        """Read the clock that is only printed."""
        return time.time()  # noqa: TID251 - a program without a loop reads its clock here

    def pause(self, seconds: float) -> None:
        """Let that much time pass."""
        time.sleep(max(0.0, seconds))
