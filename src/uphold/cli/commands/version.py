"""`uphold version`: print the version."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from uphold import __version__
from uphold.cli.speaking import print_document, print_lines
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb: nothing."""


def run(args: argparse.Namespace) -> int:
    """Print it."""
    python = platform.python_version()
    if args.json:
        print_document({"schema": 1, "version": __version__, "python": python})
    else:
        print_lines([f"uphold {__version__} (Python {python}, {platform.system()})"])
    return EXIT_DONE
