"""Many programs started side by side, while the loop makes the next ones ready.

A spawn keeps its thread waiting until the new program runs. Threads share that waiting when
there is much to start; they live only as long as the rush.
"""

from __future__ import annotations

import _thread
import asyncio
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Job = TypeVar("Job")
Outcome = int | Exception

_HANDS: Final = 2
_AT_ONCE: Final = 8
"""Outcomes that are told in one turn of the loop."""
_MOST_WAITING: Final = 32
"""Each job holds a few descriptors until it is done."""


class Crew(Generic[Job]):
    """Does jobs on its threads and hands each outcome back on the loop."""

    def __init__(self, work: Callable[[Job], int], done: Callable[[Job, Outcome], None]) -> None:
        self._work = work
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._outcomes: deque[tuple[Job, Outcome]] = deque()
        self._open = 0
        self._room = asyncio.Event()
        for _ in range(_HANDS):
            # Not `threading`: that waits until the thread has begun, which a rush lets us feel.
            _thread.start_new_thread(self._serve, ())

    async def have_room(self) -> None:
        """Wait until they can take one more job."""
        await self._until_fewer_than(_MOST_WAITING)

    def hand(self, job: Job) -> None:
        """Give them one job."""
        self._open += 1
        self._jobs.put(job)

    async def finish(self) -> None:
        """Wait until everything is done and told."""
        await self._until_fewer_than(1)

    def dismiss(self) -> None:
        """Let the threads go when they have done what they were given."""
        for _ in range(_HANDS):
            self._jobs.put(None)

    async def _until_fewer_than(self, number: int) -> None:
        while self._open >= number:
            self._room.clear()
            await self._room.wait()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                outcome: Outcome = self._work(job)
            except Exception as cause:  # noqa: BLE001 - the thread's boundary: told on the loop
                outcome = cause
            first = not self._outcomes
            self._outcomes.append((job, outcome))
            if first:
                with suppress(RuntimeError):  # the loop is gone, and so is everybody to tell
                    self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._outcomes))):
            job, outcome = self._outcomes.popleft()
            self._open -= 1
            self._done(job, outcome)
        self._room.set()
        if self._outcomes:
            self._loop.call_soon(self._collect)
