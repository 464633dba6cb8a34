"""`uphold diagnose`: a report about a worker and everything around it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from uphold.cli.arguments import add_order_options
from uphold.cli.errands import carry_out
from uphold.cli.speaking import say
from uphold.errors import HostFailure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument("name", metavar="NAME", help="the worker")
    parser.add_argument("--open", action="store_true", help="print the report for reading")
    add_order_options(parser)


def run(args: argparse.Namespace) -> int:
    """Have the report written, and say where it is; print it if asked to."""
    found: list[str] = []

    def lines(details: Mapping[str, Any]) -> Iterator[str]:
        path = details.get("report_path")
        if isinstance(path, str):
            found.append(path)
            yield f"report: {path}"
        yield from (f"not available: {problem}" for problem in details.get("problems") or ())

    code = carry_out(args, "diagnose", (args.name,), lines)
    if args.open and found and not args.json:
        _print(args, found[0])
    return code


def _print(args: argparse.Namespace, path: str) -> None:
    from uphold.diagnose.reports import render

    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs 8 ms
            report = json.load(file)
    except (OSError, ValueError) as cause:
        raise HostFailure(
            f"the report was written, but {path} cannot be read from here: {cause}.",
            code="UPH_SHARE_UNREACHABLE",
            remedy="Is the share mounted here, and may you read it?",
        ) from cause
    say(args, "", *render(report).splitlines())
