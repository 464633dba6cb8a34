"""The life of a supervisor process, from the lock to its release.

Ownership comes first and goes last: config, lock, journal, engine, socket; and back.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from uphold.daemon.companions import PumpLink, companions_of, copy_the_rest
from uphold.daemon.copies import Copies
from uphold.daemon.equipping import (
    Launch,
    Redactors,
    abandon,
    describe,
    hand_on,
    hear_out,
    longest_turn,
    open_books,
    own_note,
    prepare,
    reach_out,
    refuse_live_owner,
    remembered_orders,
)
from uphold.daemon.housekeeping import keep_house
from uphold.daemon.listening import Ear
from uphold.daemon.methods import Methods, reload
from uphold.daemon.mirroring import runtime_view
from uphold.daemon.narrating import BookLog
from uphold.daemon.notifying import Service, ServiceManager
from uphold.daemon.pulse import Pulse
from uphold.daemon.telling import reflect, tell_stories
from uphold.drivers.probing import MachineProber
from uphold.drivers.process import ProcessDriver
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.errors import ConfigInvalid, UpholdError
from uphold.host.beats import BeatFiles
from uphold.host.chance import new_id, new_nonce
from uphold.host.clock import MachineClock, boot_id
from uphold.host.locks import HomeLock, Owner, read_owner
from uphold.host.logbooks import Logbook
from uphold.host.memory import settle_down
from uphold.host.mirrors import ORDER, RuntimeMirror
from uphold.version import __version__
from uphold.wire.frames import encode_line
from uphold.wire.mirroring import render_quickly

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from uphold.core.specs import StoreSpec
    from uphold.host.homes import Home

    Reread = Callable[[], Coroutine[object, object, None]]

_FIRST_STARTS: Final = 10.0
"""Seconds `uphold start` waits for the first starts to come to something."""
_AFTER_STARTS: Final = 1.0
"""Seconds after which what the first starts took is no longer needed."""


class _End(NamedTuple):
    """How a supervisor's life ended."""

    exit_code: int
    owed: StoreSpec | None
    """The shared database that has not heard of the end yet, and could."""


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
        last.supervisor_id if last else new_id(),
        began.wall,
        {"config": launch.config, "version": __version__},
    )
    lock = HomeLock.take(home, owner)
    try:
        end = await _serve_owned(launch, clock, config, owner, lock)
    except BaseException:
        # Workers may live, of this supervisor or of one before it: the lock must not say that
        # it all ended in order, or nobody would look for them.
        lock.let_go()
        raise
    try:
        if end.owed is not None:
            # The journal is closed, and the home still ours: nobody else writes meanwhile.
            await copy_the_rest(home, end.owed, launch.environ)
    finally:
        lock.release(clock.now().wall)
    return end.exit_code


async def _serve_owned(  # noqa: PLR0915 - introduces everybody to everybody
    launch: Launch, clock: MachineClock, config: FileConfig, owner: Owner, lock: HomeLock
) -> _End:
    home = launch.home
    name = config.current.settings.supervisor.name
    async with AsyncExitStack() as stack:
        # First, so that it is waited for last: it writes while everybody else ends.
        mirror = stack.enter_context(
            closing(RuntimeMirror(home.runtime, quickly=partial(render_quickly, order=ORDER)))
        )
        journal, rescued = open_books(home, config, owner, clock)
        stack.push_async_callback(journal.close)
        redactors = Redactors(config)
        book = stack.enter_context(closing(_logbook(home, clock, redactors)))
        log = BookLog(book)
        link = stack.enter_context(closing(PumpLink(home)))
        link.settle(config.current.settings.workers)
        ear = stack.enter_context(closing(Ear(home, launch.environ, log)))
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
        copies = Copies(
            home=home,
            clock=clock,
            redactor=redactors.current,
            configured=lambda: config.current.settings.store,
        )
        outreach = reach_out(launch, config, owner, redactors, (book, driver, clock))
        stack.push_async_callback(outreach.close)
        files = BeatFiles(outreach.reading)
        beats = Beats(clock, boot_id(), files)
        supervisor = Supervisor(
            config,
            Surroundings(
                clock=clock,
                journal=journal,
                drivers={Kind.PROCESS: driver, Kind.REMOTE: beats.driver},
                new_nonce=new_nonce,
                log=log,
                boot_id=boot_id(),
                companions=partial(companions_of, home),
                strays=driver.find_strays,
                prober=MachineProber(home, clock, driver, files),
                remembered=remembered_orders(home) if rescued or journal.fresh else None,
                errands=outreach.errands(),
                supervisor_id=owner.supervisor_id,
                lag=partial(longest_turn, launch),
            ),
        )

        outreach.attend(supervisor)
        about = partial(describe, launch, owner, name, supervisor, redactors)
        # In the background we may have been started by a service that is not us.
        manager = ServiceManager(launch.environ if launch.foreground else {}, owner.pid)
        service = stack.enter_context(closing(Service(supervisor, manager)))
        pulse = Pulse(home.path, supervisor, about, launch.selector)
        stack.push_async_callback(pulse.close)
        news = supervisor.subscribe()
        stories = asyncio.create_task(
            tell_stories(supervisor, news, (pulse.hear, service.hear), book, clock), name="log"
        )
        methods = Methods(
            supervisor=supervisor,
            config=config,
            read=lambda: load(launch.config, environ=launch.environ),
            clock=clock,
            journal=journal,
            about=about,
            redactor=redactors.current,
            beats=beats,
            copies=copies,
            share=outreach.shown,
            more={"announce": outreach.announce},
        )
        beats.tell_to(supervisor.tell)
        server = ControlServer(home.path, methods.table(), methods.streams())
        stack.push_async_exit(partial(abandon, supervisor))
        await supervisor.start(forgive=launch.forgive)
        ear.begin(partial(hand_on, supervisor, driver))
        driver.announcements.begin(supervisor.checks.ready_by_descriptor)
        await server.open()
        stack.push_async_callback(server.close)
        if rescued:
            await supervisor.tell(own_note("journal.rescued", rescued))
        reread = partial(_reload, config, supervisor, service, clock)
        helpers = [
            asyncio.create_task(outreach.run(), name="share"),
            asyncio.create_task(_follow_config(config, reread, link, clock), name="config"),
            asyncio.create_task(
                keep_house(journal, partial(_restored, lock, ear), supervisor.tell, clock),
                name="housekeeping",
            ),
            asyncio.create_task(reflect(supervisor, mirror, about, clock), name="mirror"),
        ]
        for task in (*helpers, stories):
            task.add_done_callback(partial(_report_failure, log, lambda: supervisor.running))
        _listen_to_signals(supervisor, config, reread)
        await supervisor.settled(_FIRST_STARTS)
        _say_ready(launch.ready_fd, owner.pid, supervisor)
        service.begin()
        pulse.begin()
        asyncio.get_running_loop().call_later(_AFTER_STARTS, settle_down)
        code = await supervisor.wait()
        for task in helpers:
            task.cancel()
        # Written while the helpers end and the last stories are told.
        final = {**about(), "ownership": "stopped", "stopped_at": utc_text(clock.now().wall)}
        view = partial(runtime_view, supervisor.snapshot(), final, clock.now().wall)
        mirror.show(view, last=True)
        await hear_out(stories, *helpers)
        return _End(code, _owed(supervisor, config, copies))


def _logbook(home: Home, clock: MachineClock, redactors: Redactors) -> Logbook:
    return Logbook(
        home.logs,
        wall=lambda: clock.now().wall,
        scrub=lambda texts: redactors.current().texts(texts),
    )


def _owed(supervisor: Supervisor, config: FileConfig, copies: Copies) -> StoreSpec | None:
    """Name the shared database that shall hear of the end."""
    if supervisor.snapshot().declaration.closing != "stop":
        return None  # a recorder that stays with the workers copies the last words by itself
    return None if copies.away else config.current.settings.store


def _report_failure(log: BookLog, running: Callable[[], bool], task: asyncio.Task[None]) -> None:
    """Say so when a helper ends by a mistake of ours: it must not vanish without a word.

    Helpers are cancelled when the supervisor has ended, and never before.
    """
    if task.cancelled():
        error = "it was cancelled" if running() else None
    else:
        failure = task.exception()
        error = None if failure is None else repr(failure)
    if error is not None:
        log.write("CRITICAL", "supervisor.broken", f"{task.get_name()} ended: {error}")


async def _follow_config(
    config: FileConfig, reread: Reread, link: PumpLink, clock: MachineClock
) -> None:
    """Pick up edits by themselves. A wrong file is told of once, and nothing changes."""
    config.subscribe(lambda revision: link.settle(revision.settings.workers))
    async for _ in ConfigWatch(config, clock).changes():
        await reread()


async def _reload(
    config: FileConfig, supervisor: Supervisor, service: Service, clock: MachineClock
) -> None:
    with service.reloading(clock.now().mono), suppress(ConfigInvalid):
        await reload(config, supervisor)  # a wrong file is on record, and nothing has changed


def _restored(lock: HomeLock, ear: Ear) -> Iterator[Note]:
    """Put back what somebody removed of the files that others need to find us."""
    if lock.restore():
        yield own_note("supervisor.lock_restored", "somebody removed it")
    if ear.restore():
        yield own_note("supervisor.notify_restored", "somebody removed it")


def _listen_to_signals(supervisor: Supervisor, config: FileConfig, reread: Reread) -> None:
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
    loop.add_signal_handler(signal.SIGHUP, lambda: begin(reread()))


def _say_ready(descriptor: int | None, pid: int, supervisor: Supervisor) -> None:
    if descriptor is not None:
        slots = supervisor.snapshot().observed.slots.values()
        failed = [status.slot for status in slots if status.state is State.FAILED]
        say(descriptor, {"ready": True, "pid": pid, "failed": failed})


def say_error(descriptor: int | None, error: UpholdError) -> None:
    """Tell whoever started us why we do not run."""
    if descriptor is not None:
        say(descriptor, {"error": error_view(error)})
    else:
        sys.stderr.write(f"uphold: {error.message}\n{error.remedy}\n")


def say(descriptor: int, message: dict[str, object]) -> None:
    """Say the one thing that whoever started us waits for."""
    try:
        os.write(descriptor, encode_line(message))
    except OSError:
        return  # they no longer listen
    finally:
        os.close(descriptor)
