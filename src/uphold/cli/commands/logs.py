"""`uphold logs`: what workers wrote; without a name, recent runtime events."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.arguments import count
from uphold.cli.history import point_in_time
from uphold.cli.places import locate
from uphold.cli.speaking import say
from uphold.core.names import worker_of
from uphold.core.texts import utc_text
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from uphold.cli.logreading import Line, LogView, Wanted

USUAL_LINES: Final = 100


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="workers or slots")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as lines come")
    parser.add_argument(
        "-n", "--lines", type=count, metavar="N", help=f"the last N (default {USUAL_LINES})"
    )
    parser.add_argument("--since", type=point_in_time, metavar="TIME", help="10m (ago), or a time")
    parser.add_argument("--until", type=point_in_time, metavar="TIME", help="up to this time")
    parser.add_argument("--grep", metavar="PATTERN", help="only lines that match")
    parser.add_argument("--timestamps", action="store_true", help="when each line arrived")
    parser.add_argument("--no-prefix", action="store_true", help="no names before the lines")


def run(args: argparse.Namespace) -> int:
    """Read the files; a supervisor is not needed."""
    place = locate(args)
    if not args.names:
        from uphold.cli.runtimelog import tell_runtime_log

        return tell_runtime_log(place.home, args)
    from pathlib import Path

    from uphold.cli.logreading import LogView, Wanted, grep_of

    limit = None if args.since is not None else USUAL_LINES
    wanted = Wanted(
        last=limit if args.lines is None else args.lines,
        since=args.since,
        until=args.until,
        grep=None if args.grep is None else grep_of(args.grep),
    )
    with LogView(Path(place.home, "logs"), args.names) as view:
        found = {word for each in view.sources for word in (each.slot, worker_of(each.slot))}
        if silent := [name for name in args.names if name not in found]:
            from uphold.cli.seeing import refuse_unknown

            refuse_unknown(place, silent)
        if not view.sources and not args.follow:
            if not args.json:
                say(args, "no logs yet")
            return EXIT_DONE
        _print(_chosen(view, wanted, args), view, args)
    return EXIT_DONE


def _chosen(view: LogView, wanted: Wanted, args: argparse.Namespace) -> Iterator[Line]:
    return view.follow(wanted) if args.follow else view.lines(wanted)


def _print(lines: Iterator[Line], view: LogView, args: argparse.Namespace) -> None:
    from uphold.cli.output import look_of

    look = look_of(view.width, timestamps=args.timestamps, prefix=not args.no_prefix)
    from uphold.cli.logreading import render

    for line in lines:
        if args.json:
            from json import dumps

            sys.stdout.write(f"{dumps(_record(line))}\n")
        else:
            sys.stdout.write(f"{render(line, look)}\n")
        if args.follow:
            sys.stdout.flush()


def _record(line: Line) -> dict[str, Any]:
    return {
        "slot": line.source.slot,
        "stream": line.source.stream,
        "timestamp": None if line.at is None else utc_text(line.at),
        "text": line.text.decode(errors="backslashreplace"),
    }
