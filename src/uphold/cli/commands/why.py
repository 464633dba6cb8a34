"""`uphold why NAME`: one paragraph on why a worker is as it is, and what happens next."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from uphold.cli.owners import owner_of
from uphold.cli.places import Place, locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.screens import screen_of
from uphold.cli.speaking import print_document
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from uphold.core.declaring import Entry


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("name", metavar="NAME", help="a worker")


def run(args: argparse.Namespace) -> int:
    """Ask the supervisor, or say what can be seen without one."""
    place = locate(args)
    if owner_of(place.home).standing == "running":
        with reach(place, patience_of(args)) as connection:
            document = connection.call("why", {"name": args.name}, patience=patience_of(args))
    else:
        document = _without_supervisor(place, args.name)
    if args.json:
        print_document(document)
    elif not args.quiet:
        sys.stdout.write(f"{_folded(printable(document['text']), screen_of().width)}\n")
    return EXIT_DONE


def _without_supervisor(place: Place, name: str) -> dict[str, Any]:
    from uphold.cli.declared import entries_of, look_by_name
    from uphold.core.names import worker_of

    document = look_by_name(place, [name], companions=True)
    entry = entries_of(place).get(worker_of(name))
    seen = " ".join(
        f"{row['slot']} is {row['state']}"
        + (f" (pid {row['pid']})" if row["pid"] else "")
        + f": {_reason(row, entry)}."
        for row in document["workers"]
    )
    ownership = document["supervisor"]["ownership"]
    text = f"No supervisor is running here (ownership: {ownership}). {seen}"
    return {"schema": 1, "name": name, "text": f"{text} Next: {_next_step(entry)}."}


def _reason(row: Mapping[str, Any], entry: Entry | None) -> str:
    """Say why a slot is as it is; what holds it back counts for more than that nothing runs."""
    from uphold.cli.declared import at_rest

    if row["pid"] or entry is None or entry.wanted:
        return str(row["why"])
    return f"{at_rest(entry)[0]['why']}; it stays down when a supervisor starts"


def _next_step(entry: Entry | None) -> str:
    """Name what brings it up: a supervisor first, then whatever lifts what holds it back."""
    if entry is not None and entry.wanted and not entry.replicas:
        return f"uphold start, then uphold scale {entry.spec.name}=1"
    if entry is None or entry.wanted or entry.override.withheld:
        return "uphold start"
    verbs = {"paused": "resume", "disabled": "enable", "quarantined": "approve"}
    return f"uphold start, then uphold {verbs.get(entry.admin, 'start')} {entry.spec.name}"


def _folded(text: str, width: int | None) -> str:
    """Break a paragraph into lines on a terminal; elsewhere it stays one line."""
    if width is None:
        return text
    from textwrap import fill

    return fill(text, min(width, 100))
