"""Questions that people ask the journal and the shared database, in the words of each dialect.

Text only, to be printed and tried out elsewhere; nothing here is executed by uphold itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DIALECTS: Final = ("sqlite", "mysql", "postgresql")
"""SQLite is the journal itself; `mysql` is for MariaDB too."""


class Example(NamedTuple):
    """One question: its name, what it answers, and how it is asked."""

    name: str
    says: str
    asks: str


class _Words(NamedTuple):
    """What the dialects say differently."""

    key: str
    """A value in a JSON text."""
    day: str
    ago: str
    seconds: str
    """Between two moments."""


_WORDS: Final = {
    "sqlite": _Words(
        key="json_extract({0}, '$.{1}')",
        day="substr({0}, 1, 10)",
        ago="strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-{0} {1}')",
        seconds="round((julianday({1}) - julianday({0})) * 86400, 3)",
    ),
    "mysql": _Words(
        key="JSON_UNQUOTE(JSON_EXTRACT({0}, '$.{1}'))",
        day="DATE({0})",
        ago="UTC_TIMESTAMP(3) - INTERVAL {0} {1}",
        seconds="TIMESTAMPDIFF(MICROSECOND, {0}, {1}) / 1000000",
    ),
    "postgresql": _Words(
        key="{0}::json ->> '{1}'",
        day="({0} AT TIME ZONE 'UTC')::date",
        ago="now() - interval '{0} {1}'",
        seconds="extract(epoch FROM {1} - {0})",
    ),
}


def examples(dialect: str) -> list[Example]:
    """Give every question in one dialect."""
    say = _WORDS[dialect]
    last_week = say.ago.format(7, _unit(dialect, "day"))
    day = say.day.format("timestamp")
    return [
        Example(
            "status-page",
            "How everything is now, what needs attention first.",
            "SELECT worker_id, status, state, health, status_summary, last_heartbeat_at, restarts\n"
            "FROM workers_t\n"
            "ORDER BY CASE status WHEN 'error' THEN 0 WHEN 'running' THEN 2 ELSE 1 END, worker_id",
        ),
        Example(
            "who-restarted",
            "Who restarted what in the last seven days, under which label, and why.",
            "SELECT created_at, actor, target_id, label,\n"
            f"       {say.key.format('details_json', 'reason')} AS reason,\n"
            f"       {say.key.format('details_json', 'names')} AS names\n"
            "FROM audit_log_t\n"
            f"WHERE action = 'restart' AND created_at >= {last_week}\n"
            "ORDER BY created_at DESC",
        ),
        Example(
            "failures-per-day",
            "How often each worker failed or was given up, day by day.",
            f"SELECT {day} AS day, entity_id AS worker, count(*) AS failures\n"
            "FROM events_t\n"
            "WHERE type = 'worker.state_changed' AND severity IN ('warning', 'error')\n"
            f"GROUP BY {day}, entity_id\n"
            "ORDER BY day DESC, failures DESC, worker",
        ),
        Example(
            "label",
            "Everything that was ordered under one label, and what became of it.",
            "SELECT created_at, actor, action, target_id,\n"
            f"       {say.key.format('details_json', 'reason')} AS reason,\n"
            f"       {say.key.format('details_json', 'error')} AS error\n"
            "FROM audit_log_t\n"
            "WHERE label = 'night 1'\n"
            "ORDER BY created_at, action",
        ),
        Example(
            "slowest-starts",
            "The starts that took longest from the decision until the worker was ready.",
            "SELECT begun.timestamp AS started_at, begun.entity_id AS worker,\n"
            f"       {say.seconds.format('begun.timestamp', 'done.timestamp')} AS seconds\n"
            "FROM events_t AS begun\n"
            "JOIN events_t AS done ON done.type = 'worker.ready'\n"
            "     AND done.entity_id = begun.entity_id\n"
            + _same_supervisor(dialect)
            + _same_run(say)
            + "WHERE begun.type = 'worker.starting'\n"
            f"      AND begun.timestamp >= {last_week}\n"
            "ORDER BY seconds DESC\n"
            "LIMIT 20",
        ),
        Example(
            "silent-supervisors",
            "Supervisors that ought to live and have not been heard of for three heartbeats.",
            "SELECT id, name, status, last_heartbeat\n"
            "FROM supervisors_t\n"
            "WHERE status <> 'terminated' AND (last_heartbeat IS NULL\n"
            f"      OR last_heartbeat < {say.ago.format(90, _unit(dialect, 'second'))})\n"
            "ORDER BY last_heartbeat",
        ),
        Example(
            "failed-jobs",
            "Orders that did not come true in the last seven days, and why not.",
            "SELECT created_at, job_id, job_type, target_ref, label, last_error\n"
            "FROM jobs_t\n"
            "WHERE state = 'failed'"
            f" AND created_at >= {last_week}\n"
            "ORDER BY created_at DESC",
        ),
        Example(
            "what-followed",
            "Everything one order led to, in the order it happened (the job id is an example).",
            "SELECT seq, timestamp, type, entity_id, severity\n"
            "FROM events_t\n"
            "WHERE cause = 'the-job-id' OR (entity_type = 'order' AND entity_id = 'the-job-id')\n"
            "ORDER BY seq",
        ),
    ]


def _unit(dialect: str, unit: str) -> str:
    """Name a unit of time: in the plural, but for MySQL."""
    return unit.upper() if dialect == "mysql" else f"{unit}s"


def _same_supervisor(dialect: str) -> str:
    """Keep supervisors apart that have workers of the same name; a journal knows only one."""
    if dialect == "sqlite":
        return ""
    return "     AND done.supervisor_id = begun.supervisor_id\n"


def _same_run(say: _Words) -> str:
    return "".join(
        f"     AND {say.key.format('done.payload', key)} = {say.key.format('begun.payload', key)}\n"
        for key in ("slot", "generation")
    )
