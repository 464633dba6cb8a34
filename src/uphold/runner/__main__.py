"""The program: `python -m uphold.runner package.module:Class`.

Exit codes: 0 done, 1 run or teardown raised, 2 wrongly called, 78 the target is wrong or could
not be set up.
"""

from __future__ import annotations

import faulthandler
import io
import os
import signal
import sys

from uphold.runner.sparing import import_asyncio


def main(words: list[str]) -> int:
    """Host the worker that the one word names, until it has ended."""
    if len(words) != 1:
        sys.stderr.write("usage: python -m uphold.runner package.module:Class\n")
        return 2
    import_asyncio()
    import asyncio  # noqa: PLC0415 - only after the stand-ins are in place

    from uphold.runner import hosting  # noqa: PLC0415
    from uphold.sdk.telling import LINE  # noqa: PLC0415

    (target,) = words
    _settle(target)
    worker = hosting.make(target, LINE)
    if worker is None:
        return hosting.NOT_SET_UP
    host = hosting.Host(worker, name=target, line=LINE, every=_every())
    try:
        return asyncio.run(host.serve())
    finally:
        for number in hosting.STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # it is ending, with a code of its own


def _settle(target: str) -> None:
    """Make this process what a worker's code expects."""
    # A worker that is aborted because it no longer answers says where it was.
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # into a pipe, lines would wait for 8 KiB more
            stream.reconfigure(line_buffering=True)
    here = os.getcwd()  # noqa: PTH109 - text is enough
    sys.path[:] = [here, *(path for path in sys.path if path not in (here, ""))]
    sys.argv = [target]


def _every() -> float:
    """Tell how often the health is looked at: as wished, and twice for each watchdog."""
    every = _number("UPHOLD_HEALTH_EVERY") or 10.0
    watched = _number("WATCHDOG_USEC") / 2e6
    mine = os.environ.get("WATCHDOG_PID") in (None, "", str(os.getpid()))
    return max(0.01, min(every, watched) if watched and mine else every)


def _number(name: str) -> float:
    try:
        number = float(os.environ.get(name, ""))
    except ValueError:
        return 0.0
    return number if 0 < number < 1e15 else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
