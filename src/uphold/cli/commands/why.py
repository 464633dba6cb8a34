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


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("name", metavar="NAME", help="a worker")


def run(args: argparse.Namespace) -> int:
    """Ask the supervisor, or say what can be seen without one."""
    place = locate(args)
    if owner_of(place.home).standing == "running":
        with reach(place) as connection:
            document = connection.call("why", {"name": args.name}, patience=patience_of(args))
    else:
        document = _without_supervisor(place, args.name)
    if args.json:
        print_document(document)
    elif not args.quiet:
        sys.stdout.write(f"{_folded(printable(document['text']), screen_of().width)}\n")
    return EXIT_DONE


def _without_supervisor(place: Place, name: str) -> dict[str, Any]:
    from uphold.cli.seeing import look

    document = look(place, [name], companions=True)
    supervisor = document["supervisor"]
    seen = " ".join(
        f"{row['slot']} is {row['state']}"
        + (f" (pid {row['pid']})" if row["pid"] else "")
        + f": {row['why']}."
        for row in document["workers"]
    )
    text = f"No supervisor is running here (ownership: {supervisor['ownership']}). {seen}"
    return {"schema": 1, "name": name, "text": f"{text} Next: uphold start."}


def _folded(text: str, width: int | None) -> str:
    """Break a paragraph into lines on a terminal; elsewhere it stays one line."""
    if width is None:
        return text
    from textwrap import fill

    return fill(text, min(width, 100))
