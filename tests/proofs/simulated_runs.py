"""Runs of simulated processes: held, found again, ended and emptied, as the real driver does it."""

from __future__ import annotations

import asyncio

from proofs.simulated_machine import KILL, Record
from uphold.core.events import Adopted, Exited, Gone, StopFailed
from uphold.core.names import slot_name, worker_of
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import UNKILLABLE, Exit, Fault
from uphold.drivers.listeners import Listeners
from uphold.ports.drivers import Sighting, Trace

COMPLAINS_AFTER = 2.0


class Run:
    """One run of a slot that is, or was, in sight."""

    __slots__ = (
        "adopted",
        "emptying",
        "exit",
        "exit_told",
        "generation",
        "process",
        "slot",
        "stopping",
    )

    def __init__(self, slot, generation, process=None, *, adopted=False):
        self.slot = slot
        self.generation = generation
        self.process = process
        self.adopted = adopted
        self.stopping = False
        self.exit = None
        self.exit_told = False
        self.emptying = None

    @property
    def over(self):
        return self.process is None and self.emptying is None


class Runs:
    """What a driver sees and tells of the slots; who starts and stops them is another matter."""

    def __init__(self, machine, clock, weather):
        self.dead = False
        self._machine = machine
        self._clock = clock
        self._weather = weather
        self._rng = machine.rng
        self._eye = machine.eye
        self._facts = Listeners()
        self._specs = {}
        self._runs = {}

    @property
    def listeners(self):
        return len(self._facts._listeners)

    @property
    def held(self):
        """How many processes are held."""
        return sum(run.process is not None for run in self._runs.values())

    async def adopt(self, traces):
        self._live()
        unsure = []
        for trace in traces:
            run = self._runs.get(trace.slot)
            if run is not None and not run.over:
                self._confirm(run)
                continue
            process = self._machine.find(trace.identity)
            if process is not None:
                self._take_in(trace.slot, trace.generation, process)
            else:
                unsure.append((trace, run))
        if unsure:
            await asyncio.sleep(self._rng.choice((0.0, 0.005, 0.06)))
        for trace, before in unsure:
            self._conclude(trace, before)

    async def find_strays(self, known):
        await asyncio.sleep(self._rng.choice((0.0, 0.005, 0.06)))
        found = []
        for process in self._machine.everybody():
            record = self._machine.records.get(process.slot)
            if process.slot in known or any(trace.slot == process.slot for trace in found):
                continue
            assert record is not None, "nothing is born without an intent in its slot's file"
            found.append(
                Trace(
                    slot=process.slot,
                    generation=record.generation,
                    nonce=record.nonce,
                    identity=record.identity,
                    spec=WorkerSpec(name=worker_of(process.slot)),
                )
            )
        return found

    def state(self, slot):
        return self.states()[slot]

    def states(self):
        seen = {
            slot: Sighting(slot=slot, generation=0, connected=False, info={})
            for spec in self._specs.values()
            for slot in (slot_name(spec.name, index + 1) for index in range(spec.replicas))
        }
        return seen | {slot: _sighting(run) for slot, run in self._runs.items()}

    def subscribe(self, listener):
        self._facts.add(listener)

    def unsubscribe(self, listener):
        self._facts.remove(listener)

    async def close(self):
        for run in self._runs.values():
            if run.process is not None:
                run.process.watcher = None
                run.process = None
            if run.emptying is not None:
                run.emptying.cancel()
        await asyncio.sleep(0)

    def _live(self):
        if self.dead:
            raise asyncio.CancelledError

    def _tell(self, fact):
        if not self.dead:
            self._eye.told(fact)
            self._facts.tell(fact)
            if self._weather.echoes and self._rng.random() < self._weather.echoes:
                later = self._rng.expovariate(1.0 / 5.0)
                self._machine.loop.call_later(later, self._echo, fact)

    def _echo(self, fact):
        """Tell a fact again if the slot has had a newer run since: that must change nothing."""
        run = self._runs.get(fact.slot)
        if not self.dead and run is not None and run.generation > fact.generation:
            self._eye.trace("echo", fact.slot, fact.generation)
            self._facts.tell(fact)

    def _write(self, launch, identity):
        self._machine.records[launch.slot] = Record(
            launch.generation, launch.nonce, identity, self._machine.boot_id
        )

    def _record(self, slot):
        record = self._machine.records.get(slot)
        return record if record is not None and record.boot_id == self._machine.boot_id else None

    def _see_to_gone(self, run):
        if self._machine.living(run.slot):
            self._empty(run)
        else:
            self._tell(Gone(slot=run.slot, generation=run.generation, proof="nothing is left"))

    def _confirm(self, run):
        if run.process is not None and run.process.alive and not run.stopping:
            self._tell_adopted(run)

    def _conclude(self, trace, before):
        if self.dead:
            return
        meanwhile = self._runs.get(trace.slot)
        record = self._record(trace.slot)
        generation = max(trace.generation, 0 if record is None else record.generation)
        if meanwhile is not None and meanwhile is not before:
            meanwhile.generation = max(meanwhile.generation, generation)
            if meanwhile.over:
                self._see_to_gone(meanwhile)
            else:
                self._confirm(meanwhile)
            return
        main = self._machine.main(trace.slot)
        if main is not None:
            self._take_in(trace.slot, generation, main)
            return
        run = self._runs[trace.slot] = Run(trace.slot, generation)
        run.exit = Exit(code=None, signal=None, at=self._clock.now().wall)
        run.exit_told = trace.identity is None
        if self._machine.living(trace.slot):
            self._empty(run)
            return
        told = None if run.exit_told else run.exit
        self._tell(Gone(slot=run.slot, generation=generation, proof="nothing is left", exit=told))

    def _take_in(self, slot, generation, process):
        run = Run(slot, generation, process, adopted=True)
        self._hold(run)
        self._tell_adopted(run)

    def _tell_adopted(self, run):
        identity = run.process.identity
        self._tell(Adopted(slot=run.slot, generation=run.generation, identity=identity))

    def _hold(self, run):
        self._runs[run.slot] = run
        run.process.watcher = lambda process, lost: self._ended(run, process, lost)
        if not run.process.alive:
            self._ended(run, run.process, lost=False)

    def _ended(self, run, process, lost):
        if self.dead or run.process is not process:
            return
        if lost and not run.stopping and not self._machine.living(run.slot):
            run.process = None  # only looking tells
            return
        code = process.code
        seen = self._weather.sees_exits or not run.adopted
        run.exit = Exit(
            code=code if seen and code >= 0 else None,
            signal=-code if seen and code < 0 else None,
            at=self._clock.now().wall,
        )
        run.exit_told = True
        left_overs = run.stopping or bool(self._machine.living(run.slot))
        if left_overs:
            self._empty(run)
        else:
            run.process = None
        self._tell(
            Exited(slot=run.slot, generation=run.generation, exit=run.exit, left_overs=left_overs)
        )

    def _empty(self, run):
        if run.emptying is None:
            run.emptying = asyncio.get_running_loop().create_task(self._emptied(run))

    def _kill_all(self, slot):
        for process in self._machine.living(slot):
            self._machine.send(process, KILL)

    async def _emptied(self, run):
        loop = asyncio.get_running_loop()
        began, pause, complained = loop.time(), 0.005, False
        while not self.dead:
            self._kill_all(run.slot)
            await asyncio.sleep(pause)
            if not self._machine.living(run.slot) and run.exit is not None:
                break
            if loop.time() - began >= COMPLAINS_AFTER and not complained:
                complained = True
                fault = Fault(code=UNKILLABLE, message=f"{run.slot} survives SIGKILL")
                self._tell(StopFailed(slot=run.slot, generation=run.generation, fault=fault))
            pause = 1.0 if complained else min(pause * 4, 0.5)
        run.process = None
        run.emptying = None
        told = None if run.exit_told else run.exit
        self._tell(
            Gone(slot=run.slot, generation=run.generation, proof="nothing is left", exit=told)
        )


def _sighting(run):
    process = run.process
    if process is None or run.exit is not None:
        return Sighting(slot=run.slot, generation=run.generation, connected=False, info={})
    if not process.alive:
        ending = {"ending": True}
        return Sighting(slot=run.slot, generation=run.generation, connected=False, info=ending)
    return Sighting(slot=run.slot, generation=run.generation, connected=True, info={})
