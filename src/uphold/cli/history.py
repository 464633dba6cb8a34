"""What the histories share: their options, how they are read, and how they are followed.

The journal is read directly, so histories work with and without a supervisor. What is new
is announced by the supervisor's event stream; nothing is polled.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.arguments import count
from uphold.cli.records import journal_of
from uphold.cli.speaking import print_lines, print_records
from uphold.cli.times import moment_before, now
from uphold.control.client import Connection
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from uphold.cli.places import Place
    from uphold.journal.reading import JournalReader

    Record = dict[str, Any]

USUAL_COUNT: Final = 50
ALL: Final = 1_000_000
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


def point_in_time(text: str) -> float:
    """Read a point in the past."""
    moment = moment_before(text, now())
    if moment is None:
        raise argparse.ArgumentTypeError(
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
    read: Callable[[JournalReader], list[Record]],
    line: Callable[[Record], str],
) -> int:
    """Print a history that lies in the journal, and go on with whatever the stream announces."""
    seen: set[object] = set()
    try:
        with journal_of(place.home) as journal:
            _tell(args, _unseen(read(journal), seen), line, nothing=f"no {what} yet")
            if args.follow:
                for _ in announcements(place):
                    # A new connection: a resting file may have been opened as unchanging.
                    journal.close()
                    _tell(args, _unseen(read(journal), seen), line)
    except StoreUnavailable as error:
        if error.code != "UPH_JOURNAL_MISSING":
            raise
        _tell(args, [], line, nothing=f"no {what} yet")
    return EXIT_DONE


def announcements(place: Place) -> Iterator[None]:
    """Tell whenever something has happened, until the supervisor ends; a burst is told once."""
    with Connection(place.home) as connection:
        connection.call("subscribe", {"from_seq": None, "names": None})
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


def tell_records(
    args: argparse.Namespace, records: Iterable[Record], line: Callable[[Record], str]
) -> None:
    """Print records as JSON lines, or one line each for people."""
    if args.json:
        print_records(records)
    else:
        print_lines(line(record) for record in records)
    sys.stdout.flush()


def fields(*cells: tuple[object, int]) -> str:
    """Set one line of a history: each cell at least so wide, all of it safe to print."""
    texts = (printable("-" if cell is None else str(cell)).ljust(width) for cell, width in cells)
    return "  ".join(texts).rstrip()


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
        return ",".join(f"{key}:{each}" for key, each in value.items() if each is not None)
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def _tell(
    args: argparse.Namespace,
    records: list[Record],
    line: Callable[[Record], str],
    nothing: str | None = None,
) -> None:
    if not records and nothing is not None and not args.json and not args.quiet:
        print_lines([nothing])
    tell_records(args, records, line)


def _unseen(records: list[Record], seen: set[object]) -> list[Record]:
    """Leave out what was shown already; a job is news again when its state has changed."""
    fresh = []
    for record in records:
        key = record.get("audit_id") or (record.get("job_id"), record.get("state"))
        if key not in seen:
            seen.add(key)
            fresh.append(record)
    return fresh
