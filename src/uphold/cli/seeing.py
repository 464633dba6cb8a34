"""One look at a home: proved ownership first, then the supervisor's own answer or our own eyes."""

from __future__ import annotations

import os

from uphold.cli.owners import owner_of
from uphold.control.client import PATIENCE, Connection
from uphold.core.names import nearest, worker_of
from uphold.errors import STATUS_CANNOT_TELL, NoSuchWorker, NotRunning, UpholdError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from uphold.cli.places import Place

_TO_ANSWER: Final = 2.0
"""Seconds a supervisor has for naming its workers, before the home is read instead."""


def look(
    place: Place,
    names: Sequence[str] = (),
    *,
    companions: bool = False,
    patience: float | None = None,
) -> dict[str, Any]:
    """Give the status document; it never says running without a live process behind it."""
    found = owner_of(place.home)
    patience = PATIENCE if patience is None else patience
    if found.standing == "running":
        try:
            with Connection(place.home, patience=patience) as connection:
                document = ask(connection, names, companions=companions, patience=patience)
        except NotRunning:
            pass  # it lives and has no socket yet: we look for ourselves
        except UpholdError as error:
            if error.code != "UPH_SUPERVISOR_GONE":
                tell_silence(error)
                raise
            found = owner_of(place.home)
        else:
            _add_stop_note(document, place.home)
            return document
    from uphold.cli.offline import look_ourselves

    return look_ourselves(place.home, found, names, companions=companions, config=place.config)


def tell_silence(error: UpholdError) -> None:
    """Let the exit code say so if a supervisor lives and nobody can tell how it is."""
    if error.code == "UPH_SUPERVISOR_SILENT":
        error.exit_code = STATUS_CANNOT_TELL


def refuse_unknown(place: Place, names: Iterable[str]) -> None:
    """Tell a worker of which there is no record yet from one that does not exist."""
    asked = tuple(names)
    if not asked:
        return
    known = _known(place)
    for name in asked:
        if known and worker_of(name) not in known:
            meant = nearest(name, known)
            raise NoSuchWorker(
                f"there is no worker '{name}', and nothing is recorded of one.",
                remedy=f"Did you mean '{meant}'?" if meant else "`uphold status` lists them all.",
            )


def _known(place: Place) -> set[str]:
    """Name every worker: by the supervisor's word, or by what is recorded if it says none."""
    try:
        seen = look(place, companions=True, patience=_TO_ANSWER)
    except UpholdError as error:
        if error.code != "UPH_SUPERVISOR_SILENT":
            raise
    else:
        return {str(row["name"]) for row in seen["workers"]}
    from uphold.cli.offline import look_ourselves
    from uphold.cli.records import runtime_of

    seen = look_ourselves(place.home, owner_of(place.home), companions=True)
    mirrored = runtime_of(place.home).get("workers")  # it knows those that never ran, too
    return {
        *(str(row["name"]) for row in seen["workers"]),
        *(map(worker_of, mirrored) if isinstance(mirrored, dict) else ()),
    }


def _add_stop_note(document: dict[str, Any], home: str) -> None:
    """Say so if a stop of this very supervisor failed; it cannot know that itself."""
    if not os.access(f"{home}/last_stop.json", os.R_OK):
        return
    from uphold.cli.records import stop_note_of

    note = stop_note_of(home)
    supervisor = document["supervisor"]
    if note.get("failed") and str(note.get("at", "")) >= str(supervisor["started_at"] or ""):
        supervisor["last_error"] = note.get("error")


def ask(
    connection: Connection,
    names: Sequence[str] = (),
    *,
    companions: bool = False,
    patience: float = PATIENCE,
) -> dict[str, Any]:
    """Ask a supervisor for its status document."""
    document: dict[str, Any] = connection.call(
        "status",
        {"names": list(names), "all": companions},
        patience=patience,
    )
    return document
