"""A machine without an operating system: processes, the files of their slots, and their whims.

It outlives every supervisor. Whatever a process does next is drawn from the seed when it is born.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from uphold.core.names import worker_of
from uphold.core.statuses import Identity

TERM, KILL = 15, 9


@dataclass(slots=True)
class Temper:
    """How the processes of one worker behave."""

    life: float | None = None
    """Mean seconds until one ends by itself; None: never."""
    codes: tuple[int, ...] = (1,)
    """How it ends; below zero: by that signal."""
    early: float = 0.0
    """Chance to end in the moment it is started."""
    missing: float = 0.0
    """Chance that the program is not there to be started."""
    deaf: float = 0.0
    """Chance to ignore TERM."""
    slow: float = 0.0
    """Mean seconds from TERM to its end."""
    stuck: float = 0.0
    """Chance to survive SIGKILL for a while."""
    leaves: float = 0.0
    """Chance to leave a child behind."""
    unseen: float = 0.0
    """Chance that nobody is told of its end."""


class Record(NamedTuple):
    """What the slot's own file says."""

    generation: int
    nonce: str
    identity: Identity | None
    boot_id: str


class Process:
    """One process; `main` is false for what a main process leaves behind."""

    __slots__ = (
        "alive",
        "born",
        "code",
        "deaf",
        "freezes",
        "identity",
        "main",
        "ready",
        "slot",
        "stuck",
        "timer",
        "watcher",
    )

    def __init__(self, slot, identity, *, main, born):
        self.slot = slot
        self.identity = identity
        self.main = main
        self.born = born
        self.alive = True
        self.code = None
        self.deaf = False
        self.ready = born
        """When it can do its work."""
        self.freezes = math.inf
        """When it stops doing anything, without ending."""
        self.stuck = 0.0
        """Seconds by which SIGKILL comes too early."""
        self.timer = None
        self.watcher = None


class Machine:
    """All processes of the simulated machine."""

    def __init__(self, loop, rng, eye):
        self.loop = loop
        self.rng = rng
        self.eye = eye
        self.boot_id = "boot-1"
        self.tempers = {}
        self.records = {}
        self.watched = {}
        """Workers that are asked how they are: what decides that of each process, and whether it
        takes a while to be ready."""
        self.calm = False
        """Nothing ends by itself any more, and nothing misbehaves."""
        self.ended_at = {}
        self._living = {}
        self._pids = count(1001)

    def temper(self, slot):
        return PLACID if self.calm else self.tempers.get(worker_of(slot), PLACID)

    def living(self, slot):
        """Give the living processes of a slot."""
        return self._living.get(slot, ())

    def everybody(self):
        return [process for group in self._living.values() for process in group]

    def main(self, slot):
        return next((each for each in self.living(slot) if each.main), None)

    def find(self, identity):
        """Give a living process by all that it is recognised by."""
        if identity is None:
            return None
        return next((p for p in self.everybody() if p.identity == identity), None)

    def bear(self, launch):
        """Start the program of a slot."""
        process = self._bear(launch.slot, launch.nonce, main=True)
        temper = self.temper(launch.slot)
        process.deaf = self.rng.random() < temper.deaf
        if self.rng.random() < temper.stuck:
            process.stuck = self.rng.uniform(0.5, 60.0)
        if self.rng.random() < temper.early:
            self._end_in(process, 0.0, temper)
        elif temper.life is not None:
            self._end_in(process, self.rng.expovariate(1.0 / temper.life), temper)
        if worker_of(launch.slot) in self.watched:
            self._draw_health(process)
        self.eye.born(process)
        return process

    def _draw_health(self, process):
        rng, slowly = self.watched[worker_of(process.slot)]
        if slowly:
            process.ready = process.born + rng.uniform(0.0, 4.0)
        if not self.calm and rng.random() < 0.5:
            process.freezes = process.ready + rng.expovariate(1.0 / 400.0)

    def send(self, process, number):
        """Deliver a signal; what it does takes a moment."""
        if not process.alive:
            return False
        temper = self.temper(process.slot)
        if number == KILL:
            self._end_by(process, KILL, process.stuck)
            process.stuck = 0.0
        elif number == TERM and not process.deaf and self.loop.time() < process.freezes:
            takes = self.rng.expovariate(1.0 / temper.slow) if temper.slow else 0.0
            self._end_by(process, TERM, takes)
        return True

    def lose_power(self):
        """End everything at once; nobody is told."""
        for process in self.everybody():
            process.alive = False
            process.watcher = None
            if process.timer is not None:
                process.timer.cancel()
        self._living.clear()
        self.boot_id = f"boot-{int(self.boot_id[5:]) + 1}"

    def calm_down(self):
        """Let everything live for ever from now on that does not end already."""
        self.calm = True
        for process in self.everybody():
            if process.timer is not None and process.code is None:
                process.timer.cancel()
            process.deaf = False
            if process.freezes > self.loop.time():
                process.freezes = math.inf

    def _bear(self, slot, nonce, *, main):
        pid = next(self._pids)
        identity = Identity(
            pid=pid, start_ticks=pid * 10, boot_id=self.boot_id, inode=pid, nonce=nonce
        )
        process = Process(slot, identity, main=main, born=self.loop.time())
        self._living[slot] = (*self.living(slot), process)
        return process

    def _end_in(self, process, seconds, temper):
        code = self.rng.choice(temper.codes)
        process.timer = self.loop.call_later(seconds, self._end, process, code)

    def _end_by(self, process, number, seconds):
        due = self.loop.time() + seconds
        if process.timer is not None:
            if not process.timer.cancelled() and process.timer.when() <= due:
                return
            process.timer.cancel()
        process.code = -number
        process.timer = self.loop.call_later(seconds, self._end, process, -number)

    def _end(self, process, code):
        if not process.alive:
            return
        process.alive = False
        process.code = code
        self.ended_at[process.slot] = self.loop.time()
        left = tuple(each for each in self.living(process.slot) if each is not process)
        if left:
            self._living[process.slot] = left
        else:
            del self._living[process.slot]
        temper = self.temper(process.slot)
        if process.main and self.rng.random() < temper.leaves:
            child = self._bear(process.slot, process.identity.nonce, main=False)
            child.stuck = self.rng.uniform(0.0, 20.0) if self.rng.random() < temper.stuck else 0.0
        self.eye.ended(process)
        watcher = process.watcher
        if watcher is not None:
            lost = code != -KILL and self.rng.random() < temper.unseen
            self.loop.call_soon(watcher, process, lost)


PLACID = Temper()
