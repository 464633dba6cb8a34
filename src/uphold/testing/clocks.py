"""A clock that only moves when told: hours of supervision in milliseconds."""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Final

from uphold.core.events import Moment
from uphold.core.specs import Instant

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS: Final = 50
"""Turns of the loop after which everything that follows from one moment has happened."""


class FakeClock:
    """Satisfies `uphold.ports.clocks.Clock`; `advance` lets time pass."""

    def __init__(self, start: float = 1000.0, wall: float = 1_767_225_600.0) -> None:
        self._mono = start
        self._wall_offset = wall - start
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._cancelled: set[int] = set()
        self._count = 0

    def now(self) -> Moment:
        """Read both clocks."""
        return Moment(mono=Instant(self._mono), wall=self._mono + self._wall_offset)

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has gone that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        cancel = self.alarm(Instant(self._mono + seconds), wake)
        try:
            await woken
        finally:
            cancel()

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` when `advance` gets there; the answer cancels it."""
        self._count += 1
        number = self._count
        heapq.heappush(self._alarms, (at, number, ring))
        return lambda: self._cancelled.add(number)

    def jump_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as people and time servers do."""
        self._wall_offset += seconds

    async def advance(self, seconds: float) -> None:
        """Let that much time pass, ringing every alarm at its moment."""
        until = self._mono + seconds
        await self.settle()
        while self._alarms and self._alarms[0][0] <= until:
            at, number, ring = heapq.heappop(self._alarms)
            if number in self._cancelled:
                self._cancelled.discard(number)
                continue
            self._mono = max(self._mono, at)
            ring()
            await self.settle()
        self._mono = until
        await self.settle()

    async def settle(self) -> None:
        """Let everything happen that follows from this moment."""
        for _ in range(_ROUNDS):
            await asyncio.sleep(0)
