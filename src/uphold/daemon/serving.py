"""The life of a supervisor process, from the lock to its release.

Ownership comes first and goes last: config, lock, journal, engine, socket; and back.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from uphold.config.loading import load
from uphold.config.revisions import FileConfig
from uphold.config.watching import ConfigWatch
from uphold.control.server import ControlServer, error_view
from uphold.core import orders
from uphold.core.events import Note
from uphold.core.specs import Kind
from uphold.core.statuses import State
from uphold.core.times import utc_text
from uphold.daemon.beating import Beats
from uphold.daemon.companions import PumpLink, pump_spec
from uphold.daemon.listening import Ear
from uphold.daemon.methods import Methods, reload
from uphold.daemon.mirroring import pause_between, runtime_view
from uphold.daemon.narrating import BookLog, narrate
from uphold.drivers.probing import MachineProber
from uphold.drivers.process import ProcessDriver
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.errors import AlreadyRunning, ConfigInvalid, StoreUnavailable, UpholdError
from uphold.host.chance import new_nonce
from uphold.host.clock import MachineClock, boot_id
from uphold.host.files import make_private_folder, refuse_network_filesystem
from uphold.host.locks import HomeLock, Owner, Standing, read_owner
from uphold.host.logbooks import Logbook
from uphold.host.memory import give_back
from uphold.host.mirrors import ORDER, RuntimeMirror, read_mirror
from uphold.journal.rows import Owner as JournalOwner
from uphold.journal.writing import SqliteJournal, open_journal
from uphold.version import __version__
from uphold.wire.envelopes import fault_shape
from uphold.wire.frames import encode_line
from uphold.wire.mirroring import render_quickly
from uphold.wire.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from uphold.engine.bus import Subscription
    from uphold.host.homes import Home
    from uphold.host.processes.birth import Birthright

_HOUSEKEEPING: Final = 30.0
_TURNS_TO_PRUNE: Final = 120
_BEFORE_STORIES: Final = 0.02
_LONGEST_SILENCE: Final = 1.0
"""In a rush logs and mirror are behind by so much at most; the journal never is."""
_STORIES_AT_ONCE: Final = 100
_FIRST_STARTS: Final = 10.0
"""Seconds `uphold start` waits for the first starts to come to something."""
_AFTER_STARTS: Final = 1.0
"""Seconds after which what the first starts took is no longer needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a supervisor process was told to run."""

    home: Home
    config: str
    ready_fd: int | None
    birthright: Birthright
    environ: dict[str, str]
    forgive: bool = False
    """Whoever restarts everything wants failed workers to be tried again."""


def prepare(home: Home) -> None:
    """Make the folders of a home, for the owner alone, on a disk that can lock."""
    refuse_live_owner(home)
    make_private_folder(home.path)
    refuse_network_filesystem(home.path)
    for folder in (home.slots, home.run, home.logs):
        make_private_folder(folder)


def refuse_live_owner(home: Home) -> None:
    """Say at once that a supervisor runs here, before anything is touched."""
    found = read_owner(home)
    if found.standing is Standing.RUNNING:
        raise AlreadyRunning(
            f"a supervisor already owns {home.path}: {found.owner}.",
            remedy="uphold status shows it; uphold stop ends it.",
        )


async def serve(launch: Launch) -> int:
    """Own the home and keep what is declared running, until told to end."""
    clock = MachineClock()
    home = launch.home
    refuse_live_owner(home)
    config = FileConfig(launch.config, launch.environ)
    prepare(home)
    began = clock.now()
    last = read_owner(home).owner
    owner = Owner.this_process(
        last.supervisor_id if last else str(uuid4()),
        began.wall,
        {"config": launch.config, "version": __version__},
    )
    lock = HomeLock.take(home, owner)
    try:
        code = await _serve_owned(launch, clock, config, owner, lock)
    except BaseException:
        # Workers may live, of this supervisor or of one before it: the lock must not say that
        # it all ended in order, or nobody would look for them.
        lock.let_go()
        raise
    lock.release(clock.now().wall)
    return code


async def _serve_owned(
    launch: Launch, clock: MachineClock, config: FileConfig, owner: Owner, lock: HomeLock
) -> int:
    home = launch.home
    name = config.current.settings.supervisor.name
    async with AsyncExitStack() as stack:
        journal, rescued = open_journal(
            home.journal,
            boot_id=boot_id(),
            owner=JournalOwner(
                name=name, hostname=owner.host, pid=owner.pid, id=owner.supervisor_id
            ),
            now=clock.now().wall,
        )
        stack.push_async_callback(journal.close)
        redactors = _Redactors(config)
        book = Logbook(
            home.logs,
            wall=lambda: clock.now().wall,
            scrub=lambda text: redactors.current().text(text),
        )
        stack.callback(book.close)
        log = BookLog(book)
        link = PumpLink(home)
        stack.callback(link.close)
        link.settle(config.current.settings.workers)
        ear = Ear(home, launch.environ, log)
        stack.callback(ear.close)
        driver = ProcessDriver(
            home,
            clock,
            on_fifo=link.add,
            inherited=launch.environ,
            nofile=launch.birthright.nofile,
            notify=ear.path,
            log=log,
        )
        driver.subscribe(link.hear)
        ear.attend(driver, config)
        beats = Beats(clock, boot_id())
        supervisor = Supervisor(
            config,
            Surroundings(
                clock=clock,
                journal=journal,
                drivers={Kind.PROCESS: driver, Kind.REMOTE: beats.driver},
                new_nonce=new_nonce,
                log=log,
                boot_id=boot_id(),
                companions=(pump_spec(home),),
                strays=driver.find_strays,
                prober=MachineProber(home, clock, driver),
                remembered=_remembered(home) if rescued or journal.fresh else None,
            ),
        )

        def about() -> dict[str, object]:
            snapshot = supervisor.snapshot()
            return {
                "id": owner.supervisor_id,
                "name": name,
                "ownership": "running",
                "status": str(snapshot.status),
                "health": str(snapshot.health),
                "pid": owner.pid,
                "started_at": utc_text(owner.since),
                "stopped_at": None,
                "version": snapshot.version,
                "last_error": redactors.current().value(fault_shape(supervisor.trouble)),
                "home": str(home.path),
                "config": launch.config,
                "uphold": __version__,
            }

        mirror = RuntimeMirror(home.runtime, quickly=partial(render_quickly, order=ORDER))
        stack.callback(mirror.close)
        news = supervisor.subscribe()
        stories = asyncio.create_task(_tell_stories(supervisor, news, book, clock), name="log")
        methods = Methods(
            supervisor=supervisor,
            config=config,
            read=lambda: load(launch.config, environ=launch.environ),
            clock=clock,
            journal=journal,
            about=about,
            redactor=redactors.current,
            beats=beats,
        )
        beats.tell_to(supervisor.tell)
        server = ControlServer(home.path, methods.table(), methods.streams())
        stack.push_async_callback(supervisor.abandon)
        await supervisor.start(forgive=launch.forgive)
        ear.begin(supervisor.checks.heard)
        driver.announcements.begin(supervisor.checks.ready_by_descriptor)
        await server.open()
        stack.push_async_callback(server.close)
        if rescued:
            await supervisor.tell(_own_note("journal.rescued", rescued))
        helpers = [
            asyncio.create_task(_follow_config(config, supervisor, link, clock), name="config"),
            asyncio.create_task(
                _keep_house(journal, partial(_restored, lock, ear), supervisor, clock),
                name="housekeeping",
            ),
            asyncio.create_task(_reflect(supervisor, mirror, about, clock), name="mirror"),
        ]
        for task in (*helpers, stories):
            task.add_done_callback(partial(_report_failure, log))
        _listen_to_signals(supervisor, config)
        await supervisor.settled(_FIRST_STARTS)
        _say_ready(launch.ready_fd, owner.pid, supervisor)
        asyncio.get_running_loop().call_later(_AFTER_STARTS, give_back)
        code = await supervisor.wait()
        for task in helpers:
            task.cancel()
        await asyncio.wait({*helpers, stories}, timeout=2.0)
        stories.cancel()
        final = {**about(), "ownership": "stopped", "stopped_at": utc_text(clock.now().wall)}
        mirror.show(runtime_view(supervisor.snapshot(), final, clock.now().wall))
        return code


def _report_failure(log: BookLog, task: asyncio.Task[None]) -> None:
    """Say so when a helper ends by a mistake of ours: it must not vanish without a word."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.write("CRITICAL", "supervisor.broken", f"{task.get_name()} ended: {error!r}")


class _Redactors:
    """The redactor for the configuration in force; made anew when that changes."""

    def __init__(self, config: FileConfig) -> None:
        self._config = config
        self._known: set[str] = set()
        self._made: tuple[int, Redactor] = (-1, Redactor())

    def current(self) -> Redactor:
        revision = self._config.current
        if self._made[0] != revision.version:
            # Those of earlier files too: older messages may still hold them.
            self._known.update(revision.settings.secrets)
            self._made = (revision.version, Redactor(self._known))
        return self._made[1]


async def _tell_stories(
    supervisor: Supervisor, news: Subscription, book: Logbook, clock: MachineClock
) -> None:
    """Write events into the logs, a moment after they happened: acting on them comes first."""
    while await news.wait():
        await _calm(supervisor, clock, _BEFORE_STORIES)
        while recorded := news.take_waiting(_STORIES_AT_ONCE):
            book.write_all(entry for each in recorded if (entry := narrate(each)) is not None)
            await asyncio.sleep(0)  # a thousand workers have much to tell: others come first


async def _calm(supervisor: Supervisor, clock: MachineClock, seconds: float) -> None:
    """Wait so long, and in a rush a little longer: what is told can wait for what is done."""
    latest = clock.now().mono + _LONGEST_SILENCE
    await clock.sleep(seconds)
    while supervisor.busy and clock.now().mono < latest:
        await clock.sleep(_BEFORE_STORIES)


async def _follow_config(
    config: FileConfig, supervisor: Supervisor, link: PumpLink, clock: MachineClock
) -> None:
    """Pick up edits by themselves. A wrong file is told of once, and nothing changes."""
    config.subscribe(lambda revision: link.settle(revision.settings.workers))
    async for _ in ConfigWatch(config, clock).changes():
        await _reload(config, supervisor)


async def _reload(config: FileConfig, supervisor: Supervisor) -> None:
    with suppress(ConfigInvalid):  # it is on record, and nothing has changed
        await reload(config, supervisor)


def _restored(lock: HomeLock, ear: Ear) -> Iterator[Note]:
    """Put back what somebody removed of the files that others need to find us."""
    if lock.restore():
        yield _own_note("supervisor.lock_restored", "somebody removed it")
    if ear.restore():
        yield _own_note("supervisor.notify_restored", "somebody removed it")


async def _keep_house(
    journal: SqliteJournal,
    restored: Callable[[], Iterator[Note]],
    supervisor: Supervisor,
    clock: MachineClock,
) -> None:
    """Let go of memory and of history that is too old; put back what was removed."""
    for turn in count(1):
        await clock.sleep(_HOUSEKEEPING)
        give_back()
        for note in restored():
            await supervisor.tell(note)
        if turn % _TURNS_TO_PRUNE:
            continue
        with suppress(StoreUnavailable):  # it is tried again next time
            while await journal.prune(clock.now().wall):
                pass


def _remembered(home: Home) -> dict[str, str]:
    """Find in the mirror what people ordered, when the journal is lost."""
    state, _ = read_mirror(home.runtime)
    overrides = (state or {}).get("overrides")
    if not isinstance(overrides, dict):
        return {}
    return {str(name): text for name, text in overrides.items() if isinstance(text, str)}


async def _reflect(
    supervisor: Supervisor,
    mirror: RuntimeMirror,
    about: Callable[[], dict[str, object]],
    clock: MachineClock,
) -> None:
    """Keep runtime.json in step, without letting it cost more than a small share of the time."""
    mirror.show(partial(runtime_view, supervisor.snapshot(), about()))
    shown = supervisor.snapshot().version
    async for _ in supervisor.subscribe(1):
        if supervisor.snapshot().version == shown:
            continue
        # First the pause: what has just begun must not wait while a thread writes about it.
        await _calm(supervisor, clock, pause_between(len(supervisor.snapshot().observed.slots)))
        snapshot = supervisor.snapshot()
        shown = snapshot.version
        mirror.show(partial(runtime_view, snapshot, about()))


def _listen_to_signals(supervisor: Supervisor, config: FileConfig) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[object]] = set()

    def begin(work: Any) -> None:
        task = loop.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def end(name: str) -> None:
        keep = config.current.settings.supervisor.on_exit == "keep"
        hurry = supervisor.snapshot().declaration.closing is not None
        wish = orders.ShutDown(keep_workers=keep, hurry=hurry)
        begin(supervisor.desk.submit(supervisor.desk.order(wish, author=name, origin="signal")))

    loop.add_signal_handler(signal.SIGTERM, end, "SIGTERM")
    loop.add_signal_handler(signal.SIGINT, end, "SIGINT")
    loop.add_signal_handler(signal.SIGHUP, lambda: begin(_reload(config, supervisor)))


def _say_ready(descriptor: int | None, pid: int, supervisor: Supervisor) -> None:
    if descriptor is not None:
        slots = supervisor.snapshot().observed.slots.values()
        failed = [status.slot for status in slots if status.state is State.FAILED]
        _say(descriptor, {"ready": True, "pid": pid, "failed": failed})


def say_error(descriptor: int | None, error: UpholdError) -> None:
    """Tell whoever started us why we do not run."""
    if descriptor is not None:
        _say(descriptor, {"error": error_view(error)})
    else:
        sys.stderr.write(f"uphold: {error.message}\n{error.remedy}\n")


def _say(descriptor: int, message: dict[str, object]) -> None:
    try:
        os.write(descriptor, encode_line(message))
    except OSError:
        return  # they no longer listen
    finally:
        os.close(descriptor)


def _own_note(kind: str, error: str) -> Note:
    return Note(
        type=kind,
        entity_type="supervisor",
        entity_id="supervisor",
        payload={"error": error},
        severity="error",
    )
