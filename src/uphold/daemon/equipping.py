"""What every life of a home needs, a supervisor's as well as a single pass's.

How it was launched, its folders and books, what it says of itself, and how it lets go.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uphold.config.revisions import FileConfig
from uphold.core.events import Note
from uphold.core.notices import Notice, Refused
from uphold.core.times import utc_text
from uphold.daemon.housekeeping import keep_of
from uphold.daemon.narrating import BookLog
from uphold.daemon.outreach import Around, Outreach
from uphold.drivers.process import ProcessDriver
from uphold.engine.supervisor import Supervisor
from uphold.errors import AlreadyRunning
from uphold.host.clock import MachineClock, boot_id
from uphold.host.files import keep_in_place, make_private_folder, refuse_network_filesystem
from uphold.host.locks import Owner, read_owner
from uphold.host.logbooks import Logbook
from uphold.host.mirrors import read_mirror
from uphold.journal.rows import Owner as JournalOwner
from uphold.journal.writing import SqliteJournal, open_journal
from uphold.version import __version__
from uphold.wire.envelopes import fault_shape
from uphold.wire.redaction import Redactor

if TYPE_CHECKING:
    from uphold.host.homes import Home
    from uphold.host.looping import WatchedSelector
    from uphold.host.processes.birth import Birthright

_LAST_STORIES: Final = 2.0
"""Seconds that whoever writes the log has to finish."""


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
    foreground: bool = False
    """Whoever started us waits for us, and may want to hear how we do."""
    selector: WatchedSelector | None = None
    """What the loop waits with; it knows when the loop was held up."""


class Redactors:
    """The redactor for the configuration in force; made anew when that changes."""

    def __init__(self, config: FileConfig) -> None:
        self._config = config
        self._known: set[str] = set()
        self._made: tuple[int, Redactor] = (-1, Redactor())

    def current(self) -> Redactor:
        """Give the one that hides every secret known so far."""
        revision = self._config.current
        if self._made[0] != revision.version:
            # Those of earlier files too: older messages may still hold them.
            self._known.update(revision.settings.secrets)
            self._made = (revision.version, Redactor(self._known))
        return self._made[1]


def prepare(home: Home) -> None:
    """Make the folders of a home, for the owner alone, on a disk that can lock."""
    refuse_live_owner(home)
    make_private_folder(home.path)
    refuse_network_filesystem(home.path)
    for folder in (home.slots, home.run, home.logs, home.spool):
        make_private_folder(folder)
    for folder in (home.path, home.slots):
        keep_in_place(folder)  # the last, or the logs would be overwritten in place, too


def refuse_live_owner(home: Home) -> None:
    """Say at once that a supervisor runs here, before anything is touched."""
    found = read_owner(home)
    if found.keeps_out():
        raise AlreadyRunning(
            f"a supervisor already owns {home.path}: {found.owner}.",
            remedy="uphold status shows it; uphold stop ends it.",
        )


def open_books(
    home: Home, config: FileConfig, owner: Owner, clock: MachineClock
) -> tuple[SqliteJournal, str | None]:
    """Open the journal; how much it keeps follows the configuration."""
    settings = config.current.settings
    journal, rescued = open_journal(
        home.journal,
        boot_id=boot_id(),
        owner=JournalOwner(
            name=settings.supervisor.name,
            hostname=owner.host,
            pid=owner.pid,
            id=owner.supervisor_id,
        ),
        now=clock.now().wall,
        keep=keep_of(settings),
    )
    config.subscribe(lambda revision: journal.settle(keep_of(revision.settings)))
    return journal, rescued


def reach_out(  # noqa: PLR0913 - what it is made of
    launch: Launch,
    config: FileConfig,
    owner: Owner,
    redactors: Redactors,
    ours: tuple[Logbook, ProcessDriver, MachineClock],
    *,
    only: tuple[str, ...] = (),
    ending: asyncio.Event | None = None,
) -> Outreach:
    """Make what only some supervisors have; nothing of it is imported before it is needed."""
    book, driver, clock = ours
    outreach = Outreach(
        Around(
            home=launch.home,
            config=config,
            environ=launch.environ,
            clock=clock,
            log=BookLog(book),
            redactor=redactors.current,
            supervisor_id=owner.supervisor_id,
            children=driver.children,
            only=only,
            ending=ending or asyncio.Event(),
        )
    )
    book.heard_by = outreach.heed
    return outreach


def describe(
    launch: Launch, owner: Owner, name: str, supervisor: Supervisor, redactors: Redactors
) -> dict[str, object]:
    """Say who we are and how we do, as `status` shows it."""
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
        "home": str(launch.home.path),
        "config": launch.config,
        "uphold": __version__,
        "host": owner.host,
        "heartbeat_every": supervisor.heartbeat_every,
        "loop_lag": round(longest_turn(launch), 4),
    }


def longest_turn(launch: Launch) -> float:
    """Say for how long the loop was held up at most."""
    return 0.0 if launch.selector is None else launch.selector.longest


def remembered_orders(home: Home) -> dict[str, str]:
    """Find in the mirror what people ordered, when the journal is lost."""
    state, _ = read_mirror(home.runtime)
    overrides = (state or {}).get("overrides")
    if not isinstance(overrides, dict):
        return {}
    return {str(name): text for name, text in overrides.items() if isinstance(text, str)}


def hand_on(
    supervisor: Supervisor,
    driver: ProcessDriver,
    slot: str,
    generation: int,
    notice: Notice | Refused,
) -> None:
    """Hand on what a worker says of itself."""
    if isinstance(notice, Notice) and notice.main_pid is not None:
        driver.follow_main(slot, generation, notice.main_pid)
    supervisor.checks.heard(slot, generation, notice)


def own_note(kind: str, error: str) -> Note:
    """Make an event about something that went wrong with the supervisor's own things."""
    return Note(
        type=kind,
        entity_type="supervisor",
        entity_id="supervisor",
        payload={"error": error},
        severity="error",
    )


async def hear_out(stories: asyncio.Task[None], *others: asyncio.Task[None]) -> None:
    """Let whoever writes the log finish, and others whose end is near."""
    await asyncio.wait({stories, *others}, timeout=_LAST_STORIES)
    stories.cancel()


async def abandon(
    supervisor: Supervisor,
    _kind: object,
    error: BaseException | None,
    _trace: object,
) -> None:
    """Let go of the workers; what went wrong in us is put on record before the journal closes."""
    await supervisor.abandon(error)
