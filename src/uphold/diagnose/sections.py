"""The sections of a diagnostic report: each makes plain content out of what was read.

Whoever reads (the share, the journal, the database) is somebody else; what cannot be read is an
error of its own section (`reports`). Nothing here knows a clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.core.texts import printable
from uphold.core.times import utc_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from uphold.core.notices import Beat

LINES: Final = 50
"""Lines of the worker's log that go into a report."""
AUDIT_ROWS: Final = 10
STALE_AFTER: Final = 300.0
"""Seconds after which a heartbeat is not fresh any more."""
LITTLE: Final = 10.0
VERY_LITTLE: Final = 5.0
"""Per cent of free space below which a report warns."""
_LONGEST_LINE: Final = 2_000
_MOST_FILES: Final = 200
_OF_A_PROCESS: Final = {
    "pid": "pid",
    "rss_bytes": "memory_bytes",
    "cpu_percent": "cpu_percent",
    "uptime": "uptime_seconds",
    "state": "state",
    "health": "health",
    "admin": "admin",
    "restarts": "restarts",
    "last_error": "last_error",
    "why": "why",
}


def process(row: Mapping[str, Any]) -> dict[str, Any]:
    """Tell of the worker's process, from its row in `status` with usage."""
    told = {ours: row.get(theirs) for theirs, ours in _OF_A_PROCESS.items()}
    return {"running": row.get("pid") is not None, **told}


def heartbeat(beat: Beat | None, age: float | None, *, paused: bool) -> dict[str, Any]:
    """Tell of the worker's last heartbeat; there may be none, or none that can be read."""
    fresh = beat is not None and age is not None and age < STALE_AFTER
    return {
        "found": beat is not None,
        "fresh": fresh,
        "healthy": fresh and beat is not None and beat.good,
        "paused": paused,
        "age_seconds": None if age is None else round(age, 1),
        "status": None if beat is None else printable(beat.status[:100]),
        "last_error": None if beat is None or beat.error is None else printable(beat.error[:500]),
    }


def paths(found: Mapping[str, str | None], wanted: Iterable[str]) -> dict[str, Any]:
    """Tell of every folder that must be there: whether it can be entered, and if not, why."""
    told = {path: _path(path, found) for path in wanted}
    return {"all_accessible": all(each["accessible"] for each in told.values()), "paths": told}


def disk(space: Mapping[str, Any] | None) -> dict[str, Any]:
    """Tell how much room there is on the share."""
    if not space:
        raise ValueError("the share does not say how much room it has.")
    free = space["percent_free"]
    told = {
        "total_bytes": space["total"],
        "used_bytes": space["used"],
        "free_bytes": space["free"],
        "percent_free": free,
        "warning": None,
    }
    if free is not None and free < LITTLE:
        how = "very little" if free < VERY_LITTLE else "little"
        told["warning"] = f"{how} room is left on the share: {free:g} %."
    return told


def log_tail(path: str, raw: bytes | None, lines: int = LINES) -> dict[str, Any]:
    """Give the last lines of a log, safe to show."""
    if raw is None:
        return {"path": path, "found": False, "lines": []}
    # By line feeds only: a log may hold characters that other rules take for line ends.
    split = raw.decode(errors="replace").removesuffix("\n").split("\n") if raw else []
    shown = [printable(line.rstrip("\r")[:_LONGEST_LINE]) for line in split[-lines:]]
    return {"path": path, "found": True, "lines": shown}


def pending(files: Sequence[tuple[str, int, float]], *, more: bool = False) -> dict[str, Any]:
    """List the files that wait in the inbox: name, size and time."""
    told = [
        {"name": printable(name), "bytes": size, "modified": utc_text(at)}
        for name, size, at in files[:_MOST_FILES]
    ]
    return {"count": len(files), "more": more or len(files) > len(told), "files": told}


def audit(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the newest rows of the audit log."""
    return {"rows": [dict(row) for row in rows[:AUDIT_ROWS]]}


def database(verified: Mapping[str, Any]) -> dict[str, Any]:
    """Tell of the database, from its verification: whether it answers, and what time it has."""
    checks = {check["check"]: check for check in verified.get("checks", ())}
    connection, server = checks.get("connection", {}), checks.get("server", {})
    wrong = [check["detail"] for check in checks.values() if check["result"] == "fail"]
    return {
        "connected": connection.get("result") == "ok",
        "server_time": server.get("server_time"),
        "database": server.get("database"),
        "problems": wrong,
    }


def _path(path: str, found: Mapping[str, str | None]) -> dict[str, Any]:
    error = found.get(path, "nobody looked at it")
    return {"accessible": error is None, "error": error}
