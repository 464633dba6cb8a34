"""A driver of simulated processes that does what the real one does, step by step.

Starts are accepted, looked into, begun or withdrawn; ends are told with what is left behind; what
an earlier supervisor started is found by the slot's own file. Calls may be slow, and may raise.
"""

from __future__ import annotations

import asyncio

from proofs.simulated_machine import KILL, TERM
from proofs.simulated_runs import Run, Runs
from uphold.core.events import Started, StartFailed
from uphold.core.names import worker_of
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import Fault
from uphold.ports.drivers import Trace

PATIENCE = 3.0
STEP = 0.25


class Order:
    """A start that has been accepted."""

    __slots__ = ("attempt", "launch", "waking", "withdrawn")

    def __init__(self, launch):
        self.launch = launch
        self.withdrawn = False
        self.attempt = None
        self.waking = asyncio.Event()


class SimulatedDriver(Runs):
    """Satisfies the driver's port in a simulated machine."""

    def __init__(self, machine, clock, weather):
        super().__init__(machine, clock, weather)
        self._accepted = {}

    def die(self):
        """End with the supervisor: whatever is under way stops where it just was."""
        self.dead = True
        for run in self._runs.values():
            if run.process is not None:
                run.process.watcher = None
        for order in [order for group in self._accepted.values() for order in group]:
            launch = order.launch
            if order.attempt is None or order.withdrawn or self._rng.random() < 0.5:
                continue
            # Between the intent in the slot's file and the fact: with and without the process.
            if not self._machine.living(launch.slot):
                self._write(launch, None)
                if self._rng.random() < 0.5:
                    self._machine.bear(launch)

    def add(self, spec):
        self._specs[spec.name] = spec

    def remove(self, name):
        self._specs.pop(name, None)
        for slot in [slot for slot, run in self._runs.items() if worker_of(slot) == name]:
            if self._runs[slot].over:
                del self._runs[slot]

    async def start(self, launch, deadline=None):
        await self.start_all((launch,), deadline)

    async def start_all(self, launches, deadline=None):
        self._live()
        for launch in launches:
            self._eye.starting(launch)
        orders = [self._accept(launch) for launch in launches]
        try:
            others = []
            for order in orders:
                self._weather.stumble()
                slow = self._weather.slowness()
                if not order.withdrawn and (slow or not self._start_at_once(order)):
                    others.append((order, slow))
                if self._rng.random() < 0.1:
                    await asyncio.sleep(0)
            for order, slow in others:
                order.attempt = asyncio.create_task(self._start_when_free(order, slow))
            await asyncio.gather(*(order.attempt for order, _ in others))
        finally:
            for order in orders:
                self._settle(order)

    async def stop(self, slot, how, *, generation=0):
        self._live()
        self._eye.ending("stop", slot, generation)
        self._weather.stumble()
        run = await self._run_to_end(slot, generation)
        if run is None or run.process is None:
            return
        run.stopping = True
        self._machine.send(run.process, TERM)

    async def kill(self, slot, *, generation=0):
        self._live()
        self._eye.ending("kill", slot, generation)
        self._weather.stumble()
        run = await self._run_to_end(slot, generation)
        if run is None or run.process is None:
            return
        run.stopping = True
        self._machine.send(run.process, KILL)
        self._empty(run)

    def signal(self, slot, signal):
        run = self._runs.get(slot)
        return run is not None and run.process is not None and run.process.alive

    def _accept(self, launch):
        order = Order(launch)
        self._accepted.setdefault(launch.slot, []).append(order)
        return order

    def _settle(self, order):
        left = [each for each in self._accepted.get(order.launch.slot, ()) if each is not order]
        if left:
            self._accepted[order.launch.slot] = left
        else:
            self._accepted.pop(order.launch.slot, None)

    def _start_at_once(self, order):
        launch = order.launch
        run = self._runs.get(launch.slot)
        if (run is not None and not run.over) or self._machine.living(launch.slot):
            return False
        self._spawn(launch)
        self._settle(order)
        return True

    def _spawn(self, launch):
        self._write(launch, None)
        if self._rng.random() < self._machine.temper(launch.slot).missing:
            self._fail(launch, "UPH_START_NOT_FOUND", "there is no such program.", hopeless=True)
            return
        process = self._machine.bear(launch)
        self._write(launch, process.identity)
        self._hold(Run(launch.slot, launch.generation, process))
        self._tell(
            Started(slot=launch.slot, generation=launch.generation, identity=process.identity)
        )

    def _fail(self, launch, code, message, *, hopeless=False):
        fault = Fault(code=code, message=message)
        self._tell(
            StartFailed(
                slot=launch.slot, generation=launch.generation, fault=fault, hopeless=hopeless
            )
        )

    async def _start_when_free(self, order, slow):
        loop = asyncio.get_running_loop()
        if slow:
            timer = loop.call_later(slow, order.waking.set)
            await order.waking.wait()
            timer.cancel()
        limit = loop.time() + PATIENCE
        while not order.withdrawn and not self.dead and not self._try_to_start(order.launch):
            if loop.time() >= limit:
                self._fail(order.launch, "UPH_SLOT_HELD", "its slot is held.")
                break
            await asyncio.sleep(STEP)
        self._settle(order)

    def _try_to_start(self, launch):
        run = self._runs.get(launch.slot)
        if run is not None and not run.over:
            if run.process is None or run.stopping or not run.process.alive:
                return False
            run.generation = launch.generation
            self._tell_adopted(run)
            return True
        main = self._machine.main(launch.slot)
        if main is not None:
            self._take_in(launch.slot, launch.generation, main)
            return True
        if self._machine.living(launch.slot):
            self._kill_all(launch.slot)
            return False
        self._spawn(launch)
        return True

    async def _withdraw(self, slot):
        orders = tuple(self._accepted.get(slot, ()))
        for order in orders:
            order.withdrawn = True
            order.waking.set()
        attempts = [order.attempt for order in orders if order.attempt is not None]
        if attempts:
            await asyncio.wait(attempts)
        return max((order.launch.generation for order in orders), default=0)

    async def _run_to_end(self, slot, asked):
        asked = max(asked, await self._withdraw(slot))
        run = self._runs.get(slot)
        if run is None:
            record = self._record(slot)
            trace = Trace(
                slot=slot,
                generation=asked if record is None else max(asked, record.generation),
                nonce="" if record is None else record.nonce,
                identity=None if record is None else record.identity,
                spec=WorkerSpec(name=worker_of(slot)),
            )
            await self.adopt((trace,))
            return self._runs.get(slot)
        run.generation = max(run.generation, asked)
        if not run.over:
            return run
        self._see_to_gone(run)
        return None
