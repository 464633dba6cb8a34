"""A stage: the real engine with fakes for the world, on a clock that only moves when told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from uphold.core.orders import Refusal
from uphold.core.specs import Kind, Settings, SupervisorSpec, WorkerSpec
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.ports.logs import Log, NoLog
from uphold.testing.clocks import FakeClock
from uphold.testing.drivers import FakeDriver
from uphold.testing.journals import MemoryJournal
from uphold.testing.probers import FakeProber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.core.orders import Wish
    from uphold.core.statuses import SlotStatus
    from uphold.engine.attempts import Attempts
    from uphold.engine.errands import Run
    from uphold.engine.jobs import Job
    from uphold.ports.configs import Asker, Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeRevision:
    """Settings with a version."""

    settings: Settings
    version: int
    asker: Asker | None = None


class FakeConfig:
    """A configuration in memory; `change` is an edit that was found right."""

    def __init__(self, *specs: WorkerSpec, **more: Any) -> None:
        """`more` are other parts of the settings."""
        settings = Settings(supervisor=SupervisorSpec(name="stage"), workers=specs, **more)
        self._current = FakeRevision(settings=settings, version=1)
        self._listeners: list[Callable[[Revision], None]] = []

    @property
    def current(self) -> FakeRevision:
        return self._current

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def subscribe(self, listener: Callable[[Revision], None]) -> None:
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[Revision], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def change(self, *specs: WorkerSpec, asker: Asker | None = None) -> None:
        settings = replace(self._current.settings, workers=specs)
        version = self._current.version + 1
        self._current = FakeRevision(settings=settings, version=version, asker=asker)
        for listener in tuple(self._listeners):
            listener(self._current)


class Stage:
    """One supervisor with everything around it; `crash` gives the next one."""

    def __init__(
        self,
        *specs: WorkerSpec,
        log: Log | None = None,
        clock: FakeClock | None = None,
        errands: Mapping[type, Run] | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.driver = FakeDriver(self.clock)
        self.prober = FakeProber()
        self.journal = MemoryJournal()
        self.config = FakeConfig(*specs)
        self._nonces = count(1)
        self._log = log or NoLog()
        self._errands = errands or {}
        self.attempts = attempts
        """For a stage that plays a single pass; put another in its place for the next one."""
        self.supervisor = self._supervisor()

    async def start(self) -> Stage:
        """Start the supervisor and let everything follow that follows at once."""
        await self.supervisor.start()
        await self.clock.settle()
        return self

    async def order(self, wish: Wish) -> Job | Refusal:
        """Hand in an order and let everything follow."""
        made = self.supervisor.desk.order(wish, author="ann", origin="test")
        job = await self.supervisor.desk.submit(made)
        await self.clock.settle()
        return job

    async def change(self, *specs: WorkerSpec) -> None:
        """Edit the configuration and let everything follow."""
        self.config.change(*specs)
        await self.clock.settle()

    def status(self, slot: str) -> SlotStatus:
        """Look at what is known of a slot."""
        return self.supervisor.snapshot().observed.slots[slot]

    async def crash(self) -> None:
        """Kill the supervisor without a word and put the next one in its place, not yet started."""
        found = self.journal.after_kill()
        self.journal.unavailable = True  # whatever it still tries, nothing of it is kept
        await self.supervisor.abandon()
        self.journal = found
        self.driver = self.driver.successor()
        self.config = FakeConfig(*self.config.current.settings.workers)
        self.supervisor = self._supervisor()

    def _supervisor(self) -> Supervisor:
        return Supervisor(
            self.config,
            Surroundings(
                clock=self.clock,
                journal=self.journal,
                drivers={Kind.PROCESS: self.driver},
                new_nonce=lambda: f"{next(self._nonces):032x}",
                log=self._log,
                boot_id="boot-1",
                supervisor_id="stage-1",
                prober=self.prober,
                errands=self._errands,
                attempts=self.attempts,
            ),
        )
