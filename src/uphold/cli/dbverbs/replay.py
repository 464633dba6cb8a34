"""`uphold db replay`: copy again everything the journal still has; no row becomes two."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.cli.arguments import count
from uphold.cli.places import locate
from uphold.cli.speaking import print_document, say, warn
from uphold.cli.stores import configured_store
from uphold.cli.times import now
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "copy again everything the journal still has; no row becomes two"
_PATIENCE: Final = 10.0


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--from",
        dest="from_seq",
        type=count,
        metavar="SEQ",
        help="replay: only events from this number on (audit and jobs come in any case)",
    )


def run(args: argparse.Namespace) -> int:
    """Copy, show how far it is, and say how much it was. Works beside a recorder that runs."""
    from uphold.recorder.addresses import Address
    from uphold.recorder.extras import require_packages

    place = locate(args)
    _, spec = configured_store(place)
    address = Address.parse(spec.url)
    require_packages(address.dialect)
    from uphold.journal.outgoing import Cursor, Outgoing
    from uphold.recorder.connecting import Store
    from uphold.recorder.copying import Copier
    from uphold.recorder.refusals import Refusals

    home = Path(place.home)
    journal = home / "journal.db"
    cursor = Cursor(events=max(0, (args.from_seq or 1) - 1))
    with Outgoing(journal) as reader:
        total = reader.waiting(cursor).rows
    rows, refused = 0, 0
    with Store(address, patience=args.timeout or _PATIENCE) as store:
        tell = lambda text: warn(args, text)  # noqa: E731 - a line for people, no more
        refusals = Refusals(home / "spool", wall=now, say=tell)
        copier = Copier(store, journal, wall=now, refusals=refusals, say=tell)
        more = True
        while more:
            before = cursor
            step, cursor = copier.replay(cursor)
            rows += step.rows
            refused = step.place.set_aside
            more = step.full and cursor != before
            _show_progress(args, rows, total)
    if args.json:
        document = {"schema": 1, "url": address.shown, "rows": rows, "set_aside": refused}
        print_document(document)
    else:
        say(args, f"{rows} rows were copied to {address.shown}; those that were there stayed.")
    return EXIT_DONE


def _show_progress(args: argparse.Namespace, rows: int, total: int) -> None:
    if not args.quiet and not args.json and sys.stderr.isatty():
        sys.stderr.write(f"\r{rows:,} of {total:,} rows{'' if rows < total else chr(10)}")
        sys.stderr.flush()
