"""Watching main processes: their exits are noticed at once, told with what is left behind.

One descriptor per process tells of its end; nothing polls where the kernel has that. Ending what
is left is begun here and done by the `Emptier`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from uphold.core.events import Condemned, Exited, Gone
from uphold.core.statuses import Exit
from uphold.drivers.emptying import Emptier
from uphold.drivers.listeners import Listeners
from uphold.drivers.runs import Run
from uphold.drivers.weighing import TOO_MUCH_MEMORY, Scale, out_of_memory
from uphold.host.processes.containment import Ending
from uphold.host.processes.reaping import StrangerReaper
from uphold.host.processes.slotlocks import is_held
from uphold.host.processes.vigils import Vigil, is_possible

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from uphold.host.homes import Home
    from uphold.host.processes import Process
    from uphold.ports.clocks import Clock

_EXIT_PATIENCE: Final = 3.0
"""How long process 1 may take to let go of an adopted process, whose exit is known only then."""
_STOP_PATIENCE: Final = 0.3
"""How long its end itself may stay untold for that; and all the time there is in a stop."""
_FIRST_STEP: Final = 0.005
_LONGEST_STEP: Final = 0.05
_WATCH_STEP: Final = 0.2


class Watch:
    """All runs that are in sight."""

    def __init__(  # noqa: PLR0913 - introduces those who do the parts
        self,
        home: Home,
        clock: Clock,
        facts: Listeners,
        emptier: Emptier,
        children: set[int],
        *,
        scale: Scale,
    ) -> None:
        """`children` is kept up to date: numbers of those whose exit nobody else may take."""
        self.runs: dict[str, Run] = {}
        self._home = home
        self._clock = clock
        self._facts = facts
        self._emptier = emptier
        self._children = children
        self._scale = scale
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_empty: list[Run] = []
        """Runs of which nothing may be left; those of one turn of the loop share one look."""
        self._vigil: Vigil | None = None
        self._reaper: StrangerReaper | None = None

    def begin(self) -> None:
        """Take strangers in and hear of ends from now on; needs the running loop. Once is enough.

        Before anything is started: a process that cannot be watched must not come to be.
        """
        if self._vigil is None and is_possible():
            self._vigil = Vigil()
        if self._reaper is None:
            self._reaper = StrangerReaper(self._children.__contains__)

    def hold(self, run: Run, process: Process) -> None:
        """Watch a run whose main process lives."""
        self.runs[run.slot] = run
        if process.child:
            self._children.add(process.identity.pid)
        if process.descriptor >= 0:
            assert self._vigil is not None, "there are no pidfds without epoll, and it was begun"
            self._vigil.add(process.descriptor, partial(self._ended, run, process))
        else:
            self.task(self._look_until_ended(run, process), f"watch {run.slot}")
        if run.spec.limits.memory is not None:
            self._scale.add(run)

    def claim(self, pid: int) -> None:
        """Take nobody for an orphan who was just started and is about to be held."""
        self._children.add(pid)

    def disclaim(self, pid: int) -> None:
        """Give up a claim: it could not be held."""
        self._children.discard(pid)

    def exchange(self, run: Run, process: Process) -> None:
        """Watch another process as the main one of a run; the old one is left to the reaper."""
        old = run.process
        if old is not None:
            self._close(old)
        run.process = process
        run.main = process.identity
        self.hold(run, process)

    def empty(self, run: Run) -> None:
        """Begin to end whatever there is of a slot; Gone is told when nothing is left."""
        if run.emptying:
            return
        run.emptying = True
        if not self._to_empty:
            asyncio.get_running_loop().call_soon(self._empty_waiting)
        self._to_empty.append(run)

    async def wait(self, process: Process, limit: float) -> bool:
        """Wait for the end of a child that is no worker, and reap it; False if it outlives that."""
        self._children.add(process.identity.pid)
        until = self._clock.now().mono + limit
        try:
            while process.reap() is None:
                if self._clock.now().mono >= until:
                    return False
                await self._clock.sleep(_LONGEST_STEP)
        finally:
            self._children.discard(process.identity.pid)
        return True

    async def end_of(self, process: Process) -> Ending:
        """Wait for the end of a child that is no worker, however long it takes, and reap it."""
        self._children.add(process.identity.pid)
        try:
            if process.descriptor >= 0:
                await self._readable(process.descriptor)
            while (ending := process.reap()) is None:
                await self._clock.sleep(_LONGEST_STEP)
        finally:
            self._children.discard(process.identity.pid)
        return ending

    async def _readable(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        loop.add_reader(descriptor, _set, ended)
        try:
            await ended
        finally:
            loop.remove_reader(descriptor)

    async def exit_of(self, process: Process, patience: float = _STOP_PATIENCE) -> Ending:
        """Learn how a process ended; its parent may take a moment to let go of it."""
        until = self._clock.now().mono + patience
        step = _FIRST_STEP
        while (ending := process.reap()) is None and self._clock.now().mono < until:
            await self._clock.sleep(step)
            step = min(step * 2, _LONGEST_STEP)
        return ending or Ending()

    def task(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Have something done in the background, until it is done or we are closed."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Let go of everything."""
        await self._scale.close()
        if self._vigil is not None:
            self._vigil.close()
            self._vigil = None
        self._to_empty.clear()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for run in self.runs.values():
            self._let_go(run)
        if self._reaper is not None:
            self._reaper.close()
            self._reaper = None

    def _ended(self, run: Run, process: Process) -> None:
        """Note that a main process has ended; its exit may be known only a little later."""
        ending = process.reap()
        if ending is None:
            self.task(self._learn_exit(run, process), f"learn exit of {run.slot}")
        else:
            self._exited(run, ending)

    async def _learn_exit(self, run: Run, process: Process) -> None:
        ending = await self.exit_of(process, _STOP_PATIENCE)
        if run.stopping or ending != Ending():
            self._exited(run, ending)
            return
        # That it has ended is told now, how it ended as soon as process 1 lets us know.
        unknown = Exit(code=None, signal=None, at=self._clock.now().wall)
        self._facts.tell(
            Exited(slot=run.slot, generation=run.generation, exit=unknown, left_overs=True)
        )
        ending = await self.exit_of(process, _EXIT_PATIENCE)
        run.exit = replace(unknown, code=ending.code, signal=ending.signal)
        run.ended_at = self._clock.now().mono
        self.empty(run)

    async def _look_until_ended(self, run: Run, process: Process) -> None:
        while process.alive():
            await self._clock.sleep(_WATCH_STEP)
        self._exited(run, process.reap() or Ending())

    def _exited(self, run: Run, ending: Ending) -> None:
        now = self._clock.now()
        run.exit = Exit(code=ending.code, signal=ending.signal, at=now.wall)
        run.ended_at = now.mono
        run.exit_told = True
        if run.main is not None:
            self._children.discard(run.main.pid)
        left_overs = (
            run.stopping
            or is_held(self._home.slot_lock(run.slot))
            or (run.group is not None and not run.group.is_empty())
        )
        if left_overs:
            self.empty(run)
        else:
            self._let_go(run)
        if run.group is not None and run.group.ran_out_of_memory():
            why = out_of_memory(run)
            self._facts.tell(
                Condemned(slot=run.slot, generation=run.generation, code=TOO_MUCH_MEMORY, why=why)
            )
        self._facts.tell(
            Exited(slot=run.slot, generation=run.generation, exit=run.exit, left_overs=left_overs)
        )

    def _empty_waiting(self) -> None:
        """Let go of those of which plainly nothing is left; what is left of others is ended."""
        runs, self._to_empty = self._to_empty, []
        for run in runs:
            proof = self._emptier.plain_proof(run)
            if proof is None:
                self.task(self._empty(run), f"empty {run.slot}")
            else:
                self._emptied(run, proof)

    async def _empty(self, run: Run) -> None:
        self._emptied(run, await self._emptier.empty(run))

    def _emptied(self, run: Run, proof: str) -> None:
        run.proof = proof
        self._let_go(run)
        if run.group is not None:
            run.group.remove()
            run.group = None
        run.emptying = False
        run.nonces = ()
        told = None if run.exit_told else run.exit
        self._facts.tell(Gone(slot=run.slot, generation=run.generation, proof=run.proof, exit=told))

    def _let_go(self, run: Run) -> None:
        if run.process is None:
            return
        self._close(run.process)
        run.process = None
        run.main = None

    def _close(self, process: Process) -> None:
        if self._vigil is not None:
            self._vigil.discard(process.descriptor)
        self._children.discard(process.identity.pid)
        process.close()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (cause := task.exception()) is not None:
            context = {"message": f"{task.get_name()} failed", "exception": cause}
            task.get_loop().call_exception_handler(context)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
