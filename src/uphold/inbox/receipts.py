"""What is written to a share, as names and bytes: receipts, heartbeats, reports, markers.

Pure: nothing here touches a file. Names are made only of what was checked before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from uphold.core.texts import utc_text
from uphold.wire.codecs import encode

__all__ = [
    "heartbeat_content",
    "heartbeat_name",
    "pause_marker_name",
    "receipt_content",
    "receipt_name",
    "report_name",
    "stamp",
    "watcher_heartbeat_name",
]

DIAGNOSTICS: Final = "diagnostics"
DB_VERIFICATION: Final = "db_verification"
UNKNOWN: Final = "unknown"
"""Stands in names where a flag did not say what it wants, or said it wrongly."""


def stamp(wall: float) -> str:
    """Write a moment as it stands in file names: `20260205T143015234Z`, always UTC."""
    moment = datetime.fromtimestamp(wall, UTC)
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z"


def receipt_name(handler: str | None, task_id: str | None, wall: float, token: str = "") -> str:
    """Name a receipt; `token` tells apart those of flags that did not say who they are."""
    task = task_id or "_".join(part for part in (UNKNOWN, _in_a_name(token)) if part)
    return f"supervisor_result_{handler or UNKNOWN}_{task}_{stamp(wall)}.json"


def receipt_content(  # noqa: PLR0913 - the fields of a receipt
    *,
    wall: float,
    supervisor_id: str,
    worker_id: str | None,
    task_id: str | None,
    job_id: str | None,
    handler: str | None,
    label: str | None,
    success: bool,
    error: str | None,
    details: Mapping[str, Any],
    log_path: str | None,
) -> bytes:
    """Write a receipt; the keys always stand in this order."""
    return _document(
        {
            "timestamp": utc_text(wall),
            "supervisor_id": supervisor_id,
            "worker_id": worker_id,
            "task_id": task_id,
            "job_id": job_id,
            "handler": handler,
            "label": label,
            "success": success,
            "error": error,
            "details": details,
            "log_path": log_path,
        }
    )


def heartbeat_name(worker_id: str) -> str:
    """Name the file in which the supervisor tells that it lives."""
    return f"supervisor_heartbeat_{worker_id}.json"


def watcher_heartbeat_name(worker_id: str) -> str:
    """Name the file in which the worker itself tells that it lives."""
    return f"watcher_heartbeat_{worker_id}.json"


def pause_marker_name(worker_id: str) -> str:
    """Name the file that stands while a worker is held."""
    return f"supervisor_pause_{worker_id}.flag"


def heartbeat_content(  # noqa: PLR0913 - the fields of a heartbeat
    *,
    supervisor_id: str,
    wall: float,
    worker_id: str,
    success: bool,
    error: str | None,
    actions: Sequence[Mapping[str, Any]],
) -> bytes:
    """Write what the supervisor did in a pass; no environment, no command line, no address."""
    return _document(
        {
            "supervisor_id": supervisor_id,
            "timestamp": utc_text(wall),
            "worker_id": worker_id,
            "success": success,
            "error": error,
            "actions": list(actions),
        }
    )


def report_name(kind: str, worker_id: str, wall: float, label: str | None = None) -> str:
    """Name a report: `diagnostics_<id>_<ts>[_<label>].json`."""
    tail = _in_a_name(label)
    return f"{kind}_{worker_id}_{stamp(wall)}{tail and '_'}{tail}.json"


def _in_a_name(label: str | None) -> str:
    """Turn a label into a part of a file name that every system takes."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", label or "").strip("_")


def _document(content: Mapping[str, Any]) -> bytes:
    return encode(content) + b"\n"
