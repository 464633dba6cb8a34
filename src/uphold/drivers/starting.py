"""May this slot be started now? Only with its lock in our hands and its last run known to be gone.

A slot whose last run lives is taken in instead; nothing is ever started beside it. A start that
has not begun can be withdrawn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.events import Adopted, Started, StartFailed
from uphold.core.statuses import Fault
from uphold.drivers.crews import Crew
from uphold.drivers.finding import Verdict
from uphold.drivers.launching import Launcher, Prepared, start_failed
from uphold.drivers.runs import Run
from uphold.errors import HostFailure
from uphold.host.clock import boot_id
from uphold.host.processes import Process, find
from uphold.host.processes.slotlocks import SlotLock, read_record
from uphold.host.processes.spawning import is_quick
from uphold.ports.drivers import Launch, Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.drivers.emptying import Emptier
    from uphold.drivers.finding import Finder, Lead
    from uphold.drivers.listeners import Listeners
    from uphold.drivers.watching import Watch
    from uphold.host.homes import Home
    from uphold.host.processes.groups import Groups
    from uphold.ports.clocks import Clock

SLOT_HELD: Final = "UPH_SLOT_HELD"
START_TIMEOUT: Final = "UPH_START_TIMEOUT"
SLICE: Final = 0.01
"""How long starting and adopting may go on before the loop gets its turn."""
_WORTH_A_CREW: Final = 4
"""From this many starts on, threads are worth their making."""
_PATIENCE: Final = 3.0
_STEP: Final = 0.05


class Order:
    """One launch that was accepted and has not come to its end."""

    __slots__ = ("attempt", "launch", "withdrawn")

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.withdrawn = False
        """Its end was asked for before it began: nothing may be started for it any more."""
        self.attempt: asyncio.Future[None] | None = None
        """Looks into a slot that is not plainly free, or spawns it on another thread."""


class Slice:
    """What all who start something may take of one turn of the loop, together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: float | None = None

    async def share(self) -> None:
        """Go on if this turn has time left, else in a later one; who came first goes on first."""
        while self._began is not None and self._clock.now().mono - self._began > SLICE:  # noqa: ASYNC110 - the next turn is meant
            await asyncio.sleep(0)
        if self._began is None:
            self._began = self._clock.now().mono
            asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        self._began = None


class _Aside(NamedTuple):
    """A start that a crew is at."""

    order: Order
    prepared: Prepared
    earlier: tuple[str, ...]
    """Nonces of earlier runs of the slot."""


class Starter:
    """Starts slots, each exactly once."""

    def __init__(  # noqa: PLR0913 - introduces those who do the parts
        self,
        home: Home,
        clock: Clock,
        *,
        facts: Listeners,
        watch: Watch,
        launcher: Launcher,
        groups: Groups,
        finder: Finder,
        emptier: Emptier,
    ) -> None:
        self._home = home
        self._clock = clock
        self._facts = facts
        self._watch = watch
        self._launcher = launcher
        self._groups = groups
        self._finder = finder
        self._emptier = emptier
        self._accepted: dict[str, list[Order]] = {}
        self._crew: Crew[_Aside] | None = None
        self._rushes = 0
        self._slice = Slice(clock)

    async def start_all(self, launches: Sequence[Launch], deadline: float | None) -> None:
        """Start these; those that must wait for something do not keep the others waiting."""
        orders = [self._accept(launch) for launch in launches]
        try:
            attempts = []
            for order in await self._start_those_free(orders, deadline):
                order.attempt = asyncio.create_task(self._start_when_free(order, deadline))
                attempts.append(order.attempt)
            if attempts:
                await asyncio.gather(*attempts)
        finally:
            for order in orders:
                self._settle(order)

    async def withdraw(self, slot: str) -> int:
        """Call off what has not begun of a slot, and give its generation; 0 if there is nothing.

        Whatever looks into the slot on its behalf has let go of the slot's lock by then.
        """
        orders = tuple(self._accepted.get(slot, ()))
        for order in orders:
            order.withdrawn = True
        attempts = [order.attempt for order in orders if order.attempt is not None]
        if attempts:
            await asyncio.wait(attempts)
        return max((order.launch.generation for order in orders), default=0)

    def _accept(self, launch: Launch) -> Order:
        order = Order(launch)
        self._accepted.setdefault(launch.slot, []).append(order)
        return order

    def _settle(self, order: Order) -> None:
        """Forget an order that has begun, failed or been withdrawn; once or more."""
        slot = order.launch.slot
        left = [each for each in self._accepted.get(slot, ()) if each is not order]
        if left:
            self._accepted[slot] = left
        else:
            self._accepted.pop(slot, None)

    async def _start_those_free(
        self, orders: Sequence[Order], deadline: float | None
    ) -> Sequence[Order]:
        """Start, slice by slice, those that are plainly free; give the others."""
        crew = None if len(orders) < _WORTH_A_CREW else self._call_crew()
        others = []
        try:
            for order in orders:
                if crew is not None:
                    await crew.have_room()
                await self._slice.share()
                if order.withdrawn:
                    continue
                if self._is_late(deadline):
                    self._facts.tell(_too_late(order.launch))
                    self._settle(order)
                elif not self._start_at_once(order, crew):
                    others.append(order)
            if crew is not None:
                await crew.finish()
        finally:
            if crew is not None:
                self._let_crew_go()
        return others

    def _call_crew(self) -> Crew[_Aside]:
        """Give the crew that all starts of a rush share."""
        if self._crew is None:
            self._crew = Crew(self._spawn_aside, self._spawned)
        self._rushes += 1
        return self._crew

    def _let_crew_go(self) -> None:
        self._rushes -= 1
        if not self._rushes and self._crew is not None:
            self._crew.dismiss()
            self._crew = None

    def _start_at_once(self, order: Order, crew: Crew[_Aside] | None) -> bool:
        """Start a slot that is plainly free; False if its last run must be looked into first."""
        launch = order.launch
        run = self._watch.runs.get(launch.slot)
        if run is not None and not run.over:
            return False
        earlier = () if run is None else run.nonces
        try:
            lock = SlotLock.take(self._home.slot_lock(launch.slot))
            if lock is None:
                return False
            if run is None and _may_live(lock):
                lock.close()
                return False
            prepared = self._prepare(launch, lock)
            if crew is not None and is_quick(prepared.program):
                order.attempt = asyncio.get_running_loop().create_future()
                crew.hand(_Aside(order, prepared, earlier))
                return True
            self._launch(prepared, earlier)
        except (HostFailure, OSError, ValueError) as cause:
            self._facts.tell(start_failed(launch, cause))
        self._settle(order)
        return True

    def _spawn_aside(self, aside: _Aside) -> int:
        """Do the part of a start that a thread of the crew may do."""
        pid = self._launcher.spawn(aside.prepared, alone=False)
        # At once, on this thread: it may end before the loop hears of it, and is nobody's orphan.
        self._watch.claim(pid)
        return pid

    def _spawned(self, aside: _Aside, outcome: int | Exception) -> None:
        """Take in what the crew has started. Whoever withdrew it meanwhile ends it then."""
        try:
            self._take_in(aside.prepared, outcome, aside.earlier)
        except (HostFailure, OSError, ValueError) as cause:
            if isinstance(outcome, int):
                self._watch.disclaim(outcome)
            self._facts.tell(start_failed(aside.order.launch, cause))
        attempt = aside.order.attempt
        if attempt is not None and not attempt.done():
            attempt.set_result(None)
        self._settle(aside.order)

    async def _start_when_free(self, order: Order, deadline: float | None) -> None:
        """Try until it is started or its time is over; one that is withdrawn says nothing."""
        limit = self._clock.now().mono + _PATIENCE
        try:
            failure = await self._keep_trying(order, limit, deadline)
        except (HostFailure, OSError, RuntimeError) as cause:
            failure = start_failed(order.launch, cause)
        if failure is not None and not order.withdrawn:
            self._facts.tell(failure)
        self._settle(order)

    async def _keep_trying(
        self, order: Order, limit: float, deadline: float | None
    ) -> StartFailed | None:
        while not order.withdrawn and not await self._try_to_start(order):
            if self._clock.now().mono >= limit or self._is_late(deadline):
                return await self._slot_held(order.launch)
            await self._clock.sleep(_STEP)
        return None

    async def _try_to_start(self, order: Order) -> bool:
        launch = order.launch
        run = self._watch.runs.get(launch.slot)
        if run is not None and not run.over:
            return self._take_over_running(launch, run)
        # The lock is in our hands before the look: whoever was just being born is visible by then.
        lock = SlotLock.take(self._home.slot_lock(launch.slot))
        try:
            lead = self._finder.follow(self._last_run(launch))
            verdict = await self._look_into(lead)
            if verdict.left_overs:
                await self._emptier.end_survivors(self._as_run(launch, lead.nonces))
                return False
            if order.withdrawn or self._watch.runs.get(launch.slot) is not run:
                _let_go(verdict.process)
                return False
            if verdict.process is not None:
                self._take_over(launch, verdict.process, lead.nonces)
                return True
            if lock is None:
                return False
            taken, lock = lock, None
            self._launch(self._prepare(launch, taken), lead.nonces)
        finally:
            if lock is not None:
                lock.close()
        return True

    async def _look_into(self, lead: Lead) -> Verdict:
        """Find the living main process of a slot; one that has ended is let go of."""
        if lead.process is not None and lead.process.alive():
            return Verdict(lead, lead.process)
        _let_go(lead.process)
        return await self._finder.look(lead) or Verdict(lead)

    def _take_over_running(self, launch: Launch, run: Run) -> bool:
        """Answer a start of a slot that runs: it goes on, under the new number."""
        if run.process is None or run.stopping or not run.process.alive():
            return False  # it is about to be gone
        run.generation = launch.generation
        identity = run.process.identity
        self._facts.tell(Adopted(slot=launch.slot, generation=launch.generation, identity=identity))
        return True

    def _take_over(self, launch: Launch, process: Process, nonces: tuple[str, ...]) -> None:
        run = self._as_run(launch, (process.identity.nonce, *nonces), process)
        run.adopted = True
        run.group = self._groups.around(launch.slot, launch.spec, process.identity.pid)
        self._watch.hold(run, process)
        self._facts.tell(
            Adopted(slot=launch.slot, generation=launch.generation, identity=process.identity)
        )

    def _prepare(self, launch: Launch, lock: SlotLock) -> Prepared:
        """Make a start ready, or let go of its lock."""
        try:
            return self._launcher.prepare(launch, lock)
        except BaseException:
            lock.close()
            raise

    def _launch(self, prepared: Prepared, earlier: tuple[str, ...]) -> None:
        outcome: int | Exception
        try:
            outcome = self._launcher.spawn(prepared)
        except (HostFailure, ValueError) as cause:
            outcome = cause
        self._take_in(prepared, outcome, earlier)

    def _take_in(
        self, prepared: Prepared, outcome: int | Exception, earlier: tuple[str, ...]
    ) -> None:
        launch = prepared.launch
        before = self._watch.runs.get(launch.slot)
        process = self._launcher.finish(prepared, outcome)
        run = self._as_run(launch, (launch.nonce, *earlier), process)
        run.group = prepared.group
        run.descended = not earlier or (before is not None and before.descended)
        self._watch.hold(run, process)
        self._facts.tell(
            Started(slot=launch.slot, generation=launch.generation, identity=process.identity)
        )

    def _as_run(
        self, launch: Launch, nonces: tuple[str, ...], process: Process | None = None
    ) -> Run:
        unique = tuple(dict.fromkeys(nonces))
        return Run(launch.slot, launch.generation, launch.spec, nonces=unique, process=process)

    def _last_run(self, launch: Launch) -> Trace:
        """Read what the slot's own file says about its last run."""
        record = read_record(self._home.slot_lock(launch.slot))
        return Trace(
            slot=launch.slot,
            generation=0 if record is None else record.generation,
            nonce="" if record is None else record.nonce,
            identity=None if record is None else record.identity,
            spec=launch.spec,
        )

    async def _slot_held(self, launch: Launch) -> StartFailed:
        record = read_record(self._home.slot_lock(launch.slot))
        run = self._as_run(launch, () if record is None else (record.nonce,))
        names = ", ".join(str(found) for found in await self._emptier.survivors(run) if found.pid)
        message = (
            f"{launch.slot} was not started: its slot is still held by "
            f"{names or 'a process that cannot be seen'}."
        )
        return _start_failed(launch, SLOT_HELD, message)

    def _is_late(self, deadline: float | None) -> bool:
        return deadline is not None and self._clock.now().mono >= deadline


def _may_live(lock: SlotLock) -> bool:
    """Tell whether the last run, which no longer holds its lock, may live all the same."""
    record = lock.read()
    if record is None or record.boot_id != boot_id():
        return False
    if record.identity is None:
        return True
    process = find(record.identity)
    if process is None:
        return False
    alive = process.alive()
    process.close()
    return alive


def _let_go(process: Process | None) -> None:
    if process is not None:
        process.close()


def _too_late(launch: Launch) -> StartFailed:
    message = f"{launch.slot} was not started: the time given for it was over."
    return _start_failed(launch, START_TIMEOUT, message)


def _start_failed(launch: Launch, code: str, message: str) -> StartFailed:
    fault = Fault(code=code, message=message)
    return StartFailed(slot=launch.slot, generation=launch.generation, fault=fault)
