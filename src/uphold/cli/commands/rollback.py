"""`uphold rollback`: undo the last commits of the checkout that workers run from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.cli.arguments import add_order_options, count
from uphold.cli.errands import carry_out

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--commits", type=count, default=1, metavar="N", help="how many, 1 to 10 (default 1)"
    )
    add_order_options(parser)


def run(args: argparse.Namespace) -> int:
    """Have them reverted, newest first; a conflict is taken back cleanly."""
    return carry_out(args, "rollback", (), _lines, commits=args.commits)


def _lines(details: Mapping[str, Any]) -> Iterator[str]:
    done = details.get("commits_reverted")
    if done is not None:
        yield f"{done} of {details.get('commits_back')} reverted"
    yield from (f"  {line}" for line in details.get("reverted_commits") or ())
    if details.get("failed_commit"):
        yield f"not reverted: {details['failed_commit']}"
    if details.get("final_commit"):
        yield f"now at {details['final_commit']}"
    if details.get("held"):
        yield "the workers are held and were not started"
