"""The supervisor: the engine's parts introduced to each other, with a life cycle.

It can be constructed from a config source, drivers, a journal and a clock with nothing
else running, and has done nothing to the world until `start`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from uphold.core import events, orders
from uphold.core.declaring import Declaration, declare
from uphold.core.ending import ending
from uphold.core.health import fatal
from uphold.core.orders import Order, Refusal, order_id
from uphold.core.outcomes import UNKILLABLE
from uphold.core.specs import Kind
from uphold.core.statuses import ALIVE, Exit, Fault, State, SupervisorStatus
from uphold.engine.auditing import audit_entry
from uphold.engine.bus import LocalBus, Subscription
from uphold.engine.intake import Intake, declaration_meta
from uphold.engine.jobs import Job, Jobs, endings
from uphold.engine.ledger import Ledger
from uphold.engine.performer import Performer
from uphold.engine.reconciler import Reconciler
from uphold.engine.recovering import Recovered, as_recorded, recover, with_overrides
from uphold.engine.snapshots import Snapshot
from uphold.engine.telling import news_of, supervisor_note
from uphold.ports.journals import Batch
from uphold.ports.logs import Log, NoLog
from uphold.wire.overrides import encode_override

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from uphold.core.absorbing import Observed
    from uphold.core.events import Event, Recorded
    from uphold.core.orders import Wish
    from uphold.core.specs import WorkerSpec
    from uphold.ports.clocks import Clock
    from uphold.ports.configs import ConfigSource, Revision
    from uphold.ports.drivers import Driver, Trace
    from uphold.ports.journals import Journal, Memory

_DRAINING: Final = 5.0
_RETRY_JOURNAL: Final = 5.0
_AFTER_A_BUG: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a supervisor needs from the world."""

    clock: Clock
    journal: Journal
    drivers: Mapping[Kind, Driver]
    new_nonce: Callable[[], str]
    log: Log = NoLog()  # noqa: RUF009 - it has no state
    boot_id: str = ""
    companions: tuple[WorkerSpec, ...] = ()
    remembered: Mapping[str, str] | None = None
    """Operator overrides known from elsewhere, for when the journal has lost them."""
    strays: Callable[[Collection[str]], Awaitable[Sequence[Trace]]] | None = None
    """Finds processes of this home that the books do not know."""


class Supervisor:
    """Keeps what is declared running. One writer for each value; everybody else reads."""

    def __init__(self, config: ConfigSource, world: Surroundings) -> None:
        self._config = config
        self._world = world
        self._bus = LocalBus()
        self._snapshot = Snapshot()
        self._jobs = Jobs()
        self._ended: asyncio.Future[int] | None = None
        self._main: asyncio.Task[None] | None = None
        self._review_cancel: Callable[[], None] | None = None
        self._config_news: list[int] = []
        self._declaring: asyncio.Task[Job | Refusal] | None = None
        self._mending: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[Job | Refusal] | None = None
        self._last_words: list[Event] = []
        self._order_number = 0

    def snapshot(self) -> Snapshot:
        """Give what is wanted and known right now: frozen, no lock, no I/O."""
        return self._snapshot

    def subscribe(self, most: int = 10_000) -> Subscription:
        """Hear of everything from now on."""
        return self._bus.subscribe(most)

    @property
    def trouble(self) -> Fault | None:
        """What is wrong with the supervisor itself, if anything is."""
        if self._snapshot.last_error is not None:
            return self._snapshot.last_error
        unwritable = self._ledger.trouble
        if unwritable is None:
            return None
        return Fault(code="UPH_JOURNAL_UNAVAILABLE", message=unwritable)

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return self._ledger.last_seq

    # -- life cycle -------------------------------------------------------------------

    async def start(self, *, only_to_stop: bool = False) -> None:
        """Go on where the last supervisor stopped, then keep what is declared running.

        `only_to_stop` finds what still runs and ends it, on the terms it was started under.
        """
        world = self._world
        memory = world.journal.recall()
        settings = self._config.current.settings
        if not memory.overrides and world.remembered:
            memory = replace(memory, overrides=world.remembered)
        recovered = recover(memory, settings.workers, world.companions, world.boot_id)
        nonce = world.new_nonce()
        self._order_number = int(nonce[:6], 16)
        self._ledger = Ledger(
            journal=world.journal,
            clock=world.clock,
            last_seq=memory.last_seq,
            origin=nonce[:8],
            troubled=self._mend_journal,
        )
        self._performer = Performer(world.drivers, self._report)
        self._reconciler = Reconciler(
            clock=world.clock,
            ledger=self._ledger,
            performer=self._performer,
            declared=lambda: self._snapshot.declaration,
            believe=self._believe,
            new_nonce=world.new_nonce,
        )
        self._intake = Intake(ledger=self._ledger, enact=self._enact)
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        for driver in world.drivers.values():
            driver.subscribe(self._report)
        if only_to_stop:
            declaration = as_recorded(recovered)
        else:
            declaration = await self._first_declaration(recovered)
        self._replace_snapshot(
            declaration=declaration,
            observed=recovered.observed,
            status=SupervisorStatus.PAUSED if declaration.paused else SupervisorStatus.ACTIVE,
        )
        await self._adopt(recovered.traces)
        self._reconciler.wake(None)
        await self._turn((*_missing(memory), supervisor_note("supervisor.started")))
        self._config.subscribe(self._configured)
        self._main = asyncio.create_task(self._run(), name="supervisor")

    async def settled(self, seconds: float) -> bool:
        """Wait until every start that was begun has come to something; False if time is up."""
        news = self._bus.subscribe(1)
        try:
            async with asyncio.timeout(seconds):
                while any(
                    s.state is State.STARTING for s in self._snapshot.observed.slots.values()
                ):
                    await anext(news)
        except (TimeoutError, StopAsyncIteration):
            return False
        finally:
            news.close()
        return True

    async def stop(self, *, keep_workers: bool = False, author: str = "program") -> int:
        """End: with the workers, or leaving them; give the exit code."""
        wish = orders.ShutDown(keep_workers=keep_workers)
        await self.submit(self.order(wish, author=author, origin="program"))
        return await self.wait()

    async def abandon(self) -> None:
        """Let go at once, as if killed: workers notice nothing, and no end is recorded."""
        if self._main is not None:
            self._main.cancel()
            await asyncio.wait({self._main})

    async def wait(self) -> int:
        """Wait until the supervisor has ended; give its exit code."""
        assert self._ended is not None, "start() comes first"
        code = await asyncio.shield(self._ended)
        if self._main is not None:
            await asyncio.wait({self._main})
        return code

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(self._reconcile_for_ever(), name="reconcile"),
                    group.create_task(
                        self._intake.run(lambda: self._snapshot.declaration), name="intake"
                    ),
                    group.create_task(self._pulse(), name="pulse"),
                    group.create_task(self._beat(), name="heartbeat"),
                ]
                assert self._ended is not None
                await self._ended
                for loop in loops:
                    loop.cancel()
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        self._config.unsubscribe(self._configured)
        self._intake.close()
        await self._performer.drain(_DRAINING)
        for driver in self._world.drivers.values():
            driver.unsubscribe(self._report)
            await driver.close()
        self._replace_snapshot(status=SupervisorStatus.TERMINATED)
        if self._mending is not None:
            self._mending.cancel()
        stopped = self._ledger.number([*self._last_words, supervisor_note("supervisor.stopped")])
        await self._ledger.write(Batch(events=stopped))
        self._bus.publish(stopped)
        self._jobs.close()
        self._bus.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(1)

    # -- orders -----------------------------------------------------------------------

    def order(
        self,
        wish: Wish,
        *,
        author: str,
        origin: str,
        reason: str = "",
        label: str | None = None,
    ) -> Order:
        """Make an order with an id of its own."""
        at = self._world.clock.now().wall
        self._order_number += 1
        return Order(
            id=order_id(at, self._order_number),
            wish=wish,
            author=author,
            origin=origin,
            at=at,
            reason=reason,
            label=label,
        )

    async def submit(self, order: Order) -> Job | Refusal:
        """Hand in an order: audited and declared, or refused. The job says when it is done."""
        answer = await self._intake.submit(order)
        if isinstance(answer, Refusal):
            return answer
        if isinstance(order.wish, orders.SignalWorkers):
            self._send_signal(order.wish)
        await self._review()
        return answer

    def job(self, job_id: str) -> Job | None:
        """Find an order that is still under way."""
        return self._jobs.find(job_id)

    def _enact(self, declaration: Declaration, recorded: list[Recorded], taken: list[Job]) -> None:
        status = SupervisorStatus.PAUSED if declaration.paused else SupervisorStatus.ACTIVE
        self._replace_snapshot(declaration=declaration, status=status)
        self._bus.publish(recorded)
        for each in taken:
            self._jobs.follow(each)
            wish = each.accepted.wish
            if isinstance(wish, orders.Declare):
                self._config_news.append(declaration.config_version)
                self._reconciler.wake(None)
            elif isinstance(
                wish, orders.PauseSupervisor | orders.ResumeSupervisor | orders.ShutDown
            ):
                self._reconciler.wake(None)
            else:
                self._reconciler.wake(each.accepted.names)

    def _send_signal(self, wish: orders.SignalWorkers) -> None:
        for name in wish.names:
            for slot in self._snapshot.observed.of(name):
                status = self._snapshot.observed.slots[slot]
                if status.state in ALIVE:
                    self._performer.driver(status.terms).signal(slot, wish.signal)

    def _configured(self, revision: Revision) -> None:
        """Hear of a new configuration, from whatever thread read it."""
        self._loop.call_soon_threadsafe(self._declare, revision)

    def _declare(self, revision: Revision) -> None:
        settings = revision.settings
        wish = orders.Declare(specs=settings.workers, source=settings.source)
        order = self.order(wish, author="configuration", origin="config", reason="file changed")
        self._declaring = self._loop.create_task(self.submit(order), name="declare")

    async def declaring(self) -> Job | Refusal | None:
        """Give the order that came of the newest configuration, if there was one since start."""
        return None if self._declaring is None else await asyncio.shield(self._declaring)

    # -- one turn ---------------------------------------------------------------------

    def _report(self, fact: events.SlotFact) -> None:
        self._reconciler.report(fact)

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._reconciler.wait()
            try:
                await self._turn()
            except Exception as error:  # noqa: BLE001 - the loop's boundary: recorded, then on
                await self._failed(error)

    async def _turn(self, news: tuple[Event, ...] = ()) -> None:
        config_news, self._config_news = self._config_news, []
        await self._reconciler.turn(self._snapshot.observed, news)
        for version in config_news:
            await self._tell([supervisor_note("reconciliation.complete", version=version)])
        await self._review()
        self._close_if_done()

    async def _failed(self, error: Exception) -> None:
        self._world.log.write("ERROR", "reconciliation.failed", repr(error))
        version = self._snapshot.declaration.config_version
        note = supervisor_note("reconciliation.failed", error=repr(error), version=version)
        await self._tell([replace(note, severity="error")])
        await self._world.clock.sleep(_AFTER_A_BUG)
        self._reconciler.wake(None)

    def _believe(self, observed: Observed, recorded: list[Recorded], touched: set[str]) -> None:
        del touched
        self._replace_snapshot(observed=observed)
        self._bus.publish(recorded)

    async def _tell(self, news: Sequence[Event]) -> None:
        recorded = self._ledger.number(news)
        await self._ledger.write(Batch(events=recorded))
        self._bus.publish(recorded)

    async def tell(self, note: Event) -> None:
        """Put a fact from outside the engine on record."""
        await self._tell([note])

    def _replace_snapshot(self, **changes: object) -> None:
        self._snapshot = replace(
            self._snapshot,
            version=self._snapshot.version + 1,
            taken_at=self._world.clock.now(),
            **changes,  # type: ignore[arg-type]
        )

    async def _review(self) -> None:
        """See which orders have come true."""
        snapshot = self._snapshot
        now = self._world.clock.now()
        ended, again = self._jobs.review(snapshot.declaration, snapshot.observed, now)
        if self._review_cancel is not None:
            self._review_cancel()
            self._review_cancel = None
        if again is not None:
            self._review_cancel = self._world.clock.alarm(again, lambda: self._reconciler.wake(()))
        if not ended:
            return
        news, audit = endings(ended)
        recorded = self._ledger.number(news)
        await self._ledger.write(
            Batch(events=recorded, jobs=[job.row for job in ended], audit=audit)
        )
        self._bus.publish(recorded)

    # -- beginning, beating, ending ---------------------------------------------------

    async def _first_declaration(self, recovered: Recovered) -> Declaration:
        base, overrides = recovered.declaration, recovered.overrides
        settings = self._config.current.settings
        wish = orders.Declare(specs=settings.workers, source=settings.source)
        order = self.order(wish, author="configuration", origin="config", reason="start")
        declared = declare(base, order)
        assert isinstance(declared, Declaration)
        declared = with_overrides(declared, overrides)
        recorded = self._ledger.number(news_of(order, base, declared))
        await self._ledger.write(
            Batch(
                events=recorded,
                audit=[audit_entry(order, ())],
                overrides={
                    name: encode_override(override) if name in declared.workers else None
                    for name, override in overrides.items()
                },
                meta={**declaration_meta(declared), "boot_id": self._world.boot_id},
            )
        )
        self._bus.publish(recorded)
        return declared

    async def _adopt(self, traces: tuple[Trace, ...]) -> None:
        find_strays = self._world.strays
        known = self._snapshot.observed.slots
        strays = () if find_strays is None else await find_strays(tuple(known))
        by_driver: dict[int, tuple[Driver, list[Trace]]] = {}
        for trace in (*traces, *strays):
            driver = self._performer.driver(trace.spec)
            by_driver.setdefault(id(driver), (driver, []))[1].append(trace)
        for driver, group in by_driver.values():
            await driver.adopt(group)

    async def _pulse(self) -> None:
        """Look at everything once in a while, whatever the events said (M-13)."""
        while True:
            await self._world.clock.sleep(self._config.current.settings.supervisor.reconcile_every)
            self._look_for_drift()

    async def _beat(self) -> None:
        """Put our own life on record, at once and then regularly; paused or not (O-16, O-26)."""
        while True:
            await self._tell([supervisor_note("supervisor.heartbeat")])
            await self._world.clock.sleep(self._config.current.settings.supervisor.heartbeat_every)

    def _mend_journal(self) -> None:
        """Try again until the journal can be written; told by the ledger, once at a time."""
        if self._mending is None or self._mending.done():
            self._mending = self._loop.create_task(self._retry_journal(), name="mend")

    async def _retry_journal(self) -> None:
        while self._ledger.trouble:
            await self._world.clock.sleep(_RETRY_JOURNAL)
            await self._ledger.retry()

    def _look_for_drift(self) -> None:
        now = self._world.clock.now()
        self._replace_snapshot(
            last_reconcile=now.wall, reconcile_count=self._snapshot.reconcile_count + 1
        )
        if self._snapshot.declaration.paused:
            return
        for fact in drifted(self._snapshot.observed, self._world.drivers, now.wall):
            self._report(fact)
        self._reconciler.wake(None)

    def _close_if_done(self) -> None:
        """End when a shutdown has come true, or begin one when an essential worker has ended."""
        assert self._ended is not None
        snapshot = self._snapshot
        closing = snapshot.declaration.closing
        if self._ended.done():
            return
        if closing is None:
            cause = fatal(snapshot.declaration, snapshot.observed)
            if cause is not None and self._ending is None:
                fault = Fault(code="UPH_WORKER_ESSENTIAL_ENDED", message=cause)
                self._replace_snapshot(last_error=fault)
                order = self.order(
                    orders.ShutDown(), author="supervisor", origin="supervisor", reason=cause
                )
                self._ending = asyncio.create_task(self.submit(order), name="essential")
            return
        end = ending(snapshot.declaration, snapshot.observed)
        if end is not None:
            if end.error is not None:
                self._replace_snapshot(last_error=Fault(code=UNKILLABLE, message=end.error))
                note = supervisor_note("supervisor.shutdown_timeout", error=end.error)
                self._last_words.append(replace(note, severity="error"))
            self._ended.set_result(1 if self._snapshot.last_error else 0)


def _missing(memory: Memory) -> tuple[Event, ...]:
    """Name the events that a power cut took, if the journal knows of any."""
    lost = memory.meta.get("gap")
    if not lost:
        return ()
    first, _, last = lost.partition("-")
    note = supervisor_note("gap", from_seq=int(first), to_seq=int(last))
    return (replace(note, severity="warning"),)


def drifted(
    observed: Observed, drivers: Mapping[Kind, Driver], wall: float
) -> list[events.SlotFact]:
    """Find slots that are believed to run and do not."""
    seen = {slot: s for driver in drivers.values() for slot, s in driver.states().items()}
    facts: list[events.SlotFact] = []
    for slot, status in observed.slots.items():
        if status.state is not State.RUNNING:
            continue
        sighting = seen.get(slot)
        if sighting is not None and sighting.connected:
            continue
        facts.append(
            events.Exited(
                slot=slot,
                generation=status.generation,
                exit=Exit(code=None, signal=None, at=wall),
            )
        )
    return facts
