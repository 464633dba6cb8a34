"""What is to be asked when. Each question of a slot stands here once, however often it is moved."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_A_FEW: Final = 64
"""So many lines that no longer count are no burden."""

Line = tuple[float, int, str, str]
"""When, a number that tells equals apart, whom, what."""


class Agenda:
    """Questions by the time at which they are due."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        """A heap. A line that is not the standing one of its question counts no more."""
        self._standing: dict[tuple[str, str], Line] = {}
        self._numbers = count()

    def __len__(self) -> int:
        """Count what is kept, with what no longer counts."""
        return len(self._lines)

    @property
    def first(self) -> float | None:
        """When to look at it next; too early is no harm."""
        return self._lines[0][0] if self._lines else None

    def when(self, slot: str, what: str) -> float | None:
        """Say when a question is due, if it is to be asked at all."""
        line = self._standing.get((slot, what))
        return None if line is None else line[0]

    def put(self, slot: str, what: str, at: float) -> None:
        """Ask this then, and at no other time."""
        self._standing[slot, what] = line = (at, next(self._numbers), slot, what)
        heapq.heappush(self._lines, line)
        # Whoever is asked once a day and restarted every second would fill it for a day.
        if len(self._lines) > 2 * len(self._standing) + _A_FEW:
            self._lines = list(self._standing.values())
            heapq.heapify(self._lines)

    def strike(self, slot: str, what: str) -> None:
        """Do not ask this any more."""
        self._standing.pop((slot, what), None)

    def take(self, now: float) -> Iterator[tuple[str, str]]:
        """Take off what is due by now, the earliest first."""
        while self._lines and self._lines[0][0] <= now:
            line = heapq.heappop(self._lines)
            _, _, slot, what = line
            if self._standing.get((slot, what)) is line:
                del self._standing[slot, what]
                yield slot, what
