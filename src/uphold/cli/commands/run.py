"""`uphold run`: supervise in the foreground, with the workers' output or a live table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.places import locate

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--table", action="store_true", help="show a live table instead of the workers' output"
    )


def run(args: argparse.Namespace) -> int:
    """Start the supervisor as a child, show what happens, and end as it ends."""
    from uphold.cli.foreground import supervise

    return supervise(args, locate(args))
