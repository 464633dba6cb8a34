"""`uphold stop`: the supervisor and its workers, or workers that shall be down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.arguments import usage_error
from uphold.cli.orders import declare_names, submit
from uphold.cli.places import locate
from uphold.errors import EXIT_DONE, EXIT_FAILED

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    declare_names(parser, optional=True, about="workers to stop; none: the supervisor")
    parser.add_argument(
        "--keep-workers",
        action="store_true",
        help="stop only the supervisor; the next start adopts the workers",
    )


def run(args: argparse.Namespace) -> int:
    """Stop what is named, or everything, and say what it took."""
    if args.names:
        if args.keep_workers:
            raise usage_error(
                "--keep-workers is about the supervisor, not about named workers.",
                "Leave out the names, or the option.",
            )
        return submit(args, "stop", args.names)
    from uphold.cli.ending import stop_supervisor, tell_stopped

    ending = stop_supervisor(args, locate(args), keep_workers=args.keep_workers)
    tell_stopped(args, ending)
    return EXIT_DONE if ending.complete else EXIT_FAILED
