"""`uphold events`: what has happened, and what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.cli.history import (
    declare_history_options,
    details,
    events_on,
    fields,
    limit_of,
    tell_records,
)
from uphold.cli.places import locate
from uphold.cli.reaching import reach
from uphold.cli.records import journal_of
from uphold.cli.speaking import say
from uphold.errors import EXIT_DONE, StoreUnavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from uphold.cli.places import Place


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these workers")
    declare_history_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the history, then follow the stream from where it ended."""
    place = locate(args)
    known = _recorded(place, args)
    if not known and not args.follow and not args.json:
        say(args, "no events yet")
    tell_records(args, known, event_line)
    if args.follow:
        last = int(known[-1]["seq"]) if known else None
        for event in _stream(place, args, last):
            tell_records(args, [event], event_line)
    return EXIT_DONE


def event_line(event: dict[str, Any]) -> str:
    """Write an event for people."""
    return fields(
        (event.get("timestamp"), 24),
        (event.get("severity"), 7),
        (event.get("type"), 24),
        (event.get("entity_id"), 12),
        (details(event.get("payload")), 0),
    )


def _recorded(place: Place, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Read the last events, oldest first."""
    limit = limit_of(args)
    try:
        with journal_of(place.home) as journal:
            found: list[dict[str, Any]] = []
            for name in args.names or [None]:
                found += journal.events(
                    since=args.since, worker=name, limit=limit, newest_first=True
                )
    except StoreUnavailable as error:
        if error.code == "UPH_JOURNAL_MISSING":
            return []
        raise
    found.sort(key=lambda event: int(event["seq"]))
    return found[-limit:] if limit else []


def _stream(place: Place, args: argparse.Namespace, last: int | None) -> Iterator[dict[str, Any]]:
    with reach(place) as connection:
        connection.call("subscribe", {"from_seq": last, "names": args.names or None})
        for event in events_on(connection):
            # The stream may begin with the event we already have.
            if last is None or event.get("type") == "gap" or int(event.get("seq", 0)) > last:
                yield event
