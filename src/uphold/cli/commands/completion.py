"""`uphold completion`: print a completion script for a shell."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell it is for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from uphold.cli.completing import SHELLS

    sys.stdout.write(SHELLS[args.shell]())
    return EXIT_DONE
