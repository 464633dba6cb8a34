"""`uphold disable`: forbid workers to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.orders import declare_names, submit

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    declare_names(parser, about="workers that may not run")


def run(args: argparse.Namespace) -> int:
    """Give the order and tell what was observed."""
    return submit(args, "disable", args.names)
