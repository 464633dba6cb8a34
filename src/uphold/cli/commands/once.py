"""`uphold once`: one pass and exit, for a task scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.errors import EXIT_FAILED, UpholdError

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--worker-id",
        metavar="NAME",
        help="judge only this worker (default: all that are declared)",
    )


def run(args: argparse.Namespace) -> int:
    """Do one pass; 0 if everything is as it should be, else 1, and no other number."""
    from uphold.cli.passing import pass_once
    from uphold.cli.speaking import report_error

    try:
        return pass_once(args)
    except UpholdError as error:
        report_error(error, as_json=args.json)
        return EXIT_FAILED
