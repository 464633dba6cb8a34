"""Virtual time: an event loop that jumps to the next timer instead of waiting, and its clock.

What is ready at the same moment runs in an order that the seed decides. asyncio promises the
order of `call_soon`; whoever relies on it is found out here.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random

from uphold.core.events import Moment
from uphold.core.specs import Instant

MOST_ROUNDS = 20_000
"""Rounds at one moment after which nobody believes that time will ever move again."""


class StandstillError(Exception):
    """Nothing is ready and nothing is due, or everything is for ever ready."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without a selector: hours of waiting cost nothing."""

    def __init__(self, seed):
        super().__init__()
        self.tasks = {}
        """All tasks that may still run, in the order in which they were made."""
        self.after_round = None
        self._moment = 0.0
        self._rounds_here = 0
        self._chance = random.Random(f"order of {seed}").random
        self.set_task_factory(self._make_task)

    def time(self):
        return self._moment

    def _make_task(self, loop, work, **more):
        task = asyncio.Task(work, loop=loop, **more)
        if len(self.tasks) > 300:
            self.tasks = {each: None for each in self.tasks if not each.done()}
        self.tasks[task] = None
        return task

    def _run_once(self):
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        self._rounds_here += 1
        if not ready:
            if not scheduled:
                raise StandstillError("nothing is ready and nothing is due: everybody waits")
            if scheduled[0]._when > self._moment:
                self._moment = scheduled[0]._when
                self._rounds_here = 0
        elif self._rounds_here > MOST_ROUNDS:
            raise StandstillError(f"{MOST_ROUNDS} rounds at one moment: {ready[0]}")
        while scheduled and scheduled[0]._when <= self._moment:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        if len(ready) > 1:
            self._mix(ready)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
        if self.after_round is not None:
            self.after_round()

    def _mix(self, ready):
        chance = self._chance
        for last in range(len(ready) - 1, 0, -1):
            other = int(chance() * (last + 1))
            ready[last], ready[other] = ready[other], ready[last]

    def run_in_executor(self, executor, func, *args):
        """Do at once, in its turn, what a thread would do: threads keep no virtual time."""
        answer = self.create_future()

        def go():
            if answer.cancelled():
                return
            try:
                answer.set_result(func(*args))
            except Exception as problem:
                answer.set_exception(problem)

        self.call_soon(go)
        return answer

    def _write_to_self(self):
        """Nobody sleeps here, so nobody needs to be woken."""

    def _process_events(self, events):
        """There are none."""


class Times:
    """What the clocks of the simulated machine show; they outlive every supervisor."""

    def __init__(self, loop):
        self.loop = loop
        self.booted = 0.0
        self.wall_offset = 1_767_225_600.0

    def boot(self):
        """Begin to count anew, as a machine does that was switched on a moment ago."""
        self.booted = self.loop.time() - 5.0

    def jump_wall(self, seconds):
        """Set the wall clock, as people and time servers do; not out of all calendars."""
        later = self.wall_offset + seconds
        if 400_000_000 < later < 4_000_000_000:
            self.wall_offset = later


class VirtualClock:
    """The clock of one supervisor: it is silent once that is dead."""

    def __init__(self, times):
        self._times = times
        self._loop = times.loop
        self.alarms = {}

    def now(self):
        moment, times = self._loop._moment, self._times
        return Moment(mono=Instant(moment - times.booted), wall=moment + times.wall_offset)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)

    def alarm(self, at, ring):
        booted = self._times.booted
        when = at + booted
        while when - booted < at:  # never an instant too early by rounding
            when = math.nextafter(when, math.inf)
        number = object()

        def rings():
            del self.alarms[number]
            ring()

        handle = self.alarms[number] = self._loop.call_at(when, rings)

        def cancel():
            handle.cancel()
            self.alarms.pop(number, None)

        return cancel

    def silence(self):
        """Let no alarm ring any more."""
        for handle in self.alarms.values():
            handle.cancel()
        self.alarms.clear()
