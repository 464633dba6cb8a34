"""A single pass, run by the supervisor's program as our child, and what is said about it.

Signals that ask us to end are handed on; the pass finishes what it has begun, and so do we.
"""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

from uphold.cli.launching import spawn_pass
from uphold.cli.places import locate, require_config
from uphold.cli.speaking import print_document, say
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, EXIT_FAILED, UpholdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

_HANDED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def pass_once(args: argparse.Namespace) -> int:
    """Have one pass done and tell what came of it."""
    place = locate(args)
    config = require_config(place)
    started = spawn_pass(place.home, config, worker_id=args.worker_id, quiet=args.quiet)
    restore = _hand_on(started.pid)
    try:
        with os.fdopen(started.ready, "rb") as pipe:
            spoken = pipe.read()
        _, status = os.waitpid(started.pid, 0)
    finally:
        restore()
    return _tell(args, _understood(spoken, status))


def _hand_on(pid: int) -> Callable[[], None]:
    """Hand signals on to the pass until told otherwise. It is our own unreaped child."""
    before = {
        number: signal.signal(number, lambda number, _frame: os.kill(pid, number))
        for number in _HANDED_ON
    }

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore


def _understood(spoken: bytes, status: int) -> dict[str, Any]:
    try:
        told = json.loads(spoken)
    except ValueError:
        told = {}
    if "error" in told:
        from uphold.control.client import reported

        raise reported(told["error"])
    if "report" not in told:
        code = os.waitstatus_to_exitcode(status)
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        raise UpholdError(
            f"the pass ended before it was done ({how}).",
            code="UPH_PASS_BROKEN",
            remedy="Workers run on, and the next pass goes on where this one stopped.",
        )
    return dict(told["report"])


def _tell(args: argparse.Namespace, report: Mapping[str, Any]) -> int:
    if args.json:
        print_document(report)
    elif not report["acted"]:
        say(args, printable(f"nothing done: {report['owner']}"))
    else:
        say(args, *map(printable, _lines(report)))
    return EXIT_DONE if not report["acted"] or report["success"] else EXIT_FAILED


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    for action in report["actions"]:
        yield f"{action['did']} {action['slot']}: {action['why']}"
    width = max((len(check["name"]) for check in report["workers"]), default=0)
    for check in report["workers"]:
        yield f"{check['name']:<{width}}  {_standing(check)}"
    for problem in report["problems"]:
        yield f"problem: {problem}"
    count = len(report["problems"])
    yield "all is well" if not count else "1 problem" if count == 1 else f"{count} problems"


def _standing(check: Mapping[str, Any]) -> str:
    words = [check["state"]]
    if check["paused"]:
        words.append("held")
    elif not check["wanted"]:
        words.append("not wanted")
    elif check["starting"]:
        words.append("starting")
    elif check["running"]:
        words.append("healthy" if check["healthy"] else "not healthy")
    if check["heartbeat"] != "none":
        words.append(f"heartbeat {check['heartbeat']}")
    return ", ".join(words)
