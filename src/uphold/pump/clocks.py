"""The clocks of the pump. It stands alone, so it cannot ask `uphold.host`."""

from __future__ import annotations

import time

monotonic = time.monotonic  # noqa: TID251 - the pump imports nothing of uphold.host


def wall() -> int:
    """Read the wall clock in microseconds, for indexes and messages only."""
    return time.time_ns() // 1000
