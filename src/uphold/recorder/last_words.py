"""How a supervisor that has ended left things, as the document that `status` would give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uphold.journal.outgoing import Outgoing

_CONDITIONS: Final = {"running": "running", "stopping": "running", "backoff": "error"}
_ENDED: Final = "terminated"


def document_of(journal: Outgoing) -> dict[str, Any] | None:
    """Read it from the journal; None if its supervisor did not come to its end in order."""
    row = journal.supervisor_row()
    if row.get("status") != _ENDED:
        return None
    about = {
        "id": row["id"],
        "name": row["name"],
        "status": row["status"],
        "health": "unknown",
        "host": row["hostname"],
        "pid": None,
        "stopped_at": row["updated_at"],
        "last_heartbeat": row["last_heartbeat"],
        "last_error": None,
    }
    return {"schema": 1, "supervisor": about, "workers": list(map(_worker, journal.slots()))}


def _worker(slot: Mapping[str, Any]) -> dict[str, Any]:
    state = str(slot["state"])
    failed = state in ("failed", "backoff")
    return {
        **slot,
        "pid": slot["pid"] if state == "running" else None,
        "health": "unhealthy" if failed else "unknown",
        "condition": "error" if failed else _CONDITIONS.get(state, "stopped"),
        "last_health_at": slot["last_heartbeat_at"],
        "last_heartbeat_at": None,
        "admin": None,
        "next_attempt_at": None,
    }
