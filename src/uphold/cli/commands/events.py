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
from uphold.cli.seeing import refuse_unknown
from uphold.cli.speaking import say
from uphold.core.names import worker_of
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
    known, last, silent = _recorded(place, args)
    refuse_unknown(place, silent)
    if not known and not args.follow and not args.json:
        say(args, "no events yet")
    tell_records(args, known, event_line)
    if args.follow:
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


def _recorded(
    place: Place, args: argparse.Namespace
) -> tuple[list[dict[str, Any]], int | None, list[str]]:
    """Read the last events, oldest first; up to which number; and of whom there are none."""
    limit = limit_of(args)
    silent: list[str] = []
    try:
        with journal_of(place.home) as journal:
            newest = journal.events(limit=1, newest_first=True)
            found: list[dict[str, Any]] = []
            for name in dict.fromkeys(map(worker_of, args.names)) or [None]:
                of_worker = journal.events(
                    since=args.since, worker=name, limit=limit, newest_first=True
                )
                if name and not of_worker and not journal.events(worker=name, limit=1):
                    silent.append(name)
                found += of_worker
    except StoreUnavailable as error:
        if error.code == "UPH_JOURNAL_MISSING":
            return [], None, []
        raise
    found.sort(key=_number)
    looked_at = max(map(_number, (*newest, *found)), default=None)
    return found[-limit:] if limit else [], looked_at, silent


def _number(event: dict[str, Any]) -> int:
    return int(event["seq"])


def _stream(place: Place, args: argparse.Namespace, last: int | None) -> Iterator[dict[str, Any]]:
    with reach(place) as connection:
        connection.call("subscribe", {"from_seq": last, "names": args.names or None})
        for event in events_on(connection):
            # The stream may begin with the event we already have.
            if last is None or event.get("type") == "gap" or int(event.get("seq", 0)) > last:
                yield event
