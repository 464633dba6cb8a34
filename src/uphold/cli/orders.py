"""What all order verbs share: sending the order, waiting, and telling what came of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from uphold.cli.arguments import add_order_options
from uphold.cli.places import locate
from uphold.cli.reaching import patience_of, reach
from uphold.cli.rendering import fault_text
from uphold.cli.speaking import notice, print_document, say
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, EXIT_FAILED

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence


def declare_names(
    parser: argparse.ArgumentParser, *, optional: bool = False, about: str = "a worker"
) -> None:
    """Add the names of workers and what every order may carry."""
    parser.add_argument("names", metavar="NAME", nargs="*" if optional else "+", help=about)
    add_order_options(parser)


def author() -> str:
    """Say who gives the order: the user of this process, on this machine."""
    import pwd

    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"uid{uid}"
    return f"{user}@{os.uname().nodename}"


def order_params(args: argparse.Namespace) -> dict[str, Any]:
    """Gather what every order carries; the supervisor knows how long its own wait may be."""
    params: dict[str, Any] = {
        "label": args.label,
        "reason": args.reason,
        "author": author(),
        "wait": not args.no_wait,
    }
    if args.timeout is not None:
        params["timeout"] = args.timeout
    return params


def submit(args: argparse.Namespace, verb: str, names: Sequence[str], **details: object) -> int:
    """Send an order about workers and tell what was observed."""
    params = {"verb": verb, "names": list(names), **details, **order_params(args)}
    return send(args, "submit", params, about=", ".join(names) or "the supervisor")


def send(args: argparse.Namespace, method: str, params: Mapping[str, object], about: str) -> int:
    """Send a request that is an order, and print its answer."""
    with reach(locate(args), patience_of(args)) as connection:
        answer = connection.order(
            method,
            params,
            timeout=args.timeout,
            notice=notice(args, f"waiting for {about} (Ctrl-C leaves the order in force) ..."),
        )
    return tell_results(args, answer)


def tell_results(args: argparse.Namespace, answer: Mapping[str, Any]) -> int:
    """Print what came of an order; 1 if it failed for any worker."""
    results = answer.get("results") or []
    if args.json:
        print_document(answer)
    elif args.no_wait and answer.get("job_id"):
        say(args, f"accepted as {printable(str(answer['job_id']))}; see `uphold jobs`.")
    elif results:
        say(args, *(result_line(result) for result in results))
    elif answer.get("job_id"):
        say(args, f"done ({printable(str(answer['job_id']))})")
    return EXIT_DONE if all(result["ok"] for result in results) else EXIT_FAILED


def result_line(result: Mapping[str, Any]) -> str:
    """Say what came of an order for one worker."""
    fault = fault_text(result.get("error"))
    state = result.get("state")
    told = f"{result['name']}: {state or 'done'}"
    return printable(f"{told}, but {fault}" if fault and not result["ok"] else told)
