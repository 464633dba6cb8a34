"""The program that plug-ins run in: one question, one answer, and it is gone.

`python -I -m uphold.inbox.advising` reads a question from its input and writes the answer to its
output. Whatever a plug-in prints goes to the errors, and whatever it breaks ends with the process.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from uphold.core.orders import Refusal
from uphold.errors import Malformed, UpholdError
from uphold.inbox.flags import WRONG_PARAMS, Flag
from uphold.plugins import HANDLERS, Handler, fault_of_handler, find, told
from uphold.wire.codecs import encode
from uphold.wire.wishes import wish_view

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMORY: Final = 1 << 30
"""Bytes that a plug-in may fill; the rest of the machine is for the workers."""


def advise(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Answer with a handler's row, or with what it makes of a flag; never raises."""
    name = str(asked["handler"])
    try:
        thing = find(HANDLERS, name)
        fault = fault_of_handler(name, thing)
    except UpholdError as problem:
        return {"unusable": problem.message}
    except BaseException as cause:  # noqa: BLE001 - what it offers may be hostile to looking, too
        return {"unusable": f"'{name}' cannot be looked at: {told(cause)}."}
    if fault:
        return {"unusable": f"'{name}' is no handler: {fault}."}
    assert isinstance(thing, Handler)
    flag = asked.get("flag")
    return _row(thing) if flag is None else _wish(thing, Flag(file="", **flag))


def _row(handler: Handler) -> dict[str, Any]:
    return {
        "name": handler.name,
        "urgency": int(handler.urgency),
        "number": handler.number,
        "aliases": list(handler.aliases),
        "params": list(handler.params),
    }


def _wish(handler: Handler, flag: Flag) -> dict[str, Any]:
    assert handler.wish is not None
    try:
        for key, value in flag.params.items():
            if wanted := handler.params[key](value):
                return _refused(WRONG_PARAMS, f"{key} must be {wanted}.")
        wish = handler.wish(flag)
        if isinstance(wish, Refusal):
            return _refused(wish.code, wish.message)
        return {"wish": wish_view(wish)}
    except Malformed as problem:
        return {"failed": f"it gave what it may not: {problem.message}."}
    except MemoryError:
        return {"failed": f"it needs more than {MEMORY >> 20} MiB of memory."}
    except BaseException as cause:  # noqa: BLE001 - whatever it raises is its answer
        return {"failed": f"it raised {told(cause)}."}


def _refused(code: str, message: str) -> dict[str, Any]:
    return {"refused": {"code": str(code), "message": str(message)}}


def _confine() -> None:
    """Have the kernel see to it, for good: before anything of a plug-in is loaded."""
    for kind, most in ((resource.RLIMIT_DATA, MEMORY), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(kind)
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (lower, lower))


def main() -> None:
    """Answer the one question, and end before anything a plug-in began can get in the way."""
    asked = json.load(sys.stdin.buffer)
    # Whoever asked may be gone by then, and could not end one that hangs.
    signal.alarm(int(asked["limit"]) + 1)
    _confine()
    answer = os.dup(1)
    os.dup2(2, 1)
    rest = memoryview(encode(advise(asked)))
    while rest:
        rest = rest[os.write(answer, rest) :]
    os._exit(0)


if __name__ == "__main__":
    main()
