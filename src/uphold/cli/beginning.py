"""Starting the supervisor in the background, and what is said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.cli.launching import prove_home, spawn_supervisor, wait_until_ready
from uphold.cli.owners import owner_of
from uphold.cli.places import require_config
from uphold.cli.speaking import notice, print_document, say, warn
from uphold.core.texts import printable
from uphold.errors import AlreadyRunning, StoreUnavailable

if TYPE_CHECKING:
    import argparse

    from uphold.cli.places import Place

PATIENCE: Final = 120.0
"""Seconds a supervisor may take until all its workers have begun."""


def start_supervisor(
    args: argparse.Namespace, place: Place, *, forgive: bool = False
) -> dict[str, Any]:
    """Start it in the background and wait until it answers; failures are forgiven if told to."""
    refuse_second(place)
    config = require_config(place)
    started = spawn_supervisor(
        place.home, config, foreground=False, own_output=True, forgive=forgive
    )
    if args.no_wait:
        import os

        os.close(started.ready)
        return {"ready": False, "pid": started.pid}
    return wait_until_ready(
        started,
        place.home,
        patience=PATIENCE if args.timeout is None else args.timeout,
        notice=notice(args, "waiting for the supervisor to be ready ..."),
    )


def refuse_unstartable(place: Place) -> None:
    """Raise what a start would be refused for, while what runs now still runs."""
    import os

    from uphold.cli.records import journal_of
    from uphold.config.loading import load

    load(require_config(place), environ=os.environ)
    prove_home(place.home)
    try:
        with journal_of(place.home) as journal:
            journal.refuse_newer()
    except StoreUnavailable as error:
        if error.code == "UPH_JOURNAL_NEWER":  # any other one is begun anew, or mended
            raise


def refuse_second(place: Place) -> None:
    """Say who owns the home already, before any file is touched."""
    found = owner_of(place.home)
    if found.keeps_out():
        raise AlreadyRunning(
            f"a supervisor already owns {place.home}: {found.owner}.",
            remedy="`uphold status` shows it, `uphold restart` starts it anew; "
            "a second one needs another --home.",
        )


def tell_started(args: argparse.Namespace, place: Place, told: dict[str, Any]) -> None:
    """Print that the supervisor runs."""
    state = "running" if told.get("ready") else "starting"
    if args.json:
        result = {"name": "supervisor", "ok": True, "state": state, "error": None}
        print_document(
            {"schema": 1, "job_id": None, "results": [result], "pid": told["pid"]}
            | {"home": place.home}
        )
    else:
        say(args, f"supervisor {state} (pid {told['pid']}), home {printable(place.home)}")
    failed = told.get("failed") or ()
    if failed:
        some = ", ".join(map(printable, failed[:5])) + (" ..." if len(failed) > 5 else "")
        many = "1 worker failed and stays" if len(failed) == 1 else f"{len(failed)} failed and stay"
        warn(args, f"{many} down: {some}. See: uphold status")
