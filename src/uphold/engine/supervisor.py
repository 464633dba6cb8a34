"""The supervisor: the engine's parts introduced to each other, with a life cycle.

It can be constructed from a config source, drivers, a journal and a clock with nothing
else running, and has done nothing to the world until `start`. Orders are the desk's
business, the snapshot the board's, deciding and acting the reconciler's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from uphold.core import orders
from uphold.core.declaring import Declaration, declare
from uphold.core.ending import ending
from uphold.core.events import Pardoned
from uphold.core.health import essentials, fatal
from uphold.core.specs import Kind
from uphold.core.statuses import UNKILLABLE, Fault, State
from uphold.engine.auditing import audit_entry
from uphold.engine.beating import Heart
from uphold.engine.board import Board
from uphold.engine.bus import Subscription
from uphold.engine.checking import Checks
from uphold.engine.desk import Desk
from uphold.engine.drifting import drifted
from uphold.engine.intake import declaration_meta
from uphold.engine.jobs import Job
from uphold.engine.ledger import Ledger
from uphold.engine.lives import Life
from uphold.engine.performer import Performer
from uphold.engine.reconciler import Reconciler
from uphold.engine.recovering import (
    Recovered,
    as_recorded,
    forgivable,
    missing,
    numbered,
    recover,
    with_overrides,
    with_remembered,
)
from uphold.engine.telling import news_of, supervisor_note
from uphold.ports.journals import Batch
from uphold.ports.logs import Log, NoLog
from uphold.wire.overrides import encode_override

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from uphold.core.absorbing import Observed
    from uphold.core.events import Event, SlotFact
    from uphold.core.events import Recorded as RecordedEvent
    from uphold.core.orders import Order
    from uphold.core.specs import Settings, WorkerSpec
    from uphold.core.statuses import SlotStatus
    from uphold.engine.attempts import Attempts
    from uphold.engine.errands import Run
    from uphold.engine.snapshots import Snapshot
    from uphold.ports.clocks import Clock
    from uphold.ports.configs import ConfigSource, Revision
    from uphold.ports.drivers import Driver, Trace
    from uphold.ports.journals import Journal, Memory
    from uphold.ports.probes import Prober

_DRAINING: Final = 5.0
_RETRY_JOURNAL: Final = 5.0
_AFTER_A_BUG: Final = 1.0
_ENDED_BADLY: Final = (State.BACKOFF, State.FAILED)
"""Where a slot stays when the supervisor stops (P8): nobody asks its driver to stop it."""


def no_companions(_settings: Settings) -> tuple[WorkerSpec, ...]:
    """Imply nothing: a supervisor inside another program brings nobody along."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a supervisor needs from the world."""

    clock: Clock
    journal: Journal
    drivers: Mapping[Kind, Driver]
    new_nonce: Callable[[], str]
    log: Log = NoLog()  # noqa: RUF009 - it has no state
    boot_id: str = ""
    companions: Callable[[Settings], tuple[WorkerSpec, ...]] = no_companions
    """Which workers of uphold's own a configuration implies."""
    remembered: Mapping[str, str] | None = None
    """Operator overrides known from elsewhere, for when the journal has lost them."""
    prober: Prober | None = None
    """Asks workers how they are; without one only what they say by themselves counts."""
    errands: Mapping[type, Run] = field(default_factory=dict)
    """Who carries out which orders that no plan can."""
    attempts: Attempts | None = None
    """Who is asked before each start of a single pass; a daemon starts as the plan says."""
    strays: Callable[[Collection[str]], Awaitable[Sequence[Trace]]] | None = None
    """Finds processes of this home that the books do not know."""
    supervisor_id: str = ""
    """Whom the log speaks of."""
    lag: Callable[[], float] = lambda: 0.0
    """How long the longest turn of the loop took of late."""


class Supervisor:
    """Keeps what is declared running. One writer for each value; everybody else reads."""

    desk: Desk
    """Where orders go; there from `start` on."""
    checks: Checks
    """Who sees to health; there from `start` on."""

    def __init__(self, config: ConfigSource, world: Surroundings) -> None:
        self._config = config
        self._world = world
        self._board = Board()
        self._ended: asyncio.Future[int] | None = None
        self._main: asyncio.Task[None] | None = None
        self._mending: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._complaint: Fault | None = None
        self._life = Life(world.log, world.supervisor_id)
        self.passes = 0
        """Turns that were completed; one that does not grow although asked for is a sick loop."""
        self._applied = 0
        """Version of the configuration whose reconciliation has been told."""
        self._essentials: tuple[int, tuple[str, ...]] = (-1, ())
        """Who is essential, and by which version of the configuration."""
        self._looked_again = False
        """Whether anything lives after all was looked for before the end."""

    def snapshot(self) -> Snapshot:
        """Give what is wanted and known right now: frozen, no lock, no I/O."""
        return self._board.snapshot

    def subscribe(self, most: int = 10_000) -> Subscription:
        """Hear of everything from now on."""
        return self._board.bus.subscribe(most)

    @property
    def running(self) -> bool:
        """Tell whether it has been started and has not ended."""
        return self._ended is not None and not self._ended.done()

    @property
    def heartbeat_every(self) -> float:
        """How often it says that it lives."""
        return self._config.current.settings.supervisor.heartbeat_every

    @property
    def trouble(self) -> Fault | None:
        """What is wrong with the supervisor itself, if anything is."""
        if self._board.snapshot.last_error is not None:
            return self._board.snapshot.last_error
        unwritable = self._ledger.trouble
        if unwritable is not None:
            return Fault(code="UPH_JOURNAL_UNAVAILABLE", message=unwritable)
        return self._complaint

    def complain(self, fault: Fault | None) -> None:
        """Show something that is wrong around the supervisor, until it is taken back."""
        self._complaint = fault
        self._board.change()

    @property
    def busy(self) -> bool:
        """Tell whether any start or stop is under way."""
        return self._performer.busy

    @property
    def rested(self) -> bool:
        """Tell whether all that has happened so far is answered, and nothing is under way."""
        return self._reconciler.rested and not self._performer.busy

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return self._ledger.last_seq

    def look(self) -> None:
        """Have one more turn, even if there is nothing to do."""
        self._reconciler.wake(())

    def look_at_all(self) -> None:
        """Have one more turn that looks at every worker."""
        self._reconciler.wake(None)

    async def tell(self, *news: Event) -> None:
        """Put facts on record and let them out."""
        await self._board.tell(self._ledger, news)

    async def beat(self) -> None:
        """Say once more that we live, with how things stand now."""
        await self._heart.beat()

    async def sync(self) -> int:
        """Have everything so far on the disk itself; gives the number of its last event."""
        seq = self._ledger.last_seq
        await self._ledger.write_or_refuse(Batch())
        return seq

    async def start(self, *, only_to_stop: bool = False, forgive: bool = False) -> None:
        """Go on where the last supervisor stopped, then keep what is declared running.

        `only_to_stop` finds what still runs and ends it, on the terms it was started under.
        `forgive` is for a restart that a person ordered: failures count anew (P8).
        """
        if self._ended is not None:
            self._life.say("WARNING", "supervisor.start_ignored", "has been started already")
            return
        self._life.say("INFO", "supervisor.starting", "starts")
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        memory = with_remembered(self._world.journal.recall(), self._world.remembered)
        self._introduce(memory)
        try:
            await self._begin(memory, only_to_stop=only_to_stop, forgive=forgive)
        except Exception as error:
            await self._fail_to_start(error)
            raise
        self._life.say("INFO", "supervisor.active", f"is {self._board.snapshot.status}")

    async def _begin(self, memory: Memory, *, only_to_stop: bool, forgive: bool) -> None:
        for driver in self._world.drivers.values():
            driver.subscribe(self._report)
        settings = self._config.current.settings
        companions = self._world.companions(settings)
        recovered = recover(memory, settings.workers, companions, self._world.boot_id)
        self._board.change(observed=recovered.observed)
        # Else the next supervisor of this boot would look for what ended with the last boot.
        await self._restate(recovered.restated)
        if only_to_stop:
            if self._world.remembered:  # what is not in the new books the next one never learns
                await self._ledger.write(Batch(overrides=memory.overrides))
            self._board.declare(as_recorded(recovered), ())
        else:
            await self._declare_first(recovered)
        if self._world.attempts is not None:
            self._world.attempts.begin(self._board.declaration)
        await self._adopt(recovered.traces)
        if forgive:
            for status in forgivable(recovered.observed):
                self._report(Pardoned(slot=status.slot))
        self._reconciler.wake(None)
        started = supervisor_note("supervisor.started")
        if self._board.declaration.paused:
            started = supervisor_note("supervisor.started", paused=True)
        await self._turn(*missing(memory), started)
        self._config.subscribe(self._configured)
        self._main = self._loop.create_task(self._run(), name="supervisor")

    async def settled(self, seconds: float) -> bool:
        """Wait until every start that was begun has come to something; False if time is up."""
        news = self.subscribe(1)
        try:
            async with asyncio.timeout(seconds):
                while self._board.snapshot.starting:
                    await anext(news)
        except (TimeoutError, StopAsyncIteration):
            return False
        finally:
            news.close()
        return True

    async def stop(self, *, keep_workers: bool = False, author: str = "program") -> int:
        """End: with the workers, or leaving them; give the exit code."""
        if not self.running:
            self._life.say("WARNING", "supervisor.stop_ignored", "does not run, so there is no end")
            return 0
        wish = orders.ShutDown(keep_workers=keep_workers)
        await self.desk.submit(self.desk.order(wish, author=author, origin="program"))
        return await self.wait()

    async def wait(self) -> int:
        """Wait until the supervisor has ended; give its exit code."""
        assert self._ended is not None, "start() comes first"
        code = await asyncio.shield(self._ended)
        if self._main is not None:
            await asyncio.wait({self._main})
        return code

    async def abandon(self, error: BaseException | None = None) -> None:
        """Let go at once, without any order: workers notice nothing. The error is put on record."""
        if self._main is not None:
            if isinstance(error, Exception):
                self._life.blame(error)
            self._main.cancel()
            await asyncio.wait({self._main})
            if self.running:  # cancelled before its first step: nobody has let go yet
                await self._let_go()

    def _introduce(self, memory: Memory) -> None:
        world = self._world
        nonce = world.new_nonce()
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
            declared=lambda: self._board.declaration,
            believe=self._believe,
            new_nonce=world.new_nonce,
            attempts=world.attempts,
        )
        self.checks = Checks(
            clock=world.clock,
            prober=world.prober,
            report=self._report,
            show=lambda vitals: self._board.change(vitals=vitals),
            log=world.log,
            promptly=world.attempts is not None,
        )
        self._heart = Heart(
            clock=world.clock,
            life=self._life,
            every=lambda: self.heartbeat_every,
            snapshot=self.snapshot,
            lag=world.lag,
            tell=self.tell,
            unwritable=lambda: self._ledger.trouble,
        )
        self.desk = Desk(
            clock=world.clock,
            board=self._board,
            ledger=self._ledger,
            reconciler=self._reconciler,
            performer=self._performer,
            first_number=int(nonce[:6], 16),
            companions=world.companions,
            errands=world.errands,
        )

    async def _run(self) -> None:
        assert self._ended is not None
        try:
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(self._reconcile_for_ever(), name="reconcile"),
                    group.create_task(self.desk.run(), name="orders"),
                    group.create_task(self.desk.errands.run(), name="errands"),
                    group.create_task(self._pulse(), name="pulse"),
                    group.create_task(self.checks.run(), name="health"),
                    group.create_task(self._heart.run(), name="heartbeat"),
                ]
                await asyncio.shield(self._ended)
                for loop in loops:
                    loop.cancel()
        except* Exception as group_of:  # noqa: BLE001 - the boundary of our own loops
            # A loop of ours is broken: better to end, and be started again, than to go on lame.
            for error in group_of.exceptions:
                self._world.log.write("CRITICAL", "supervisor.broken", repr(error))
            self._life.blame(group_of.exceptions[0])
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        self._config.unsubscribe(self._configured)
        await self._performer.drain(_DRAINING)
        for driver in self._world.drivers.values():
            driver.unsubscribe(self._report)
            await driver.close()
        await self._life.say_last_word(self._board, self.tell)
        if self._mending is not None:  # after the last word: that too may have found a full disk
            self._mending.cancel()
        self.desk.close()
        self._board.bus.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(1)

    async def _fail_to_start(self, error: Exception) -> None:
        """Say of a start that came to nothing why; whoever called hears the error itself."""
        fault = self._life.blame(error)
        self._life.say("ERROR", "supervisor.failed", f"could not be started: {fault.message}")
        await self._life.say_last_word(self._board, self.tell)
        assert self._ended is not None
        self._ended.set_result(1)

    async def _declare_first(self, recovered: Recovered) -> None:
        base, overrides = recovered.declaration, recovered.overrides
        settings = self._config.current.settings
        wish = orders.Declare(specs=settings.workers, source=settings.source)
        order = self.desk.order(wish, author="configuration", origin="config", reason="start")
        declared = declare(base, order)
        assert isinstance(declared, Declaration)
        declared = with_overrides(declared, overrides)
        recorded = self._ledger.number(news_of(order, base, declared))
        kept = {
            name: encode_override(declared.workers[name].override)
            if name in declared.workers
            else None
            for name in overrides
            if name not in declared.absent
        }
        await self._ledger.write(
            Batch(
                events=recorded,
                audit=[audit_entry(order, ())],
                overrides=kept,
                meta={**declaration_meta(declared), "boot_id": self._world.boot_id},
            )
        )
        self._applied = declared.config_version
        self._board.declare(declared, recorded)

    async def _adopt(self, traces: tuple[Trace, ...], besides: Sequence[str] = ()) -> bool:
        """Take these over, and whatever else lives; tell whether there was any of that.

        Slots that are named besides are known not to live.
        """
        find_strays = self._world.strays
        # Also among slots believed to be at rest: on a full disk the books fall behind.
        known = (*(trace.slot for trace in traces), *besides)
        strays = () if find_strays is None else await find_strays(known)
        await self._restate(numbered(self._board.snapshot.observed, strays))
        by_driver: dict[int, tuple[Driver, list[Trace]]] = {}
        for trace in (*traces, *strays):
            driver = self._performer.driver(trace.spec)
            by_driver.setdefault(id(driver), (driver, []))[1].append(trace)
        for driver, group in by_driver.values():
            await driver.adopt(group)
        return bool(strays)

    async def _restate(self, slots: tuple[SlotStatus, ...]) -> None:
        """Put right what the books say, before anything happens."""
        if slots:
            await self._ledger.write(Batch(slots=slots))
            self._board.change(observed=self._board.snapshot.observed.with_changes(slots, ()))

    def _report(self, fact: SlotFact) -> None:
        self._reconciler.report(fact)

    def _believe(self, observed: Observed, recorded: list[RecordedEvent]) -> None:
        self._board.believe(observed, recorded)
        self.checks.follow(observed, recorded)

    def _configured(self, revision: Revision) -> None:
        """Hear of a new configuration, from whatever thread read it."""
        self._loop.call_soon_threadsafe(self.desk.declare, revision)

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._reconciler.wait()
            try:
                await self._turn()
            except Exception as error:  # noqa: BLE001 - the loop's boundary: recorded, then on
                await self._failed(error)

    async def _turn(self, *news: Event) -> None:
        version = self._board.declaration.config_version
        await self._reconciler.turn(self._board.snapshot.observed, news)
        await asyncio.sleep(0)  # what was begun goes first: somebody waits for the new process
        if self._board.snapshot.turned != self._reconciler.turned:
            self._board.change(turned=self._reconciler.turned)
        if version != self._applied:
            self._applied = version
            await self.tell(supervisor_note("reconciliation.complete", version=version))
        await self.desk.review()
        await self._end_if_done()
        self.passes += 1

    async def _failed(self, error: Exception) -> None:
        self._world.log.write("ERROR", "reconciliation.failed", repr(error))
        version = self._board.declaration.config_version
        note = supervisor_note("reconciliation.failed", error=repr(error), version=version)
        await self.tell(replace(note, severity="error"))
        await self._world.clock.sleep(_AFTER_A_BUG)
        self._reconciler.wake(None)

    async def _end_if_done(self) -> None:
        """End when a shutdown has come true, or begin one when an essential worker has ended."""
        assert self._ended is not None
        snapshot = self._board.snapshot
        if snapshot.declaration.closing is None and self._world.attempts is not None:
            return  # whoever is essential failed: a pass tells of it, and ends nobody
        if snapshot.declaration.closing is None:
            names = self._essential(snapshot.declaration)
            self._end_with_essential(fatal(names, snapshot.declaration, snapshot.observed))
            return
        end = ending(snapshot.declaration, snapshot.observed)
        if end is None or self._ended.done() or await self._lives_after_all(snapshot):
            return
        if end.error is not None:
            self._board.change(last_error=Fault(code=UNKILLABLE, message=end.error))
            note = supervisor_note("supervisor.shutdown_timeout", error=end.error)
            await self.tell(replace(note, severity="error"))
        await self.desk.end_shutdown(end.error)
        self._ended.set_result(1 if self._board.snapshot.last_error else 0)

    async def _lives_after_all(self, snapshot: Snapshot) -> bool:
        """Look once more for runs that are believed to be over and that nobody has stopped (P3).

        What is found is taken over, and stopped like everything else.
        """
        slots = snapshot.observed.slots
        stopped = [slot for slot, each in slots.items() if each.state not in _ENDED_BADLY]
        stops = snapshot.declaration.closing == "stop"
        if self._looked_again or not stops or len(stopped) == len(slots):
            return False
        self._looked_again = True
        self._reconciler.wake(None)
        return await self._adopt((), besides=stopped)

    def _essential(self, declaration: Declaration) -> tuple[str, ...]:
        if self._essentials[0] != declaration.config_version:
            self._essentials = (declaration.config_version, essentials(declaration))
        return self._essentials[1]

    def _end_with_essential(self, cause: str | None) -> None:
        if cause is None or self._ending is not None:
            return
        fault = Fault(code="UPH_WORKER_ESSENTIAL_ENDED", message=cause)
        self._board.change(last_error=fault)
        order = self.desk.order(
            orders.ShutDown(), author="supervisor", origin="supervisor", reason=cause
        )
        self._ending = self._loop.create_task(self._end_by(order), name="essential")

    async def _end_by(self, order: Order) -> None:
        if not isinstance(await self.desk.submit(order), Job):
            self._ending = None  # it could not be recorded: asked again when it can

    async def _pulse(self) -> None:
        """Look at everything once in a while, whatever the events said."""
        while True:
            await self._world.clock.sleep(self._config.current.settings.supervisor.reconcile_every)
            now = self._world.clock.now().wall
            count = self._board.snapshot.reconcile_count + 1
            self._board.change(last_reconcile=now, reconcile_count=count)
            if not self._board.declaration.paused:
                drivers = self._world.drivers.values()
                for fact in drifted(self._board.snapshot.observed, drivers, now):
                    self._report(fact)
                self._reconciler.wake(None)

    def _mend_journal(self) -> None:
        """Try again until the journal can be written; told by the ledger, once at a time."""
        if self._mending is None or self._mending.done():
            self._mending = self._loop.create_task(self._retry_journal(), name="mend")

    async def _retry_journal(self) -> None:
        while self._ledger.trouble:
            await self._world.clock.sleep(_RETRY_JOURNAL)
            await self._ledger.retry()
        self.desk.declare_owed()
        self._reconciler.wake(None)
