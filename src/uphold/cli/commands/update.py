"""`uphold update`: bring the checkout that workers run from up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.cli.arguments import add_order_options
from uphold.cli.errands import carry_out

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--deps", action="store_true", help="install the requirements too (pip, ten minutes)"
    )
    add_order_options(parser)


def run(args: argparse.Namespace) -> int:
    """Have it updated; the old commit comes back by itself if the workers are not well."""
    return carry_out(args, "update", (), _lines, dependencies=args.deps)


def _lines(details: Mapping[str, Any]) -> Iterator[str]:
    if details.get("up_to_date"):
        yield "already up to date"
        return
    before, after = details.get("before_commit"), details.get("after_commit")
    if before and after:
        yield f"{before} -> {after}" if before != after else f"still at {after}"
    yield from (f"  {line}" for line in details.get("commits") or ())
    if details.get("held"):
        yield "the workers are held and were not started"
