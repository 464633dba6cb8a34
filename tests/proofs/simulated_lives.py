"""The life of one simulated supervisor, from its start to its death, and the weather around it."""

from __future__ import annotations

import asyncio
from inspect import CORO_CREATED, getcoroutinestate

from proofs.simulated_disk import SimulatedJournal
from proofs.simulated_driver import SimulatedDriver
from proofs.simulated_loop import VirtualClock
from proofs.simulated_probes import SimulatedProber
from uphold.core.specs import Backoff, Kind, WorkerSpec
from uphold.daemon.outreach import Around, Outreach
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.wire.redaction import Redactor

PUMP = WorkerSpec(
    name="@pump",
    command=("pump",),
    max_restarts=None,
    backoff=Backoff(first=0.0, base=0.5, max=10.0),
)
SLOWEST = 60.0


class Weather:
    """What is wrong with the machine right now."""

    def __init__(self, rng, eye):
        self.disk_full = False
        self.disk_slow = 0.0
        """Mean seconds an append takes."""
        self.driver_slow = 0.0
        """Chance that a start is slow."""
        self.driver_bad = 0.0
        """Chance that a call of the driver raises."""
        self.echoes = 0.0
        """Chance that a fact is told once more, when its run is long over."""
        self.sees_exits = True
        """The exits of adopted processes can be known."""
        self._rng = rng
        self._eye = eye

    def clear(self):
        """Let everything be well."""
        self.disk_full = False
        self.disk_slow = self.driver_slow = self.driver_bad = self.echoes = 0.0

    def disk_delay(self):
        if self.disk_full:
            self._eye.troubled()
        if not self.disk_slow:
            return 0.0
        delay = min(self._rng.expovariate(1.0 / self.disk_slow), 5.0 * self.disk_slow)
        self._eye.troubled(10.0 * delay)
        return delay

    def slowness(self):
        """Give the seconds a start takes before it begins."""
        if self._rng.random() >= self.driver_slow:
            return 0.0
        return min(self._rng.expovariate(1.0 / 8.0), SLOWEST)

    def stumble(self):
        if self._rng.random() < self.driver_bad:
            raise RuntimeError("the driver stumbled")


class WatchedSupervisor(Supervisor):
    """The real one; the eye hears of every fact before it does."""

    eye = None

    def _report(self, fact):
        status = self._board.snapshot.observed.slots.get(fact.slot)
        self.eye.episodes.reported(fact, status, self._world.clock.now().mono)
        super()._report(fact)


class Noted:
    """A log that has nothing to hide: what the engine calls an error of its own is one."""

    def __init__(self, eye):
        self._eye = eye

    def write(self, level, event, message, **context):
        if level in ("ERROR", "CRITICAL"):
            self._eye.wrong(f"{event}: {message}")


class NotedOnShare:
    """What is said of flags and updates: most errors are those of other people."""

    def __init__(self, eye):
        self._eye = eye

    def write(self, level, event, message, **context):
        if event == "share.failed" or "mistake of uphold" in message:
            self._eye.wrong(f"{event}: {message}")


class RecordedTasks:
    """What became of tasks, as the simulated journal has it."""

    def __init__(self, disk):
        self._disk = disk

    def newest(self, task_id):
        found = [each for each in self._disk.written.jobs.values() if each.task_id == task_id]
        return _row(found[-1]) if found else None

    def waiting(self):
        return {each.task_id for each in self._disk.written.jobs.values() if each.state == "queued"}


def _row(job):
    return {
        "job_id": job.id,
        "job_type": job.type,
        "target_ref": job.target,
        "label": job.label,
        "state": job.state,
        "started_at": job.started_at,
        "last_error": job.error,
    }


class Life:
    """One supervisor with its ports: all of them end with it."""

    def __init__(self, world, config):
        self.up = False
        self.config = config
        self.clock = VirtualClock(world.times)
        self.driver = SimulatedDriver(world.machine, self.clock, world.weather)
        self.journal = SimulatedJournal(world.disk, world.machine.boot_id, world.weather, world.eye)
        self._world = world
        self.share_clock = VirtualClock(world.times)
        self.outreach = None if world.share is None else self._reach_out()
        self.supervisor = WatchedSupervisor(
            config,
            Surroundings(
                clock=self.clock,
                journal=self.journal,
                drivers={Kind.PROCESS: self.driver},
                new_nonce=lambda: f"{world.rng.getrandbits(128):032x}",
                log=Noted(world.eye),
                boot_id=world.machine.boot_id,
                companions=lambda _: world.companions,
                remembered=world.remembered,
                strays=self.driver.find_strays,
                prober=SimulatedProber(world.machine, world.physician),
                errands={} if self.outreach is None else self.outreach.errands(),
            ),
        )
        self.supervisor.eye = world.eye

    def _reach_out(self):
        """Have what a supervisor with a share has besides: the real thing, down to the helpers."""
        world = self._world
        return Outreach(
            Around(
                home=world.home,
                config=self.config,
                environ={},
                clock=self.share_clock,
                log=NotedOnShare(world.eye),
                redactor=Redactor,
                supervisor_id="simulated",
                children=set(),
                tasks=RecordedTasks(world.disk),
                begin=world.share.begin,
            )
        )

    async def begin(self):
        """Start the supervisor."""
        self._world.eye.begins(self)
        await self.supervisor.start()
        self.up = True
        if self.outreach is not None:
            self.outreach.attend(self.supervisor)
            self._looking = self._world.loop.create_task(self.outreach.run(), name="share")

    @property
    def ended(self):
        """Tell whether it has come to its end by itself."""
        main = self.supervisor._main
        return main is not None and main.done()

    async def die(self):
        """Be killed: nothing of it does anything from this moment on."""
        self._world.eye.life = None
        self.up = False
        self.driver.die()
        self.journal.die(self._world.rng)
        self.clock.silence()
        self.share_clock.silence()
        if self._world.share is not None:
            self._world.share.abandon()
        await end_all(self._world.loop)

    async def leave(self, *, keep):
        """Be told to end, and end in order; gives the exit code."""
        code = await self.supervisor.stop(keep_workers=keep)
        await self.bury()
        return code

    async def bury(self):
        """Close what a supervisor that has ended leaves to its surroundings."""
        if self.outreach is not None:
            self._looking.cancel()
            await self.outreach.close()
        await self.journal.close()
        self._world.eye.life = None
        self.up = False
        await end_all(self._world.loop)


async def end_all(loop):
    """Cancel everything but ourselves, again and again, until it is gone."""
    me = asyncio.current_task()
    for _ in range(50):
        left = [task for task in loop.tasks if not task.done() and task is not me]
        if not left:
            return
        for task in left:
            if getcoroutinestate(task.get_coro()) != CORO_CREATED:  # let it begin to its end
                task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    raise AssertionError(f"these cannot be cancelled: {left}")
