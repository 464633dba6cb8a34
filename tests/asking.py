"""A past to ask about, and what the example questions answer about it in every database."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from uphold.core.events import Note, Recorded
from uphold.core.statuses import State
from uphold.core.times import utc_text
from uphold.ports.journals import AuditEntry, Batch, JobRow
from uphold.testing.contracts.journals import status

HOUR = 3600.0
OWNER_ID = "supervisor-1"


def past() -> Batch:
    """Make what one supervisor has lived through in the last days."""
    now = time.time()  # the databases compare with their own clock
    events = [
        ("worker.starting", "api", "info", {"slot": "api", "generation": 1}, 50.0),
        ("worker.ready", "api", "info", {"slot": "api", "generation": 1}, 49.0),
        ("worker.starting", "web", "info", {"slot": "web", "generation": 1}, 48.0),
        ("worker.ready", "web", "info", {"slot": "web", "generation": 1}, 45.0),
        ("worker.starting", "web", "info", {"slot": "web.2", "generation": 1}, 44.0),
        ("worker.state_changed", "web", "warning", {"after": "backoff"}, 40.0),
        ("worker.state_changed", "web", "error", {"after": "failed"}, 40.0),
        ("worker.state_changed", "web", "info", {"after": "running"}, 40.0),
        ("order.accepted", "the-job-id", "info", {"verb": "restart"}, 30.0),
        ("worker.stopping", "api", "info", {"slot": "api"}, 30.0),
        ("supervisor.started", "orion", "info", {}, 20.0),
        ("supervisor.heartbeat", "orion", "info", {}, 19.0),
    ]
    return Batch(
        events=[_event(n, now, *each) for n, each in enumerate(events, start=1)],
        slots=[status("api", error=None), status("web", state=State.FAILED, why="given up: grüße")],
        audit=[
            _line("o-1", now - 9 * 24 * HOUR, action="restart"),
            _line("o-2", now - 2 * HOUR, action="restart", label="night 1"),
            _line("o-2.failed", now - HOUR, action="restart.failed", label="night 1", error="no"),
            _line("o-3", now - HOUR, action="stop"),
            _line("o-4", now - HOUR, action="restart", target_id="*", names=["api", "web"]),
        ],
        jobs=[
            _job("j-1", now - 9 * 24 * HOUR, "failed"),
            _job("j-2", now - HOUR, "failed", error="exit code 3"),
            _job("j-3", now - HOUR, "succeeded"),
        ],
        durable=True,
    )


def _event(
    seq: int, now: float, kind: str, whom: str, severity: str, payload: Any, ago: float
) -> Recorded:
    entity = {"order": "order", "supervisor": "supervisor"}.get(kind.partition(".")[0], "worker")
    note = Note(type=kind, entity_type=entity, entity_id=whom, payload=payload, severity=severity)
    cause = "the-job-id" if kind == "worker.stopping" else None
    return Recorded(seq=seq, id=f"e-{seq}", at=now - ago * HOUR, event=note, cause=cause)


def _line(
    name: str, at: float, *, action: str, label: str | None = None, **more: Any
) -> AuditEntry:
    target = more.pop("target_id", "api")
    return AuditEntry(
        id=name,
        actor="ada@orion",
        action=action,
        target_type="worker",
        target_id=target,
        label=label,
        at=at,
        details={"reason": "it hangs", **more},
    )


def _job(name: str, at: float, state: str, error: str | None = None) -> JobRow:
    row = JobRow(
        id=name,
        task_id=None,
        type="restart",
        target="api",
        label=None,
        state=state,
        created_at=at,
        updated_at=at,
    )
    return replace(row, error=error)


def check(name: str, rows: list[dict[str, Any]]) -> None:
    """Check what one question answers about this past."""
    globals()[f"_check_{name.replace('-', '_')}"](rows)


def _check_status_page(rows: list[dict[str, Any]]) -> None:
    assert [row["worker_id"] for row in rows] == ["web", "supervisor_orion", "api"]
    assert rows[0]["status_summary"] == "given up: grüße"
    assert (rows[2]["state"], rows[2]["restarts"]) == ("running", 5)


def _check_who_restarted(rows: list[dict[str, Any]]) -> None:
    assert [(row["target_id"], row["label"]) for row in rows] == [("*", None), ("api", "night 1")]
    assert {row["actor"] for row in rows} == {"ada@orion"}
    assert {row["reason"] for row in rows} == {"it hangs"}
    assert rows[0]["names"].replace(" ", "") == '["api","web"]'


def _check_failures_per_day(rows: list[dict[str, Any]]) -> None:
    (row,) = rows
    assert (row["worker"], row["failures"]) == ("web", 2)
    now = time.time()  # midnight may have passed since the rows were made
    assert str(row["day"]) in {utc_text(now - ago * HOUR)[:10] for ago in (40, 41)}


def _check_label(rows: list[dict[str, Any]]) -> None:
    assert [row["action"] for row in rows] == ["restart", "restart.failed"]
    assert [row["error"] for row in rows] == [None, "no"]


def _check_slowest_starts(rows: list[dict[str, Any]]) -> None:
    assert [row["worker"] for row in rows] == ["web", "api"]
    assert [round(float(row["seconds"])) for row in rows] == [3 * 3600, 3600]


def _check_silent_supervisors(rows: list[dict[str, Any]]) -> None:
    (row,) = rows
    assert (row["id"], row["name"], row["status"]) == (OWNER_ID, "orion", "active")


def _check_failed_jobs(rows: list[dict[str, Any]]) -> None:
    assert [(row["job_id"], row["last_error"]) for row in rows] == [("j-2", "exit code 3")]


def _check_what_followed(rows: list[dict[str, Any]]) -> None:
    assert [row["type"] for row in rows] == ["order.accepted", "worker.stopping"]
