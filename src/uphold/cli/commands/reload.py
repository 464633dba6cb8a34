"""`uphold reload`: apply the configuration file now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.cli.arguments import add_order_options
from uphold.cli.changes import change_lines
from uphold.cli.orders import order_params, tell_results
from uphold.cli.places import locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.screens import screen_of
from uphold.cli.speaking import notice, say

if TYPE_CHECKING:
    import argparse


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    add_order_options(parser)


def run(args: argparse.Namespace) -> int:
    """Give the order, show what changed and what was observed."""
    with reach(locate(args), patience_of(args)) as connection:
        answer = connection.order(
            "reload",
            order_params(args),
            timeout=args.timeout,
            notice=notice(args, "waiting for the changes to be carried out ..."),
        )
    if not args.json:
        say(args, *change_lines(answer.get("changes") or [], screen_of()))
    return tell_results(args, answer)
