"""One pass over a home, for task schedulers: own, recover, look, act, judge, and let go.

Workers outlive it; the next pass, or a supervisor, finds them again by their identity. There is
no socket, no pump and no watch on the configuration: nobody stays who could serve them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from uphold.config.revisions import FileConfig
from uphold.core.names import is_companion
from uphold.core.passes import Check, examine, left_behind, longest_pass, unsettled
from uphold.core.specs import Kind
from uphold.core.times import utc_text
from uphold.daemon.copies import copy_in_a_pass
from uphold.daemon.equipping import (
    Launch,
    Redactors,
    abandon,
    describe,
    hand_on,
    hear_out,
    open_books,
    own_note,
    prepare,
    reach_out,
    refuse_live_owner,
    remembered_orders,
)
from uphold.daemon.listening import Ear
from uphold.daemon.mirroring import runtime_view
from uphold.daemon.narrating import BookLog
from uphold.daemon.passages import (
    Action,
    Passage,
    Report,
    Stages,
    as_mapping,
    chosen,
    deed_of,
    scrubbed,
)
from uphold.daemon.pulse import Pulse
from uphold.daemon.telling import tell_stories
from uphold.drivers.probing import MachineProber
from uphold.drivers.process import ProcessDriver
from uphold.drivers.remote import RemoteDriver
from uphold.engine.attempts import Attempts
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.errors import HostFailure, StoreUnavailable
from uphold.host.beats import BeatFiles
from uphold.host.chance import new_id, new_nonce
from uphold.host.clock import MachineClock, boot_id
from uphold.host.locks import HomeLock, Owner, read_owner
from uphold.host.logbooks import Logbook
from uphold.host.mirrors import ORDER, RuntimeMirror
from uphold.version import __version__
from uphold.wire.mirroring import render_quickly

if TYPE_CHECKING:
    from uphold.core.events import Recorded
    from uphold.core.notices import Refused
    from uphold.daemon.outreach import Outreach
    from uphold.host.beats import Written
    from uphold.journal.writing import SqliteJournal

_HEALTH_PATIENCE: Final = 20.0
"""Seconds that everybody who is found alive may take to be judged, whatever a probe allows."""
_FILE_PATIENCE: Final = 10.0
"""Seconds that reading a heartbeat file may take: a pass looks once, and begins its helpers."""
_FIRST_STEP, _LAST_STEP = 0.002, 0.05
"""Seconds between two looks at what is waited for, if nothing is heard of it."""
_ECHO: Final = 2
"""What is logged goes to stderr too."""
_MOST_ACTIONS: Final = 10_000


async def pass_once(
    launch: Launch, *, worker_id: str | None = None, stages: Stages | None = None, echo: bool = True
) -> Report:
    """Do one pass. AlreadyRunning if somebody owns the home: then nothing was touched."""
    clock = MachineClock()
    home = launch.home
    began = clock.now()
    ending = _listen_to_signals()
    refuse_live_owner(home)
    config = FileConfig(launch.config, launch.environ)
    names = chosen(config.current.settings, worker_id)
    prepare(home)
    last = read_owner(home).owner
    owner = Owner.this_process(
        last.supervisor_id if last else new_id(),
        began.wall,
        {"config": launch.config, "version": __version__, "mode": "once"},
    )
    lock = HomeLock.take(home, owner)
    try:
        redactors = Redactors(config)
        book = Logbook(
            home.logs,
            wall=lambda: clock.now().wall,
            scrub=lambda texts: redactors.current().texts(texts),
            echo=_ECHO if echo else None,
        )
        with closing(book):
            work = _Pass(launch, config, clock, owner, BookLog(book), names, ending)
            report = await work.run(book, redactors, stages or Stages(), worker_id)
    except BaseException:
        # Workers may live: the lock must not say that it all ended in order.
        lock.let_go()
        raise
    lock.release(clock.now().wall)
    return report


class _Pass:
    """One pass under way."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it was given, kept together
        self,
        launch: Launch,
        config: FileConfig,
        clock: MachineClock,
        owner: Owner,
        log: BookLog,
        names: tuple[str, ...],
        ending: _Ending,
    ) -> None:
        self._launch = launch
        self._config = config
        self._clock = clock
        self._owner = owner
        self._log = log
        self._names = names
        self._ending = ending
        self._attempts = Attempts()
        self._files = BeatFiles(self._reading, patience=_FILE_PATIENCE)
        self._remotes = RemoteDriver(clock, boot_id=boot_id(), files=self._files)
        self._problems: list[str] = []
        self._before: tuple[Check, ...] = ()
        self._after: tuple[Check, ...] = ()
        self._done: list[Action] = []
        self._flags: list[dict[str, Any]] = []
        self._outreach: Outreach | None = None

    async def run(
        self, book: Logbook, redactors: Redactors, stages: Stages, worker_id: str | None
    ) -> Report:
        """Go through all stages; what goes wrong in one is told, and the next ones follow."""
        settings = self._config.current.settings
        began = self._clock.now().wall
        scrub = redactors.current().text
        await self._supervise(book, redactors, stages)
        copy = stages.copy or copy_in_a_pass
        await self._stage("the copy to the database", copy(self._launch, settings))
        report = Report(
            supervisor_id=self._owner.supervisor_id,
            worker_id=worker_id or settings.supervisor.name,
            began=began,
            ended=self._clock.now().wall,
            actions=tuple(self._done),
            before=self._before,
            workers=self._after,
            problems=tuple(self._problems),
        )
        shown = scrubbed(report, scrub)
        if stages.heartbeat is not None:
            told = stages.heartbeat(self._launch, settings, shown)
            await self._stage("the heartbeat on the share", told)
        elif self._outreach is not None:
            await self._stage("the heartbeat on the share", self._beat(self._outreach, shown))
            await self._outreach.close()
        return scrubbed(replace(report, problems=tuple(self._problems)), scrub)

    def _reading(self, path: str) -> Awaitable[Written | Refused] | None:
        return None if self._outreach is None else self._outreach.reading(path)

    async def _obey(self, outreach: Outreach) -> Sequence[str]:
        """Deal with the flags that lie on the share, and with what was left half done."""
        left_over = await outreach.take_up()
        if left_over is not None:
            await left_over.done
        deeds, error = await outreach.look()
        self._flags = [deed.shown() for deed in deeds]
        failed = [f"{deed.handler or 'a flag'}: {deed.error}" for deed in deeds if not deed.success]
        return [*failed, *([] if error is None else [error])]

    async def _beat(self, outreach: Outreach, report: Report) -> Sequence[str]:
        """Tell whoever watches the share that a pass took place, and what it came to."""
        try:
            await outreach.beat(
                success=report.success,
                error="; ".join(report.problems) or None,
                actions=[*self._flags, *(as_mapping(each) for each in report.actions)],
            )
        except HostFailure as problem:
            return (problem.message,)
        return ()

    async def _supervise(self, book: Logbook, redactors: Redactors, stages: Stages) -> None:
        """Do what needs a supervisor: from the books of the last one to its own last word."""
        launch, home, clock = self._launch, self._launch.home, self._clock
        name = self._config.current.settings.supervisor.name
        async with AsyncExitStack() as stack:
            journal, rescued = open_books(home, self._config, self._owner, clock)
            stack.push_async_callback(journal.close)
            ear = stack.enter_context(closing(Ear(home, launch.environ, self._log)))
            driver = ProcessDriver(
                home,
                clock,
                inherited=launch.environ,
                nofile=launch.birthright.nofile,
                notify=ear.path,
                log=self._log,
                straight=True,
            )
            ear.attend(driver, self._config)
            outreach = self._outreach = reach_out(
                launch,
                self._config,
                self._owner,
                redactors,
                (book, driver, clock),
                only=() if len(self._names) > 1 else self._names,
                ending=self._ending,
            )
            supervisor = self._supervisor(
                journal, driver, outreach, lost=bool(rescued) or journal.fresh
            )
            outreach.attend(supervisor)
            about = partial(describe, launch, self._owner, name, supervisor, redactors)
            mirror = RuntimeMirror(home.runtime, quickly=partial(render_quickly, order=ORDER))
            stack.callback(mirror.close)
            pulse = Pulse(home.path, supervisor, about, None)
            stack.push_async_callback(pulse.close)
            news = supervisor.subscribe()
            stories = asyncio.create_task(
                tell_stories(supervisor, news, (pulse.hear,), book, clock), name="log"
            )
            deeds = supervisor.subscribe(_MOST_ACTIONS)
            stack.push_async_exit(partial(abandon, supervisor))
            await supervisor.start()
            ear.begin(partial(hand_on, supervisor, driver))
            driver.announcements.begin(supervisor.checks.ready_by_descriptor)
            if rescued:
                await supervisor.tell(own_note("journal.rescued", rescued))
                self._problems.append(f"the journal was damaged and set aside: {rescued}")
            await self._go_through(supervisor, stages, deeds.take_waiting)
            with suppress(StoreUnavailable):  # what is too old goes another time
                await journal.prune(clock.now().wall)
            await supervisor.beat()
            await supervisor.abandon()
            await hear_out(stories)
            final = {**about(), "ownership": "stopped", "stopped_at": utc_text(clock.now().wall)}
            mirror.show(runtime_view(supervisor.snapshot(), final, clock.now().wall))

    def _supervisor(
        self, journal: SqliteJournal, driver: ProcessDriver, outreach: Outreach, *, lost: bool
    ) -> Supervisor:
        recorded = journal.recall().slots.values()
        # What lives from a supervisor is left as it is: on its own terms it is neither stopped
        # nor restarted, and a pass starts none.
        left = tuple(
            status.terms
            for status in recorded
            if status.terms is not None and is_companion(status.slot)
        )
        return Supervisor(
            self._config,
            Surroundings(
                clock=self._clock,
                journal=journal,
                drivers={Kind.PROCESS: driver, Kind.REMOTE: self._remotes},
                new_nonce=new_nonce,
                log=self._log,
                boot_id=boot_id(),
                companions=lambda _settings: left,
                errands=outreach.errands(),
                strays=driver.find_strays,
                prober=MachineProber(self._launch.home, self._clock, driver, self._files),
                remembered=remembered_orders(self._launch.home) if lost else None,
                attempts=self._attempts,
                supervisor_id=self._owner.supervisor_id,
            ),
        )

    async def _go_through(
        self,
        supervisor: Supervisor,
        stages: Stages,
        news: Callable[[int], list[Recorded]],
    ) -> None:
        """Look, deal with what was ordered, act, look again and judge."""
        await self._until_judged(supervisor)
        self._before = self._examine(supervisor)
        if stages.flags is not None and not self._ending.is_set():
            passage = Passage(
                supervisor=supervisor,
                settings=self._config.current.settings,
                log=self._log,
                names=self._names,
                ending=self._ending,
            )
            await self._stage("the flags", stages.flags(passage))
        elif self._outreach is not None and not self._ending.is_set():
            await self._stage("the flags", self._obey(self._outreach))
        self._note_deeds(news(_MOST_ACTIONS))
        # Told to end: what was taken down comes back, and nothing else is begun.
        cut = self._ending.is_set()
        down = {each.slot for each in self._done if each.did in ("stopped", "aborted", "killed")}
        self._attempts.open(down if cut else None)
        supervisor.look_at_all()
        await self._until_settled(supervisor)
        self._note_deeds(news(_MOST_ACTIONS))
        self._judge(supervisor)
        if cut:
            self._problem(f"the pass was ended early by {self._ending.name}")

    async def _until_judged(self, supervisor: Supervisor) -> None:
        """Wait until whoever was found alive has been asked how it does."""

        def judged() -> bool:
            asked = not (supervisor.checks.owing or self._remotes.unread)
            return (asked and supervisor.rested) or self._ending.is_set()

        if not await self._come_true(supervisor, judged, _HEALTH_PATIENCE):
            for slot in supervisor.checks.owing:
                self._problem(f"{slot} did not say within {_HEALTH_PATIENCE:g} s how it does")

    async def _until_settled(self, supervisor: Supervisor) -> None:
        """Wait until all that was begun has come to something."""

        def waiting() -> tuple[str, ...]:
            observed = supervisor.snapshot().observed
            return unsettled(self._attempts.tried, observed, self._clock.now().mono)

        def settled() -> bool:
            return supervisor.rested and not waiting()

        bound = longest_pass(supervisor.snapshot().declaration)
        if not await self._come_true(supervisor, settled, bound):
            self._problem(f"gave up waiting for {', '.join(waiting()) or 'what is under way'}")

    async def _come_true(
        self, supervisor: Supervisor, condition: Callable[[], bool], seconds: float
    ) -> bool:
        """Wait so long at most; looked at whenever something happens, and now and then."""
        until = self._clock.now().mono + seconds
        step = _FIRST_STEP
        while not condition():
            if self._clock.now().mono >= until:
                return False
            news = supervisor.subscribe(1)
            with closing(news), suppress(TimeoutError):
                async with asyncio.timeout(step):
                    await news.wait()
            step = min(step * 2, _LAST_STEP)
        return True

    def _examine(self, supervisor: Supervisor) -> tuple[Check, ...]:
        snapshot = supervisor.snapshot()
        return examine(
            snapshot.declaration,
            snapshot.observed,
            self._clock.now().mono,
            vitals=snapshot.vitals,
            names=self._names,
        )

    def _judge(self, supervisor: Supervisor) -> None:
        self._after = self._examine(supervisor)
        for check in self._after:
            if check.problem is not None:
                self._problem(check.problem, worker=check.name)
        snapshot = supervisor.snapshot()
        for text in left_behind(snapshot.declaration, snapshot.observed):
            self._problem(text)
        if supervisor.trouble is not None:
            self._problem(supervisor.trouble.message)

    async def _stage(self, what: str, work: Awaitable[Sequence[str]]) -> None:
        """Do a part that may fail by itself: it is told, and the pass goes on."""
        try:
            for problem in await work:
                self._problem(problem)
        except Exception as error:  # noqa: BLE001 - the boundary of a part: told, then on
            self._problem(f"{what} failed: {error}")

    def _problem(self, text: str, worker: str | None = None) -> None:
        self._problems.append(text)
        self._log.write("WARNING", "pass.problem", text, worker=worker)

    def _note_deeds(self, recorded: Sequence[Recorded]) -> None:
        self._done += [deed for each in recorded if (deed := deed_of(each.event)) is not None]


class _Ending(asyncio.Event):
    """Set by the first signal that asks us to end."""

    name = ""


def _listen_to_signals() -> _Ending:
    """Note who asks us to end; what is under way is finished first."""
    ending = _Ending()

    def end(name: str) -> None:
        ending.name = ending.name or name
        ending.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, end, number.name)
    return ending
