"""Watching the memory of those who declare a limit: the driver's scale.

Where a control group keeps the limit, only its word is read; elsewhere what a slot's processes
use is added up every few seconds, in one timer for all. Nobody else is looked at.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.events import Condemned
from uphold.host.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from uphold.core.events import SlotFact
    from uphold.drivers.runs import Run
    from uphold.host.processes.scanning import Scanner
    from uphold.ports.clocks import Clock

TOO_MUCH_MEMORY: Final = "UPH_WORKER_MEMORY"
EVERY: Final = 5.0
"""Seconds between two looks."""
_MEGABYTE: Final = 1_000_000


class Load(NamedTuple):
    """The processes of a run, and what it may use."""

    run: Run
    pids: tuple[int, ...]
    allowed: int


class Scale:
    """Weighs all runs that have a limit."""

    def __init__(self, clock: Clock, scanner: Scanner, tell: Callable[[SlotFact], None]) -> None:
        self._clock = clock
        self._scanner = scanner
        self._tell = tell
        self._runs: dict[str, Run] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, run: Run) -> None:
        """Look after a run that has a limit, until it ends."""
        self._runs[run.slot] = run
        if self._task is None:
            self._task = asyncio.create_task(self._look_regularly(), name="weigh")

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def look(self) -> None:
        """Weigh everybody once, and condemn those who are too heavy."""
        self._runs = {slot: run for slot, run in self._runs.items() if _goes_on(run)}
        watched = []
        for run in tuple(self._runs.values()):
            if run.group is None or run.group.memory is None:
                watched.append(run)
            elif run.group.ran_out_of_memory():
                self._condemn(run, out_of_memory(run))
        if not watched:
            return
        snapshot = await self._scanner.look()
        loads = [
            Load(run, tuple(seen.pid for seen in snapshot.members(run.nonces, run.main)), allowed)
            for run in watched
            if (allowed := run.spec.limits.memory) is not None
        ]
        for load, used in await in_thread(lambda: weigh(loads)):
            if _goes_on(load.run):
                self._condemn(load.run, _too_heavy(load, used))

    async def _look_regularly(self) -> None:
        try:
            while self._runs:
                await self._clock.sleep(EVERY)
                try:
                    await self.look()
                except (OSError, RuntimeError) as cause:  # no descriptor or thread to be had
                    context = {"message": "memory could not be looked at", "exception": cause}
                    asyncio.get_running_loop().call_exception_handler(context)
        finally:
            self._task = None

    def _condemn(self, run: Run, why: str) -> None:
        self._runs.pop(run.slot, None)  # once is enough: it is being ended
        self._tell(
            Condemned(slot=run.slot, generation=run.generation, code=TOO_MUCH_MEMORY, why=why)
        )


def weigh(loads: Sequence[Load]) -> list[tuple[Load, int]]:
    """Give those who use more than they may, and how much. Blocks.

    The quick sum counts shared pages several times, so whoever is too heavy by it is weighed
    again, exactly.
    """
    from uphold.host.trees import proportional, resident  # noqa: PLC0415 - few declare a limit

    heavy = [load for load in loads if resident(load.pids) > load.allowed]
    exact = [(load, proportional(load.pids)) for load in heavy]
    return [(load, used) for load, used in exact if used > load.allowed]


def out_of_memory(run: Run) -> str:
    """Say that the kernel has ended something of a run for want of memory."""
    allowed = run.spec.limits.memory or 0
    return f"it needed more than the {_text(allowed)} of memory that limits.memory allows"


def _too_heavy(load: Load, used: int) -> str:
    return f"it uses {_text(used)} of memory, and limits.memory allows {_text(load.allowed)}"


def _goes_on(run: Run) -> bool:
    return run.process is not None and run.exit is None and not run.stopping


def _text(size: int) -> str:
    return f"{size / _MEGABYTE:.0f} MB" if size >= 10 * _MEGABYTE else f"{size / _MEGABYTE:.1f} MB"
