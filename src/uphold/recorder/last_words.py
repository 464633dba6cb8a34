"""How a supervisor that has ended left things, as the document that `status` would give.

Only of one that ended in order or told of its failure: the rows of one that was killed say
nothing of that, and its silence has to speak.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from uphold.core.statuses import SupervisorStatus
from uphold.core.supervisors import INTERVAL_KEY, REASON_KEY
from uphold.errors import Malformed
from uphold.journal.outgoing import Outgoing
from uphold.wire.codecs import decode

_CONDITIONS: Final = {"running": "running", "stopping": "running", "backoff": "error"}
_FAILED: Final = str(SupervisorStatus.FAILED)
_ENDED: Final = frozenset({str(SupervisorStatus.TERMINATED), _FAILED})


def document_of(journal: Outgoing) -> dict[str, Any] | None:
    """Read it from the journal; None if its supervisor said nothing of its end."""
    row = journal.supervisor_row()
    if row.get("status") not in _ENDED:
        return None
    told = _metrics(row.get("health_metrics"))
    failed = row["status"] == _FAILED
    about = {
        "id": row["id"],
        "name": row["name"],
        "status": row["status"],
        "health": "unhealthy" if failed else "unknown",
        "host": row["hostname"],
        "pid": None,
        "stopped_at": row["updated_at"],
        "last_heartbeat": row["last_heartbeat"],
        "last_error": {"code": told.get("code"), "message": told.get(REASON_KEY)}
        if failed
        else None,
        INTERVAL_KEY: told.get(INTERVAL_KEY),
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


def _metrics(text: object) -> dict[str, Any]:
    try:
        return decode(dict, str(text or "{}"))
    except Malformed:
        return {}
