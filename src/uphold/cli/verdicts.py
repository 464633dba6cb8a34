"""What a status document means: its exit code and which rows come first. Pure."""

from __future__ import annotations

from uphold.errors import (
    EXIT_DONE,
    STATUS_CANNOT_TELL,
    STATUS_DEGRADED,
    STATUS_NOT_RUNNING,
    STATUS_STALE,
    STATUS_STARTING,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Final

    Row = Mapping[str, Any]

_BY_OWNERSHIP: Final = {
    "stale": STATUS_STALE,
    "stopped": STATUS_NOT_RUNNING,
    "corrupt": STATUS_CANNOT_TELL,
}
_UNWELL: Final = ("degraded", "unhealthy")
_WORST_FIRST: Final = (
    "failed",
    "backoff",
    "stopping",
    "starting",
    "waiting",
    "exited",
    "running",
    "stopped",
)


def exit_code(document: Mapping[str, Any], *, named: bool = False) -> int:
    """Tell the exit code of `status`; with named workers only those count."""
    supervisor = document["supervisor"]
    ownership = supervisor["ownership"]
    if ownership != "running":
        return _BY_OWNERSHIP.get(ownership, STATUS_CANNOT_TELL)
    if any(troubled(row) for row in document["workers"]) or (
        not named and supervisor["health"] in _UNWELL
    ):
        return STATUS_DEGRADED
    if any(underway(row) for row in document["workers"]) or supervisor["status"] == "spawning":
        return STATUS_STARTING
    return STATUS_DEGRADED if supervisor["status"] == "failed" else EXIT_DONE


def troubled(row: Row) -> bool:
    """Tell whether a row is a reason to worry; what people hold back is as they want it."""
    if row["state"] == "stopping":
        # A stop in progress carries an error only when something cannot be killed.
        return row["last_error"] is not None
    if row["admin"] != "enabled":
        return False
    return row["state"] in ("backoff", "failed") or row["health"] in _UNWELL


def underway(row: Row) -> bool:
    """Tell whether a row has not yet arrived where it is wanted."""
    if row["state"] == "waiting" and row["next_attempt_at"] is not None:
        return False  # on a schedule, between two runs: that is as wanted
    return row["admin"] == "enabled" and row["state"] in ("starting", "waiting", "stopping")


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """Order rows so that what needs a person stands on top; equals keep their order."""
    return sorted(rows, key=_badness)


def _badness(row: Row) -> tuple[int, int]:
    state = row["state"]
    place = _WORST_FIRST.index(state) if state in _WORST_FIRST else -1
    # Without a supervisor nobody is in back-off, and what went wrong is still to be seen to.
    wrong = troubled(row) or (row["admin"] == "enabled" and row.get("condition") == "error")
    return (0 if wrong else 1, place)
