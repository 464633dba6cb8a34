"""Carries actions out through the drivers, each worker for itself.

A driver's outcome arrives as facts; what a driver raises becomes a fact here, so that
nothing a driver does wrong reaches the loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from uphold.core import actions, events
from uphold.core.specs import Kind, StopRule
from uphold.core.statuses import DRIVER_FAILED, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from uphold.core.absorbing import Observed
    from uphold.core.events import SlotFact
    from uphold.core.specs import WorkerSpec
    from uphold.ports.drivers import Driver, Launch

_ABORTING: Final = StopRule(signal="ABRT")


class Performer:
    """Hands actions to drivers and keeps hold of what is under way."""

    def __init__(self, drivers: Mapping[Kind, Driver], report: Callable[[SlotFact], None]) -> None:
        self._drivers = drivers
        self._report = report
        self._under_way: dict[asyncio.Task[None], None] = {}

    def driver(self, spec: WorkerSpec | None) -> Driver:
        """Find who makes this kind of worker happen."""
        # A Python worker is a process to us: its command is the runner that hosts it.
        if spec is None or spec.kind is Kind.PYTHON:
            return self._drivers[Kind.PROCESS]
        return self._drivers[spec.kind]

    def start(self, launches: Sequence[Launch]) -> None:
        """Start these slots; a slow or failing one delays no other."""
        by_driver: dict[int, tuple[Driver, list[Launch]]] = {}
        for launch in launches:
            driver = self.driver(launch.spec)
            by_driver.setdefault(id(driver), (driver, []))[1].append(launch)
        for driver, group in by_driver.values():
            self._do(self._start(driver, group), f"start {len(group)}")

    def end(self, action: actions.Stop | actions.Abort | actions.Kill, observed: Observed) -> None:
        """Stop, abort or kill one slot on the terms it was started under."""
        status = observed.slots[action.slot]
        driver = self.driver(status.terms)
        if isinstance(action, actions.Kill):
            operation = driver.kill(action.slot, generation=status.generation)
        else:
            rule = StopRule() if status.terms is None else status.terms.stop
            if isinstance(action, actions.Abort):
                rule = _ABORTING
            operation = driver.stop(action.slot, rule, generation=status.generation)
        work = self._end(operation, action.slot, status.generation)
        self._do(work, f"{type(action).__name__.lower()} {action.slot}")

    def amend(self, spec: WorkerSpec) -> None:
        """Tell the driver of terms that apply in place."""
        self.driver(spec).add(spec)

    def forget(self, name: str) -> None:
        """Tell every driver that a worker is no longer there."""
        for driver in self._drivers.values():
            driver.remove(name)

    @property
    def busy(self) -> bool:
        """Tell whether anything is under way."""
        return bool(self._under_way)

    async def drain(self, seconds: float) -> bool:
        """Wait for what is under way, but not for ever; True when all of it ended."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=seconds)
        left = tuple(self._under_way)
        for task in left:
            task.cancel()
        return not left

    async def _start(self, driver: Driver, launches: Sequence[Launch]) -> None:
        try:
            for launch in launches:
                driver.add(launch.spec)
            if len(launches) == 1:
                await driver.start(launches[0])
            else:
                await driver.start_all(launches)
        except Exception as error:  # noqa: BLE001 - the boundary to drivers: it becomes a fact
            for launch in launches:
                fault = Fault(code=DRIVER_FAILED, message=f"the driver failed: {error!r}")
                self._report(
                    events.StartFailed(slot=launch.slot, generation=launch.generation, fault=fault)
                )

    async def _end(
        self, operation: Coroutine[object, object, None], slot: str, generation: int
    ) -> None:
        try:
            await operation
        except Exception as error:  # noqa: BLE001 - the boundary to drivers: it becomes a fact
            fault = Fault(code=DRIVER_FAILED, message=f"the driver failed: {error!r}")
            self._report(events.StopFailed(slot=slot, generation=generation, fault=fault))

    def _do(self, work: Coroutine[object, object, None], name: str) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work, name=name)
        self._under_way[task] = None
        task.add_done_callback(self._under_way.pop)
