"""`uphold scale NAME=N`: set how many instances of a worker run."""

from __future__ import annotations

from uphold.cli.arguments import add_order_options, refusal
from uphold.cli.orders import submit

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "target", metavar="NAME=N", type=name_and_number, help="which worker, and how many"
    )
    add_order_options(parser)


def run(args: argparse.Namespace) -> int:
    """Give the order and tell what was observed."""
    name, replicas = args.target
    return submit(args, "scale", [name], replicas=replicas)


def name_and_number(text: str) -> tuple[str, int]:
    """Read `NAME=N`."""
    name, equals, number = text.partition("=")
    if not (name and equals and number.isascii() and number.isdigit()):
        raise refusal(f"'{text}' is not NAME=N with a whole number, as in web=3")
    return name, int(number)
