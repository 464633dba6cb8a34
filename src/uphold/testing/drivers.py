"""A driver without processes: deterministic, scriptable, under the contract of the real one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from uphold.core.events import Adopted, Exited, Gone, SlotFact, Started, StartFailed, StopFailed
from uphold.core.names import slot_name, worker_of
from uphold.core.statuses import Exit, Fault, Identity
from uphold.drivers.listeners import Listeners
from uphold.ports.drivers import Launch, Sighting, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from uphold.core.specs import StopRule, WorkerSpec
    from uphold.ports.clocks import Clock
    from uphold.ports.drivers import Listener

BOOT: Final = "fake-boot"
PROOF: Final = "nothing of it exists in this world"
_TERM: Final = 15
_KILL: Final = 9


@dataclass(slots=True)
class World:
    """The processes themselves: they outlive the driver, as real ones outlive a supervisor."""

    alive: dict[str, Identity] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1001))
    deaf: set[str] = field(default_factory=set)
    """Slots that ignore the stop signal."""
    immortal: set[str] = field(default_factory=set)
    """Slots that survive SIGKILL."""

    def bear(self, slot: str, nonce: str) -> Identity:
        """Bring a process to life."""
        pid = next(self.numbers)
        self.alive[slot] = Identity(
            pid=pid, start_ticks=pid * 10, boot_id=BOOT, inode=pid, nonce=nonce
        )
        return self.alive[slot]


class FakeDriver:
    """Starts, stops and finds slots of a made-up world, at once and in order.

    Scripts: `fail_start`, `hang_start` and `release_start`, `end`, `drop`, `ignore_stop`,
    `survive_kill` and `let_die`. `calls` keeps every operation that would change the world.
    """

    def __init__(self, clock: Clock, world: World | None = None) -> None:
        self.world = world or World()
        self.calls: list[tuple[str, str]] = []
        self.signals: list[tuple[str, str]] = []
        self._clock = clock
        self._facts = Listeners()
        self._specs: dict[str, WorkerSpec] = {}
        self._generations: dict[str, int] = {}
        self._failures: dict[str, list[tuple[Fault, bool]]] = {}
        self._hanging: dict[str, asyncio.Event] = {}
        self._accepted: dict[str, int] = {}
        """Hanging starts that nobody has withdrawn, by generation."""

    def successor(self) -> FakeDriver:
        """Give the driver of the next supervisor, in the same world."""
        return FakeDriver(self._clock, self.world)

    def fail_start(self, slot: str, message: str = "no luck", *, hopeless: bool = False) -> None:
        """Let the next start of a slot fail; called again, the one after it too."""
        code = "UPH_START_NOT_FOUND" if hopeless else "UPH_START_FAILED"
        self._failures.setdefault(slot, []).append((Fault(code=code, message=message), hopeless))

    def hang_start(self, slot: str) -> None:
        """Let starts of a slot hang until released."""
        self._hanging[slot] = asyncio.Event()

    def release_start(self, slot: str) -> None:
        """Let a hanging start go on."""
        self._hanging.pop(slot).set()

    def end(
        self,
        slot: str,
        code: int | None = None,
        signal: int | None = None,
        *,
        left_overs: bool = False,
    ) -> None:
        """Let the main process of a slot end by itself; neither code nor signal: unseen."""
        del self.world.alive[slot]
        self._tell_exit(slot, code, signal, left_overs=left_overs)

    def empty(self, slot: str) -> None:
        """Let the last left-over of a slot be gone."""
        self._tell_gone(slot)

    def drop(self, slot: str) -> None:
        """Let a slot vanish without a word: only looking tells."""
        del self.world.alive[slot]

    def ignore_stop(self, slot: str) -> None:
        """Let a slot survive the stop signal; SIGKILL ends it."""
        self.world.deaf.add(slot)

    def survive_kill(self, slot: str) -> None:
        """Let a slot survive even SIGKILL."""
        self.world.immortal.add(slot)

    def let_die(self, slot: str) -> None:
        """Let a slot that survived SIGKILL end after all."""
        self.world.immortal.discard(slot)
        del self.world.alive[slot]
        self._tell_exit(slot, None, _KILL, left_overs=True)
        self._tell_gone(slot)

    def add(self, spec: WorkerSpec) -> None:
        self._specs[spec.name] = spec

    def remove(self, name: str) -> None:
        self._specs.pop(name, None)
        for slot in [slot for slot in self._generations if worker_of(slot) == name]:
            if slot not in self.world.alive:
                del self._generations[slot]

    async def start_all(self, launches: Sequence[Launch], deadline: float | None = None) -> None:
        await asyncio.gather(*(self.start(launch, deadline) for launch in launches))

    async def start(self, launch: Launch, deadline: float | None = None) -> None:
        self.calls.append(("start", launch.slot))
        slot, generation = launch.slot, launch.generation
        if slot in self._hanging:
            self._accepted[slot] = generation
            await self._hanging[slot].wait()
            if self._accepted.pop(slot, None) is None:
                return  # withdrawn meanwhile
        fault, hopeless = self._next_failure(slot, deadline)
        if fault is not None:
            fact = StartFailed(slot=slot, generation=generation, fault=fault, hopeless=hopeless)
            self._facts.tell(fact)
            return
        self._generations[slot] = generation
        living = self.world.alive.get(slot)
        if living is not None:
            self._facts.tell(Adopted(slot=slot, generation=generation, identity=living))
        else:
            born = self.world.bear(slot, launch.nonce)
            self._facts.tell(Started(slot=slot, generation=generation, identity=born))

    async def stop(self, slot: str, how: StopRule, *, generation: int = 0) -> None:
        self.calls.append(("stop", slot))
        self._asked_about(slot, generation)
        self.signals.append((slot, how.signal))
        if slot in self.world.alive and slot not in self.world.deaf:
            del self.world.alive[slot]
            self._tell_exit(slot, None, _TERM, left_overs=True)
        if slot not in self.world.alive:
            self._tell_gone(slot)

    async def kill(self, slot: str, *, generation: int = 0) -> None:
        self.calls.append(("kill", slot))
        self._asked_about(slot, generation)
        if slot in self.world.immortal and slot in self.world.alive:
            fault = Fault(code="UPH_STOP_UNKILLABLE", message=f"{slot} survives SIGKILL")
            about = self._generations.get(slot, 0)
            self._facts.tell(StopFailed(slot=slot, generation=about, fault=fault))
            return
        if self.world.alive.pop(slot, None) is not None:
            self._tell_exit(slot, None, _KILL, left_overs=True)
        self._tell_gone(slot)

    def signal(self, slot: str, signal: str) -> bool:
        self.calls.append(("signal", slot))
        self.signals.append((slot, signal))
        return slot in self.world.alive

    async def adopt(self, traces: Sequence[Trace]) -> None:
        for trace in traces:
            self.calls.append(("adopt", trace.slot))
            self._generations[trace.slot] = trace.generation
            living = self.world.alive.get(trace.slot)
            known = trace.identity
            if living is not None and (known in {living, None} and living.nonce == trace.nonce):
                fact: SlotFact = Adopted(
                    slot=trace.slot, generation=trace.generation, identity=living
                )
                self._facts.tell(fact)
            else:
                unseen = None if known is None else self._exit(None, None)
                self._tell_gone(trace.slot, unseen)

    def state(self, slot: str) -> Sighting:
        return self.states()[slot]

    def states(self) -> Mapping[str, Sighting]:
        declared = {
            slot_name(spec.name, index + 1): 0
            for spec in self._specs.values()
            for index in range(spec.replicas)
        }
        seen = {}
        for slot, generation in (declared | self._generations).items():
            living = self.world.alive.get(slot)
            sighting = Sighting(slot=slot, generation=generation, connected=False, info={})
            if living is not None:
                sighting = replace(sighting, connected=True, info={"pid": living.pid})
            seen[slot] = sighting
        return seen

    def subscribe(self, listener: Listener) -> None:
        self._facts.add(listener)

    def unsubscribe(self, listener: Listener) -> None:
        self._facts.remove(listener)

    async def close(self) -> None:
        for hanging in self._hanging.values():
            hanging.set()

    def _next_failure(self, slot: str, deadline: float | None) -> tuple[Fault | None, bool]:
        if deadline is not None and self._clock.now().mono >= deadline:
            return Fault(code="UPH_START_TIMEOUT", message=f"{slot}: too late"), False
        waiting = self._failures.get(slot)
        return waiting.pop(0) if waiting else (None, False)

    def _asked_about(self, slot: str, generation: int) -> None:
        """Note the run that is to end; a start of it that hangs is withdrawn."""
        about = max(generation, self._accepted.pop(slot, 0))
        if about > self._generations.get(slot, 0):
            self._generations[slot] = about

    def _exit(self, code: int | None, signal: int | None) -> Exit:
        return Exit(code=code, signal=signal, at=self._clock.now().wall)

    def _tell_exit(
        self, slot: str, code: int | None, signal: int | None, *, left_overs: bool
    ) -> None:
        self._facts.tell(
            Exited(
                slot=slot,
                generation=self._generations.get(slot, 0),
                exit=self._exit(code, signal),
                left_overs=left_overs,
            )
        )

    def _tell_gone(self, slot: str, end: Exit | None = None) -> None:
        generation = self._generations.get(slot, 0)
        self._facts.tell(Gone(slot=slot, generation=generation, proof=PROOF, exit=end))
