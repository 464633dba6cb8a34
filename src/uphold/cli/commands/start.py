"""`uphold start`: the supervisor in the background, or workers that shall be up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.orders import declare_names, submit
from uphold.cli.places import locate
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    declare_names(parser, optional=True, about="workers to start; none: the supervisor")


def run(args: argparse.Namespace) -> int:
    """Start what is named, or the supervisor, and wait until it is so."""
    if args.names:
        return submit(args, "start", args.names)
    from uphold.cli.beginning import start_supervisor, tell_started

    place = locate(args)
    tell_started(args, place, start_supervisor(args, place))
    return EXIT_DONE
