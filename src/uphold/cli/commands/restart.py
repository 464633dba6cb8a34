"""`uphold restart`: a full stop and start of the supervisor, or of the named workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.arguments import usage_error
from uphold.cli.orders import declare_names, submit
from uphold.cli.places import Place, locate
from uphold.errors import EXIT_DONE, EXIT_FAILED

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    declare_names(parser, optional=True, about="workers to restart; none: the supervisor")
    parser.add_argument(
        "--keep-workers",
        action="store_true",
        help="leave the workers running and adopt them (an upgrade of uphold itself)",
    )


def run(args: argparse.Namespace) -> int:
    """Restart what is named, or the supervisor with the configuration it had."""
    if args.names:
        if args.keep_workers:
            raise usage_error(
                "--keep-workers is about the supervisor, not about named workers.",
                "Leave out the names, or the option.",
            )
        return submit(args, "restart", args.names)
    from uphold.cli.beginning import refuse_unstartable, start_supervisor, tell_started
    from uphold.cli.ending import stop_supervisor, tell_stopped
    from uphold.cli.owners import config_of, owner_of

    place = locate(args)
    recorded = config_of(owner_of(place.home))
    if args.config is None and recorded is not None:
        place = Place(place.home, recorded)
    # Before anything is stopped: what no supervisor can be started with must not leave none.
    refuse_unstartable(place)
    # Seen to its end: nobody can be started before.
    ending = stop_supervisor(args, place, keep_workers=args.keep_workers, to_the_end=True)
    if not args.json or not ending.complete:
        tell_stopped(args, ending)
    if not ending.complete:
        return EXIT_FAILED
    # A person says otherwise (P8): what has failed is tried again. An upgrade changes nothing.
    tell_started(args, place, start_supervisor(args, place, forgive=not args.keep_workers))
    return EXIT_DONE
