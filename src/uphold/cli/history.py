"""What the histories share: their options, how they are read, and how they are followed.

The journal is read directly, so histories work with and without a supervisor. What is new
is announced by the supervisor's event stream; nothing is polled.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.arguments import count, refusal, usage_error
from uphold.cli.reaching import patience_of
from uphold.cli.records import journal_of
from uphold.cli.speaking import print_lines, print_records, say
from uphold.cli.times import moment_before, now
from uphold.control.client import Connection
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, StoreUnavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

    from uphold.cli.places import Place
    from uphold.journal.reading import JournalReader

    Record = dict[str, Any]
    Cells = tuple[tuple[object, int], ...]

USUAL_COUNT: Final = 50
ALL: Final = 1_000_000
NEWS: Final = 10_000
"""How many of the last records are looked through for news."""
WIDEST: Final = 40
SETTLE: Final = 0.05
"""Seconds of quiet after which a burst of news is over."""


def declare_history_options(parser: argparse.ArgumentParser) -> None:
    """Add what every history takes."""
    parser.add_argument("-f", "--follow", action="store_true", help="go on as things happen")
    parser.add_argument(
        "-n", "--lines", type=count, metavar="N", help=f"at most so many (default {USUAL_COUNT})"
    )
    parser.add_argument(
        "--since", type=point_in_time, metavar="TIME", help="an RFC 3339 time, or 10m for ago"
    )
    parser.add_argument("--until", type=point_in_time, metavar="TIME", help="up to this time")
    parser.add_argument(
        "--cause", metavar="ID", help="only what belongs to this order (its job id)"
    )


def declare_label_option(parser: argparse.ArgumentParser) -> None:
    """Add the label, by which people find their orders again."""
    parser.add_argument(
        "--label", metavar="TEXT", help="only orders with this label; * and ? match"
    )


def words(text: str) -> list[str]:
    """Read one word or several with commas between them."""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise refusal("a word is missing")
    return found


def refuse_endless_end(args: argparse.Namespace) -> None:
    """Refuse to follow what is to end in the past."""
    if args.follow and args.until is not None:
        raise usage_error(
            "--follow goes on for ever, and --until names an end.", "Leave one of them out."
        )


def flat(lists: list[list[str]] | None) -> list[str] | None:
    """Join the words of an option that was given several times; None if it was not given."""
    return None if lists is None else [word for each in lists for word in each]


def point_in_time(text: str) -> float:
    """Read a point in the past."""
    moment = moment_before(text, now())
    if moment is None:
        raise refusal(
            f"'{text}' is no time; write 2026-01-31T12:00:00Z, or 10m for ten minutes ago"
        )
    return moment


def limit_of(args: argparse.Namespace) -> int:
    """Tell how many records are wanted: all since a time, or the usual number of the last."""
    if args.lines is not None:
        return int(args.lines)
    return ALL if args.since is not None else USUAL_COUNT


def tell_history(
    place: Place,
    args: argparse.Namespace,
    *,
    what: str,
    read: Callable[[JournalReader, int], list[Record]],
    cells: Callable[[Record], Cells],
) -> int:
    """Print a history that lies in the journal, and go on with whatever the stream announces."""
    refuse_endless_end(args)
    seen: set[object] = set()
    wanted = limit_of(args)
    page = Page(args, cells)
    try:
        with journal_of(place.home) as journal:
            # Who follows looks further back: what is not news must be known as such.
            known = _unseen(read(journal, max(wanted, NEWS if args.follow else 0)), seen)
            page.tell(known[-wanted:] if wanted else [], nothing=f"no {what} {_found(args)}")
            if args.follow:
                for _ in announcements(place, patience_of(args)):
                    # A new connection: a resting file may have been opened as unchanging.
                    journal.close()
                    page.tell(_unseen(read(journal, NEWS), seen))
    except StoreUnavailable as error:
        if error.code != "UPH_JOURNAL_MISSING":
            raise
        page.tell([], nothing=f"no {what} yet")
    return EXIT_DONE


def refuse_silent(
    place: Place, names: Sequence[str], find: Callable[[JournalReader, str], Sequence[Record]]
) -> None:
    """Refuse names of which there is no history and that nobody knows."""
    if not names:
        return
    from uphold.cli.seeing import refuse_unknown
    from uphold.core.names import worker_of

    try:
        with journal_of(place.home) as journal:
            silent = [
                name for name in dict.fromkeys(map(worker_of, names)) if not find(journal, name)
            ]
    except StoreUnavailable:
        return  # told by whoever reads it next
    refuse_unknown(place, silent)


def _found(args: argparse.Namespace) -> str:
    """Tell whether there is nothing at all, or nothing of what was asked for."""
    usual = {"verb", "config", "home", "json", "quiet", "timeout", "follow", "lines"}
    asked = any(value for key, value in vars(args).items() if key not in usual)
    return "match" if asked else "yet"


def announcements(place: Place, patience: float) -> Iterator[None]:
    """Tell whenever something has happened, until the supervisor ends; a burst is told once."""
    with Connection(place.home, patience=patience) as connection:
        connection.call(
            "subscribe",
            {"from_seq": None, "names": None},
            patience=patience,
        )
        # What happened between the first reading and the subscription is read again.
        yield None
        try:
            while connection.receive(None) is not None:
                while connection.receive(SETTLE) is not None:
                    pass
                yield None
        except (EOFError, ConnectionError):
            yield None


def events_on(connection: Connection) -> Iterator[Record]:
    """Give the events of a subscribed connection until it ends."""
    while True:
        try:
            message = connection.receive(None)
        except (EOFError, ConnectionError):
            return
        if message is not None and isinstance(message.get("event"), dict):
            yield message["event"]


class Page:
    """Prints records as JSON lines, or for people in columns that fit all of them so far."""

    def __init__(self, args: argparse.Namespace, cells: Callable[[Record], Cells]) -> None:
        self._args = args
        self._cells = cells
        self._widths: list[int] = []

    def tell(self, records: Sequence[Record], nothing: str | None = None) -> None:
        """Print these, or say in a word that there are none."""
        if self._args.json:
            print_records(records)
        elif records:
            print_lines(self._lines(records))
        elif nothing is not None:
            say(self._args, nothing)
        sys.stdout.flush()

    def _lines(self, records: Sequence[Record]) -> list[str]:
        rows = [self._cells(record) for record in records]
        for row in rows:
            self._widths = self._widths or [width for _, width in row]
            for place, (cell, width) in enumerate(row):
                if width:
                    widest = max(self._widths[place], min(len(_cell(cell)), WIDEST))
                    self._widths[place] = widest
        return [fields(*zip((cell for cell, _ in row), self._widths, strict=True)) for row in rows]


def fields(*cells: tuple[object, int]) -> str:
    """Set one line of a history: each cell at least so wide, all of it safe to print."""
    return "  ".join(_cell(cell).ljust(width) for cell, width in cells).rstrip()


def _cell(value: object) -> str:
    return printable("-" if value is None else str(value))


def details(payload: object) -> str:
    """Say a payload in one line: the reason as a sentence, the rest as key=value."""
    if not isinstance(payload, dict):
        return "" if payload is None else str(payload)
    known = {key: value for key, value in payload.items() if value not in (None, "", [], {})}
    before, after, why = known.pop("before", None), known.pop("after", None), known.pop("why", "")
    # True after every ordered stop too, until the proof is there: no cause for alarm.
    if known.get("left_overs"):
        known["left_overs"] = "being seen off"
    parts = [f"{before} -> {after}"] if after is not None else []
    parts += [f"{key}={_short(value)}" for key, value in known.items()]
    return " ".join([*parts, f"({why})"] if why else parts)


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{_short(each)}" for key, each in value.items() if each is not None)
    if isinstance(value, list):
        return ",".join(map(_short, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _unseen(records: list[Record], seen: set[object]) -> list[Record]:
    """Leave out what was shown already; a job is news again when its state has changed."""
    fresh = []
    for record in records:
        key = record.get("audit_id") or (record.get("job_id"), record.get("state"))
        if key not in seen:
            seen.add(key)
            fresh.append(record)
    return fresh
