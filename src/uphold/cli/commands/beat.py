"""`uphold beat NAME`: tell the supervisor that a remote worker lives, and how it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.arguments import count
from uphold.cli.places import locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.speaking import print_document
from uphold.errors import EXIT_DONE

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("name", metavar="NAME", help="a remote worker")
    parser.add_argument("--seq", type=count, metavar="N", help="the number of this heartbeat")
    parser.add_argument("--status", metavar="WORD", help="ok, idle, busy, degraded, ...")
    parser.add_argument("--progress", type=float, metavar="N", help="how far its work has come")
    parser.add_argument("--error", metavar="TEXT", help="what is wrong with it")
    parser.add_argument("--summary", metavar="TEXT", help="what it is doing")
    parser.add_argument("--nonce", metavar="TEXT", help="what the last answer gave, as a proof")


def run(args: argparse.Namespace) -> int:
    """Hand it in; it is refused if it cannot be true."""
    words = ("seq", "status", "progress", "error", "summary", "nonce")
    said = {word: getattr(args, word) for word in words if getattr(args, word) is not None}
    with reach(locate(args), patience_of(args)) as connection:
        document = connection.call(
            "beat", {"worker": args.name, **said}, patience=patience_of(args)
        )
    if args.json:
        print_document(document)
    return EXIT_DONE
