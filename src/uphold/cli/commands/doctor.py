"""`uphold doctor`: look at everything uphold stands on, and say what would mend it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from uphold.cli.checkups.findings import Finding, Level, fail, look
from uphold.cli.places import Place, locate, require_config
from uphold.cli.screens import screen_of
from uphold.cli.speaking import print_document, say
from uphold.core.texts import printable
from uphold.errors import EXIT_DONE, EXIT_FAILED, UpholdError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from uphold.core.specs import Settings

_COLOURS: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb: nothing."""


def run(args: argparse.Namespace) -> int:
    """Look, print, and fail if anything is in the way. Nothing is started or changed."""
    found = list(_all(args))
    failed = any(each.level is Level.FAIL for each in found)
    if args.json:
        checks = [
            {
                "check": each.check,
                "level": str(each.level),
                "detail": each.detail,
                "remedy": each.remedy or None,
            }
            for each in found
        ]
        print_document({"schema": 1, "ok": not failed, "checks": checks})
    else:
        say(args, *_lines(found))
    return EXIT_FAILED if failed else EXIT_DONE


def _all(args: argparse.Namespace) -> Iterator[Finding]:
    from uphold.cli.checkups import machines

    yield from look("python", machines.interpreter)
    yield from look("kernel", machines.kernel)
    try:
        place = locate(args)
    except UpholdError as error:
        yield fail("config", error.message, error.remedy)
        yield from look("clock", lambda: machines.clock(""))
        return
    yield from look("clock", lambda: machines.clock(place.home))
    yield from _about_home(place.home)
    yield from _about_config(place)


def _about_home(home: str) -> Iterator[Finding]:
    from uphold.cli.checkups import homes

    yield from look("home", lambda: homes.home(home))
    if not os.access(home, os.R_OK | os.X_OK):
        return
    yield from look("supervisor", lambda: homes.ownership(home))
    yield from look("control socket", lambda: homes.control_socket(home))
    yield from look("journal", lambda: homes.journal(home))
    yield from look("left-overs", lambda: homes.left_overs(home))


def _about_config(place: Place) -> Iterator[Finding]:
    from uphold.cli.checkups import checkouts, machines, shares, stores, workers
    from uphold.config.loading import examine

    try:
        config = require_config(place)
        settings = examine(config, environ=os.environ).settings_or_raise()
    except UpholdError as error:
        yield from look("config", partial(_again, error))
        return
    programs = list(_about_workers(settings))
    failing = {spec.name for spec in settings.workers} & {
        each.check.removeprefix("worker ") for each in programs if each.level is Level.FAIL
    }
    yield from look("config", lambda: workers.configuration(settings, failing))
    yield from look("store", lambda: stores.copy_of(place.home, settings))
    yield from look("share", lambda: shares.share_of(settings))
    yield from look("checkout", lambda: checkouts.checkout_of(settings))
    yield from look("inotify", lambda: machines.news_of_files(config))
    yield from programs


def _again(error: UpholdError) -> Iterator[Finding]:
    raise error


def _about_workers(settings: Settings) -> Iterator[Finding]:
    from uphold.cli.checkups import machines, workers

    slots = sum(spec.replicas for spec in settings.workers)
    yield from look("open files", lambda: machines.limits(slots))
    for spec in settings.workers:
        yield from look(f"worker {spec.name}", partial(workers.program, spec))


def _lines(found: list[Finding]) -> Iterator[str]:
    screen = screen_of()
    width = max(len(each.check) for each in found)
    for each in found:
        level = screen.paint(f"{each.level:<4}", _COLOURS[each.level])
        yield f"{level}  {each.check:<{width}}  {printable(each.detail)}"
        if each.remedy:
            yield f"{'':<4}  {'':<{width}}  → {printable(each.remedy)}"
    counts = [
        f"{sum(each.level is level for each in found)} {level}"
        for level in Level
        if any(each.level is level for each in found)
    ]
    yield f"{len(found)} checks: {', '.join(counts)}"
