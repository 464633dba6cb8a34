"""`uphold approve`: lift a quarantine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.orders import declare_names, submit

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    declare_names(parser, about="workers whose quarantine is lifted")


def run(args: argparse.Namespace) -> int:
    """Give the order and tell what was observed."""
    return submit(args, "approve", args.names)
