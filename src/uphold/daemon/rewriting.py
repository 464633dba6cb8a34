"""The rows of many workers are written once for a version and a moment, not for every question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from uphold.wire.codecs import Raw, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.ports.clocks import Clock

MANY: Final = 100
"""Fewer rows are written quicker than they are remembered."""
MOMENT: Final = 0.5


class WrittenRows:
    """Rows as they were last written. Whoever asks again is told ages half a second old at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: tuple[object, float, Raw] | None = None

    def find(self, state: object) -> Raw | None:
        """Give the rows of this very state, if they were written a moment ago."""
        if self._kept is None or self._kept[0] != state or self._is_old(self._kept[1]):
            return None
        return self._kept[2]

    def keep(self, state: object, rows: Sequence[object]) -> Raw | Sequence[object]:
        """Write rows and keep them for a moment, if there are many."""
        if len(rows) < MANY:
            return rows
        written = Raw(encode(rows))
        self._kept = state, self._clock.now().mono + MOMENT, written
        asyncio.get_running_loop().call_later(MOMENT, self._forget)  # they are large
        return written

    def _forget(self) -> None:
        if self._kept is not None and self._is_old(self._kept[1]):
            self._kept = None

    def _is_old(self, until: float) -> bool:
        return self._clock.now().mono >= until
