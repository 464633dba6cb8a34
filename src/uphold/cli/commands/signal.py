"""`uphold signal NAME SIG`: send a signal to the main process of a worker."""

from __future__ import annotations

from uphold.cli.arguments import add_order_options, refusal
from uphold.cli.orders import submit

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("name", metavar="NAME", help="a worker")
    parser.add_argument("signal", metavar="SIG", type=signal_name, help="HUP, SIGUSR1, 10, ...")
    add_order_options(parser)


def run(args: argparse.Namespace) -> int:
    """Give the order and tell what was observed."""
    return submit(args, "signal", [args.name], signal=args.signal)


def signal_name(text: str) -> str:
    """Read a signal by its name, with or without SIG, or by its number."""
    from signal import Signals

    try:
        if text.isdigit():
            return Signals(int(text)).name.removeprefix("SIG")
        return Signals[f"SIG{text.upper().removeprefix('SIG')}"].name.removeprefix("SIG")
    except (KeyError, ValueError):
        raise refusal(f"there is no signal '{text}'; try HUP or USR1") from None
