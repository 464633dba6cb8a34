"""Orders that take their time: how they are sent, and how what they came to is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uphold.cli.orders import order_params
from uphold.cli.places import locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.speaking import notice, print_document, report_error, say
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, EXIT_FAILED, EXIT_NOT_PERMITTED, UpholdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Lines = Callable[[Mapping[str, Any]], Iterable[str]]


def carry_out(
    args: argparse.Namespace,
    verb: str,
    names: Sequence[str],
    lines: Lines,
    **details: object,
) -> int:
    """Send an errand, wait for its end, and print what it came to.

    1 if it failed; 4 if it was refused, and nothing was begun.
    """
    params = {"verb": verb, "names": list(names), **details, **order_params(args)}
    with reach(locate(args), patience_of(args)) as connection:
        answer: dict[str, Any] = connection.order(
            "submit",
            params,
            timeout=args.timeout,
            notice=notice(args, f"waiting for the {verb} (Ctrl-C leaves the order in force) ..."),
        )
    if args.json:
        print_document(answer)
    elif args.no_wait:
        say(args, f"accepted as {printable(str(answer['job_id']))}; see `uphold jobs`.")
    else:
        details = answer.get("details") or {}
        if answer.get("error"):
            report_error(_error(str(answer["error"]), details), as_json=False)
        say(args, *map(printable, lines(details)))
    if not answer.get("error"):
        return EXIT_DONE
    refused = (answer.get("details") or {}).get("refused")
    return EXIT_NOT_PERMITTED if refused else EXIT_FAILED


def _error(message: str, details: Mapping[str, Any]) -> UpholdError:
    """Give a failed errand the form of every other error: with its code and what to do next."""
    code, remedy = details.get("code"), details.get("remedy")
    return UpholdError(message, code=str(code) if code else None, remedy=str(remedy or ""))
