"""The in-process bus: facts to whoever listens, without ever waiting for a listener.

A listener that does not keep up loses the oldest events and is told how many by an
explicit `gap`; the snapshot still tells the truth (P11, M-43).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from uphold.core.events import Note, Recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_WAITING: Final = 10_000


class Subscription:
    """One listener's end: iterate it for events, close it when done."""

    def __init__(self, bus: LocalBus, most: int) -> None:
        self._bus = bus
        self._waiting: deque[Recorded] = deque()
        self._most = most
        self._lost_from = 0
        self._lost = 0
        self._closed = False
        self._ready = asyncio.Event()

    @property
    def lost(self) -> int:
        """How many events have been lost since the last gap was told."""
        return self._lost

    def offer(self, events: Sequence[Recorded]) -> None:
        """Take these, dropping the oldest where there is no room."""
        self._waiting.extend(events)
        while len(self._waiting) > self._most:
            dropped = self._waiting.popleft()
            if not self._lost:
                self._lost_from = dropped.seq
            self._lost += 1
        self._ready.set()

    def close(self) -> None:
        """Hear no more; whoever iterates is let go."""
        self._closed = True
        self._bus.forget(self)
        self._ready.set()

    async def wait(self) -> bool:
        """Wait until there is something to hear; False when there will never be anything."""
        while not self._lost and not self._waiting:
            if self._closed:
                return False
            self._ready.clear()
            await self._ready.wait()
        return True

    def take_waiting(self, most: int) -> list[Recorded]:
        """Take what waits, at most this many, the oldest first."""
        taken = [self._gap()] if self._lost else []
        while self._waiting and len(taken) < most:
            taken.append(self._waiting.popleft())
        return taken

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Recorded:
        if not await self.wait():
            raise StopAsyncIteration
        return self.take_waiting(1)[0]

    def _gap(self) -> Recorded:
        first, lost = self._lost_from, self._lost
        self._lost = 0
        at = self._waiting[0].at if self._waiting else 0.0
        return gap(first, first + lost - 1, at)


class LocalBus:
    """Hands recorded events to every subscription."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()

    def publish(self, events: Sequence[Recorded]) -> None:
        """Hand these to every listener."""
        for subscription in self._subscriptions:
            subscription.offer(events)

    def subscribe(self, most: int = MOST_WAITING) -> Subscription:
        """Listen from now on."""
        subscription = Subscription(self, most)
        self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Stop serving one listener; the others notice nothing."""
        self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)

    def close(self) -> None:
        """Let every listener go."""
        for subscription in self._subscriptions:
            subscription.close()


def gap(first: int, last: int, at: float) -> Recorded:
    """Make the event that says which numbers a listener will never see."""
    note = Note(
        type="gap",
        entity_type="supervisor",
        entity_id="events",
        payload={"from_seq": first, "to_seq": last, "lost": last - first + 1},
        severity="warning",
    )
    return Recorded(seq=last, id=f"gap-{first}-{last}", at=at, event=note)
