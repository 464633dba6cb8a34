"""The recorder's life: told of news, it copies them; while the database is away, it tries again.

It outlives its supervisor, as the pump does, and is adopted by the next one. When none has come
for a while it ends. It is killed without harm at any moment: what counts is in the databases.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.core.times import parse_utc, utc_text
from uphold.errors import StoreUnavailable, UpholdError
from uphold.host.files import write_all
from uphold.journal.outgoing import Cursor, Outgoing
from uphold.recorder.addresses import Address
from uphold.recorder.extras import require_packages
from uphold.recorder.last_words import document_of
from uphold.recorder.listening import NOTHING, Ear, News
from uphold.recorder.reports import (
    AWAY,
    CAUGHT_UP,
    COPYING,
    earlier,
    error_view,
    state_for,
)
from uphold.recorder.speaking import Clock, Voice

if TYPE_CHECKING:
    from uphold.recorder.connecting import Store
    from uphold.recorder.copying import Copier, Place, Step

    Say = Callable[[str], None]

COALESCE: Final = 0.2
"""Seconds in which events that come together are waited for."""
FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 60.0
ALONE: Final = 60.0
"""Seconds after which a recorder without a supervisor ends."""
_IDLE: Final = 3600.0
_JOURNAL: Final = "UPH_JOURNAL_"


class Link:
    """The shared database as it is used here, made when it is first needed."""

    def __init__(self, home: Path, url: str, clock: Clock, say: Say, patience: float) -> None:
        self._home = home
        self._url = url
        self._clock = clock
        self.say = say
        self._patience = patience
        self._made: tuple[Store, Copier] | None = None
        self._clashes: frozenset[object] = frozenset()
        """Rows of workers that other supervisors keep, as was said."""

    @property
    def store(self) -> Store:
        """The database; StoreUnavailable if what speaks to it is not installed."""
        return self._open()[0]

    @property
    def copier(self) -> Copier:
        """Who copies to it; StoreUnavailable if what speaks to it is not installed."""
        return self._open()[1]

    def _open(self) -> tuple[Store, Copier]:
        if self._made is None:
            require_packages(Address.parse(self._url).dialect)
            # Only now: a recorder without the packages says so, and waits for them.
            from uphold.recorder.connecting import Store  # noqa: PLC0415
            from uphold.recorder.copying import Copier  # noqa: PLC0415
            from uphold.recorder.refusals import Refusals  # noqa: PLC0415

            store = Store(self._url, patience=self._patience)
            wall = self._clock.wall
            refusals = Refusals(self._home / "spool", wall=wall, say=self.say)
            journal = self._home / "journal.db"
            copier = Copier(store, journal, wall=wall, refusals=refusals, say=self.say)
            self._made = store, copier
        return self._made

    def write_rows(
        self, document: dict[str, Any], touched: set[str] | None, *, introduced: bool = True
    ) -> None:
        """Bring the rows of these workers up to date, and the supervisor's; None: of all."""
        from uphold.recorder.heartbeats import introduce, write_rows  # noqa: PLC0415 - as above

        if not introduced:
            introduce(self.store, document, self._clock.wall())
        written = write_rows(self.store, document, touched, self._clock.wall())
        for clash in written.clashes:
            if clash not in self._clashes:
                self.say(f"{clash.message} {clash.remedy}")
        if touched is None:
            self._clashes = frozenset(written.clashes)
        else:
            self._clashes |= frozenset(written.clashes)

    def write_last_rows(self) -> None:
        """Say in those rows that the supervisor has ended, if it has in order."""
        with Outgoing(self._home / "journal.db") as journal:
            document = document_of(journal)
        if document is not None:
            self.write_rows(document, None, introduced=False)

    def forget(self) -> None:
        """Look at the database with new eyes next time."""
        if self._made is not None:
            self._made[1].forget()


class Recorder:
    """Keeps one shared database in step with one journal."""

    def __init__(self, journal: Path, link: Link, ear: Ear, clock: Clock, voice: Voice) -> None:
        self._journal = journal
        self._link = link
        self._ear = ear
        self._clock = clock
        self._voice = voice
        self._backoff = 0.0
        self._try_at = 0.0
        """When to try again, while the database is away."""
        self._news = News(events=1)
        self._introduced = 0
        """Which of the supervisors we met has its own row."""

    def run(self) -> int:
        """Go on until nobody has needed us for a while."""
        while self._ear.alone_for < ALONE:
            self.turn()
        self._link.say("no supervisor has come back; the rest is copied when one does")
        self._ear.close()
        return 0

    def turn(self) -> None:
        """Wait for something to do, and do it."""
        self._news += self._ear.wait(self._patience())
        if not self._ear.connected:
            self._news += News(events=1)  # the last words may take a moment to reach the disk
        if self._backoff:
            if self._clock.mono() >= self._try_at:
                self._copy_all()
        elif self._news.events:
            self._news += self._ear.gather(COALESCE)
            self._copy_all()
        self._voice.speak()

    def _patience(self) -> float:
        """Tell how long nothing needs to be done."""
        if self._news.events and not self._backoff:
            return 0.0
        waits = [_IDLE if self._ear.connected else 1.0, self._voice.due()]
        if self._backoff:
            waits.append(self._try_at - self._clock.mono())
        return max(0.0, min(waits))

    def _copy_all(self) -> None:
        news, self._news = self._news, NOTHING
        try:
            self._ear.ask("sync")  # without an answer what is durable already is copied
            while self._copy_some().full:
                pending, lag = self._waiting()
                self._voice.turn(COPYING, pending=pending, lag_seconds=lag, last_error=None)
                self._voice.speak()
            self._beat(news)
        except StoreUnavailable as error:
            self._news += news
            self._suffer(error)
        else:
            self._backoff = 0.0
            self._voice.turn(CAUGHT_UP, pending=0, lag_seconds=0.0, last_error=None)

    def _copy_some(self) -> Step:
        step = self._link.copier.copy()
        state = self._voice.report.state
        self._voice.turn(COPYING if state in AWAY else state, **standing(step.place))
        return step

    def _beat(self, news: News) -> None:
        """Bring the rows of workers up to date, if anything is known of them."""
        introduced = self._introduced == self._ear.met
        if not self._ear.connected:
            self._link.write_last_rows()
        elif news.beat or news.touched or not introduced:
            document = self._ear.ask("status", {"all": True})
            if isinstance(document, dict):
                touched = None if news.beat or not introduced else set(news.touched)
                self._link.write_rows(document, touched, introduced=introduced)
                self._introduced = self._ear.met

    def _suffer(self, error: UpholdError) -> None:
        """Wait longer each time; say so once for each reason."""
        self._backoff = min(LONGEST_BACKOFF, self._backoff * 2) if self._backoff else FIRST_BACKOFF
        self._try_at = self._clock.mono() + self._backoff
        self._link.forget()
        before = self._voice.report
        if (before.last_error or {}).get("code") != error.code:
            self._link.say(f"{error.code}: {error.message} {error.remedy}".rstrip())
        ours = error.code.startswith(_JOURNAL)
        pending, lag = self._waiting()
        self._voice.turn(
            before.state if ours else state_for(error),
            pending=pending,
            lag_seconds=lag,
            last_error=error_view(error),
        )

    def _waiting(self) -> tuple[int, float]:
        """Tell how many rows wait, and how old the oldest is, as far as is known here."""
        report, now = self._voice.report, self._clock.wall()
        try:
            with Outgoing(self._journal) as journal:
                copied = report.copied
                cursor = Cursor(events=copied["events"], audit=copied["audit"], jobs=copied["jobs"])
                found = journal.waiting(cursor)
        except StoreUnavailable:
            return report.pending, report.lag_seconds
        oldest = now if found.oldest is None else parse_utc(found.oldest)
        return found.rows, round(max(0.0, now - oldest), 3)


def record(home: str, url: str, clock: Clock) -> int:
    """Live as the recorder of a home."""
    folder = Path(home)
    report = earlier(folder / "spool", shown(url), clock.wall())
    link = Link(folder, url, clock, sayer(clock), patience=10.0)
    ear = Ear(home, clock)
    voice = Voice(folder / "spool", ear, clock, report)
    return Recorder(folder / "journal.db", link, ear, clock, voice).run()


def record_once(home: str, url: str, clock: Clock, limit: float) -> int:
    """Copy what there is within this time, and end; 0 if all of it was copied."""
    folder = Path(home)
    link = Link(folder, url, clock, sayer(clock), patience=limit / 2)
    ear = Ear(home, clock)
    voice = Voice(folder / "spool", ear, clock, earlier(folder / "spool", shown(url), clock.wall()))
    until = clock.mono() + limit
    try:
        while (step := link.copier.copy()).full and clock.mono() < until:
            pass
        link.write_last_rows()
        state = COPYING if step.full else CAUGHT_UP
        voice.turn(state, **standing(step.place), pending=0, lag_seconds=0.0, last_error=None)
    except StoreUnavailable as error:
        link.say(f"{error.code}: {error.message} {error.remedy}".rstrip())
        voice.turn(state_for(error), last_error=error_view(error))
    voice.speak()
    return 0 if voice.report.state == CAUGHT_UP else 1


def standing(place: Place) -> dict[str, Any]:
    """Give what a report says of how far the copy has come."""
    cursor = place.cursor
    return {
        "copied": {"events": cursor.events, "audit": cursor.audit, "jobs": cursor.jobs},
        "lost": place.lost,
        "set_aside": place.set_aside,
    }


def shown(url: str) -> str:
    """Give an address as anybody may read it."""
    try:
        return Address.parse(url).shown
    except StoreUnavailable:
        return ""


def sayer(clock: Clock) -> Say:
    """Write lines to where the recorder's own output goes."""

    def say(text: str, /) -> None:
        with suppress(OSError):
            write_all(2, f"{utc_text(clock.wall())} {text}\n".encode(errors="backslashreplace"))

    return say
