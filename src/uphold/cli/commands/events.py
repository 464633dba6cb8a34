"""`uphold events`: what has happened, and what happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.cli.history import (
    Page,
    declare_history_options,
    details,
    events_on,
    flat,
    limit_of,
    refuse_endless_end,
    words,
)
from uphold.cli.places import locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.records import journal_of
from uphold.cli.seeing import refuse_unknown
from uphold.core.names import worker_of
from uphold.errors import EXIT_DONE, StoreUnavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from uphold.cli.history import Cells
    from uphold.cli.places import Place

SEVERITIES: Final = ("info", "warning", "error")

_EXAMPLES: Final = """examples:
  uphold events --severity warning --since 1d    what was not as it should be
  uphold events api --type 'worker.*' -f         follow one worker
  uphold events --type worker.exited,worker.failed --json
  uphold events --cause JOB                      everything that an order led to
"""


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.epilog = _EXAMPLES
    parser.add_argument("names", metavar="NAME", nargs="*", help="only these workers")
    parser.add_argument(
        "--type", type=words, action="append", metavar="TYPE", help="only these; * and ? match"
    )
    parser.add_argument(
        "--severity", choices=SEVERITIES, metavar="LEVEL", help="info, warning or error, and above"
    )
    declare_history_options(parser)


def run(args: argparse.Namespace) -> int:
    """Print the history, then follow the stream from where it ended."""
    refuse_endless_end(args)
    place = locate(args)
    known, last, silent = _recorded(place, args)
    refuse_unknown(place, silent)
    page = Page(args, event_cells)
    page.tell(known, nothing=None if args.follow else _nothing(args))
    if args.follow:
        for event in _stream(place, args, last):
            page.tell([event])
    return EXIT_DONE


def event_cells(event: dict[str, Any]) -> Cells:
    """Write an event for people."""
    return (
        (event.get("timestamp"), 24),
        (event.get("severity"), 7),
        (event.get("type"), 24),
        (event.get("entity_id"), 12),
        (details(event.get("payload")), 0),
    )


def _nothing(args: argparse.Namespace) -> str:
    restricted = (args.names, args.type, args.severity, args.cause, args.since, args.until)
    return "no events match" if any(restricted) else "no events yet"


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
                    since=args.since,
                    until=args.until,
                    worker=name,
                    types=flat(args.type),
                    severities=_severities(args),
                    cause=args.cause,
                    limit=limit,
                    newest_first=True,
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


def _severities(args: argparse.Namespace) -> tuple[str, ...] | None:
    """List the levels from the one that was asked for upwards."""
    return SEVERITIES[SEVERITIES.index(args.severity) :] if args.severity else None


def _matches(event: dict[str, Any], args: argparse.Namespace) -> bool:
    """Tell of an event from the stream what the journal tells of those it holds."""
    kind = str(event.get("type"))
    if kind == "gap":
        return True  # whoever filters must know too that something is missing
    types, severities = flat(args.type), _severities(args)
    if types is not None:
        from fnmatch import fnmatchcase

        if not any(fnmatchcase(kind, pattern) for pattern in types):
            return False
    if severities is not None and event.get("severity") not in severities:
        return False
    order = event.get("entity_id") if event.get("entity_type") == "order" else None
    return args.cause is None or args.cause in (event.get("cause"), order)


def _stream(place: Place, args: argparse.Namespace, last: int | None) -> Iterator[dict[str, Any]]:
    with reach(place, patience_of(args)) as connection:
        connection.call(
            "subscribe",
            {"from_seq": last, "names": args.names or None},
            patience=patience_of(args),
        )
        for event in events_on(connection):
            # The stream may begin with the event we already have.
            new = last is None or event.get("type") == "gap" or int(event.get("seq", 0)) > last
            if new and _matches(event, args):
                yield event
