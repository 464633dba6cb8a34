"""`uphold db supervisors`: who keeps rows in the shared database, and who is silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.cli.places import locate
from uphold.cli.speaking import print_document, print_lines
from uphold.cli.stores import configured_store
from uphold.cli.times import now
from uphold.errors import EXIT_DONE, EXIT_NO_SUCH, STATUS_DEGRADED

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "list the supervisors that share it: who lives, who is silent, who failed"
_HEADER: Final = ("NAME", "STATUS", "HEALTH", "LAST BEAT", "AGE", "WORKERS", "WHY")
_PATIENCE: Final = 10.0


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--name", metavar="NAME", help="supervisors: only the one of this name or id"
    )


def run(args: argparse.Namespace) -> int:
    """List them; with --name the exit code says how that one does."""
    from uphold.recorder.addresses import Address
    from uphold.recorder.extras import require_packages

    _, spec = configured_store(locate(args))
    address = Address.parse(spec.url)
    require_packages(address.dialect)
    from uphold.cli.rendering import PLAIN, columns
    from uphold.recorder.connecting import Store
    from uphold.recorder.standing import cells, supervisors, unwell

    with Store(address, patience=args.timeout or _PATIENCE, create=False) as store:
        found = supervisors(store, now(), args.name)
    if args.json:
        views = [each.view() for each in found]
        print_document({"schema": 1, "url": address.shown, "supervisors": views})
    else:
        print_lines(columns([cells(each) for each in found], _HEADER, PLAIN))
    if args.name is None:
        return EXIT_DONE
    if not found[0].row.id:
        return EXIT_NO_SUCH
    return STATUS_DEGRADED if any(unwell(found)) else EXIT_DONE
