"""The supervisor's own program: `python -I -m uphold.daemon --home DIR --config FILE`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from uphold.daemon.sparing import spare

_ALONE = ("foreground", "forgive", "once", "quiet", "stop-left-overs")
"""Words that have no value after them."""
_MANY_OBJECTS = 10_000
"""Made and not freed again, before the youngest are searched for cycles; there are hardly any."""


def main(words: list[str]) -> int:
    """Run until told to end; the exit code says how it went."""
    spare()
    flags = _flags(words)
    from uphold.host.homes import Home  # noqa: PLC0415 - only after the stand-ins are in place

    home = Home(flags["home"])
    if "stop-left-overs" in flags:
        return _stop_left_overs(home, flags)
    if "once" in flags:
        return _pass_once(home, flags)
    return _serve(home, flags)


def _serve(home: object, flags: dict[str, str]) -> int:
    import asyncio  # noqa: PLC0415
    import gc  # noqa: PLC0415

    from uphold.daemon.equipping import Launch  # noqa: PLC0415
    from uphold.daemon.serving import say_error, serve  # noqa: PLC0415
    from uphold.errors import HostFailure, UpholdError  # noqa: PLC0415
    from uphold.host.homes import Home  # noqa: PLC0415
    from uphold.host.looping import LoopGuard, WatchedSelector, new_loop  # noqa: PLC0415
    from uphold.host.memory import use_one_heap  # noqa: PLC0415
    from uphold.host.processes.birth import birth  # noqa: PLC0415

    assert isinstance(home, Home)
    use_one_heap()
    ready = int(flags["ready-fd"]) if "ready-fd" in flags else None
    selector = WatchedSelector()
    launch = Launch(
        home=home,
        config=flags["config"],
        ready_fd=ready,
        birthright=birth(),
        environ=dict(os.environ),
        forgive="forgive" in flags,
        foreground="foreground" in flags,
        selector=selector,
    )
    # A thread that computes hands the interpreter back soon: the loop must not wait for it.
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()  # what was imported stays: no collection needs to look at it again
    gc.set_threshold(_MANY_OBJECTS)
    # Only where somebody starts us again: nobody is helped by a supervisor that is gone for good.
    guard = LoopGuard(selector) if launch.foreground else None
    try:
        with asyncio.Runner(loop_factory=lambda: new_loop(selector)) as runner:
            return runner.run(serve(launch))
    except UpholdError as error:
        say_error(ready, error)
        return error.exit_code
    except OSError as cause:
        failure = HostFailure(
            f"the supervisor cannot use its home {home.path}: {cause}.",
            remedy="Look at the disk and at who may write there, then start it again.",
        )
        say_error(ready, failure)
        return failure.exit_code
    finally:
        if guard is not None:
            guard.close()


def _pass_once(home: object, flags: dict[str, str]) -> int:
    import asyncio  # noqa: PLC0415
    import gc  # noqa: PLC0415

    from uphold.daemon.equipping import Launch  # noqa: PLC0415
    from uphold.daemon.passing import pass_once  # noqa: PLC0415
    from uphold.daemon.serving import say, say_error  # noqa: PLC0415
    from uphold.errors import AlreadyRunning, HostFailure, UpholdError  # noqa: PLC0415
    from uphold.host.homes import Home  # noqa: PLC0415
    from uphold.host.processes.birth import birth  # noqa: PLC0415

    assert isinstance(home, Home)
    gc.freeze()
    ready = int(flags["ready-fd"]) if "ready-fd" in flags else None
    launch = Launch(
        home=home,
        config=flags["config"],
        ready_fd=ready,
        birthright=birth(),
        environ=dict(os.environ),
    )
    try:
        report = asyncio.run(
            pass_once(
                launch,
                worker_id=flags.get("worker-id"),
                echo="quiet" not in flags,
            )
        )
    except AlreadyRunning as owned:
        if ready is not None:
            say(ready, {"report": {"schema": 1, "acted": False, "owner": owned.message}})
        return 0
    except UpholdError as error:
        say_error(ready, error)
        return 1
    except OSError as cause:
        remedy = "Look at the disk and at who may write there; the next pass tries again."
        failure = HostFailure(f"the pass cannot use {home.path}: {cause}.", remedy=remedy)
        say_error(ready, failure)
        return 1
    if ready is not None:
        say(ready, {"report": report.document()})
    return 0 if report.success else 1


def _stop_left_overs(home: object, flags: dict[str, str]) -> int:
    import asyncio  # noqa: PLC0415
    import json  # noqa: PLC0415

    from uphold.control.server import error_view  # noqa: PLC0415
    from uphold.daemon.left_overs import stop_left_overs  # noqa: PLC0415
    from uphold.errors import UpholdError  # noqa: PLC0415
    from uphold.host.homes import Home  # noqa: PLC0415
    from uphold.host.processes.birth import birth  # noqa: PLC0415

    assert isinstance(home, Home)
    birthright = birth()
    try:
        told = asyncio.run(
            stop_left_overs(
                home,
                birthright.nofile,
                author=flags.get("author") or "unknown",
                label=flags.get("label") or None,
                reason=flags.get("reason") or "",
            )
        )
    except UpholdError as error:
        sys.stdout.write(json.dumps({"error": error_view(error)}) + "\n")
        return error.exit_code
    sys.stdout.write(json.dumps(told) + "\n")
    return 0 if told["ok"] else 1


def _flags(words: list[str]) -> dict[str, str]:
    """Read the few words the command line gives us; they are never typed by people."""
    flags: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name = word.removeprefix("--")
        alone = name in _ALONE
        flags[name] = "" if alone else next(rest, "")
    return flags


if __name__ == "__main__":
    code = main(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # nobody reads it; or there is none
            stream.flush()
    # All is closed and written: to take the interpreter apart is 30 ms that nobody needs.
    os._exit(code)
