"""`uphold db migrate`: make the tables of the shared database, or extend those that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.cli.places import locate
from uphold.cli.speaking import print_document, say
from uphold.cli.stores import configured_store
from uphold.cli.times import now
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "make its tables, or extend those that are there; nothing is ever dropped"
_PATIENCE: Final = 60.0
"""Seconds for one change: a large table takes its time to be extended."""


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--dry-run", action="store_true", help="migrate: only list what would be done"
    )


def run(args: argparse.Namespace) -> int:
    """Do what is to be done, and say what it was."""
    from uphold.recorder.addresses import Address
    from uphold.recorder.extras import require_packages

    _, spec = configured_store(locate(args))
    address = Address.parse(spec.url)
    require_packages(address.dialect)
    from uphold.recorder.connecting import Store
    from uphold.recorder.migrating import migrate, pending

    with Store(address, patience=args.timeout or _PATIENCE, create=not args.dry_run) as store:
        changes = pending(store) if args.dry_run else migrate(store, now())
    if args.json:
        document = {"schema": 1, "url": address.shown, "dry_run": args.dry_run, "changes": changes}
        print_document(document)
        return EXIT_DONE
    if not changes:
        say(args, f"{address.shown} is up to date.")
        return EXIT_DONE
    verb = "would be changed" if args.dry_run else "is up to date now"
    say(args, *(f"  {printable(change)}" for change in changes), f"{address.shown} {verb}.")
    return EXIT_DONE
