"""What a journal says of a supervisor that has ended, in the shape of the document of `status`.

Only of one that ended in order, or told of its failure: the rows of one that was killed say
nothing of that, and its silence has to speak.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from uphold.core.names import worker_of
from uphold.core.statuses import SupervisorStatus
from uphold.core.supervisors import INTERVAL_KEY, REASON_KEY

if TYPE_CHECKING:
    from uphold.journal.reading import JournalReader

ENDED: Final = frozenset({str(SupervisorStatus.TERMINATED), str(SupervisorStatus.FAILED)})


def last_words(journal: JournalReader) -> dict[str, Any] | None:
    """Give the document of one that has ended; None: it has not, or nobody knows."""
    mine, workers, slots = journal.current_rows()
    if mine is None or mine["status"] not in ENDED:
        return None
    rows = {str(row["worker_id"]): row for row in workers}
    own = rows.get(f"supervisor_{mine['name']}", {})
    return {
        "supervisor": _about(mine, own.get("hostname")),
        "workers": [_worker(slot, rows.get(str(slot["slot"]), {})) for slot in slots],
    }


def _about(mine: Mapping[str, Any], host: object) -> dict[str, Any]:
    told = mine["health_metrics"] if isinstance(mine["health_metrics"], dict) else {}
    failed = mine["status"] == SupervisorStatus.FAILED
    error = {"code": told.get("code"), "message": told.get(REASON_KEY)} if failed else None
    return {
        "id": mine["id"],
        "name": mine["name"],
        "status": mine["status"],
        "health": "unhealthy" if failed else "unknown",
        "pid": None,
        "host": host,
        "last_heartbeat": mine["last_heartbeat"],
        "stopped_at": mine["updated_at"],
        "last_error": error,
        INTERVAL_KEY: told.get(INTERVAL_KEY),
    }


def _worker(slot: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **slot,
        "name": worker_of(str(slot["slot"])),
        "health": row.get("health") or "unknown",
        "condition": row.get("status") or "stopped",
        # The slot calls the last proof of its life by the name that its table has.
        "last_heartbeat_at": None,
        "last_health_at": slot["last_heartbeat_at"],
    }
