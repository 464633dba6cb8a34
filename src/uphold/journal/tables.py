"""The tables of the journal: their names, columns, views and guards. Nothing is executed here.

Times are RFC 3339 text in UTC, so they sort as text and read well in any SQL tool. Names and
columns that the shared database has too are the same there.
"""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x75706864
"""Marks the file as ours ("uphd")."""

TABLES: Final[dict[str, dict[str, str]]] = {
    "supervisors_t": {
        "id": "TEXT PRIMARY KEY",
        "name": "TEXT",
        "description": "TEXT",
        "status": "TEXT",
        "config": "TEXT",
        "parent_id": "TEXT",
        "hierarchy_level": "INTEGER DEFAULT 0",
        "created_at": "TEXT",
        "updated_at": "TEXT",
        "last_heartbeat": "TEXT",
        "health_metrics": "TEXT",
    },
    # One row per slot (the first slot of a worker carries the worker's name) and one for the
    # supervisor itself, `supervisor_<name>`.
    "workers_t": {
        "worker_id": "TEXT PRIMARY KEY",
        "last_heartbeat_at": "TEXT",
        "pid": "INTEGER",
        "hostname": "TEXT",
        "status": "TEXT",
        "poll_seconds": "REAL",
        "status_summary": "TEXT",
        "supervisor_id": "TEXT",
        "kind": "TEXT",
        "team": "TEXT",
        "state": "TEXT",
        "health": "TEXT",
        "generation": "INTEGER",
        "restarts": "INTEGER",
    },
    "jobs_t": {
        "job_id": "TEXT PRIMARY KEY",
        "task_id": "TEXT",
        "job_type": "TEXT",
        "target_ref": "TEXT",
        "label": "TEXT",
        "state": "TEXT",
        "attempts": "INTEGER DEFAULT 0",
        "claimed_by_worker": "TEXT",
        "created_at": "TEXT",
        "updated_at": "TEXT",
        "started_at": "TEXT",
        "finished_at": "TEXT",
        "last_error": "TEXT",
        "log_path": "TEXT",
        "result_path": "TEXT",
    },
    "audit_log_t": {
        "audit_id": "TEXT PRIMARY KEY",
        "actor": "TEXT",
        "action": "TEXT",
        "target_type": "TEXT",
        "target_id": "TEXT",
        "label": "TEXT",
        "created_at": "TEXT",
        "details_json": "TEXT",
        "prev_hash": "TEXT",
        "hash": "TEXT",
    },
    "events_t": {
        "seq": "INTEGER PRIMARY KEY",
        "id": "TEXT",
        "type": "TEXT",
        "entity_type": "TEXT",
        "entity_id": "TEXT",
        "timestamp": "TEXT",
        "severity": "TEXT",
        "payload": "TEXT",
        "cause": "TEXT",
    },
    # The current row of each slot. `record` is the whole status; what finding a process again
    # needs stands in columns of its own too, so a damaged record never hides a slot.
    "slots_t": {
        "slot": "TEXT PRIMARY KEY",
        "boot_id": "TEXT",
        "state": "TEXT",
        "generation": "INTEGER",
        "nonce": "TEXT",
        "record": "TEXT",
    },
    "overrides_t": {"worker": "TEXT PRIMARY KEY", "override": "TEXT"},
    "meta_t": {"key": "TEXT PRIMARY KEY", "value": "TEXT"},
}

MIGRATIONS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS schema_migrations_t (
    version INTEGER PRIMARY KEY, name TEXT, applied_at TEXT, additive INTEGER
)"""

EXTRAS: Final = (
    "CREATE INDEX IF NOT EXISTS events_by_entity ON events_t (entity_id)",
    "CREATE INDEX IF NOT EXISTS jobs_by_age ON jobs_t (updated_at)",
    """CREATE VIEW IF NOT EXISTS events_v AS
       SELECT seq, id, type, type AS event_type, entity_type, entity_id, timestamp, severity,
              payload, cause
       FROM events_t""",
    # The audit only grows. Pruning says so in meta_t for the length of its own transaction.
    """CREATE TRIGGER IF NOT EXISTS audit_stays BEFORE UPDATE ON audit_log_t
       BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
    """CREATE TRIGGER IF NOT EXISTS audit_grows BEFORE DELETE ON audit_log_t
       WHEN NOT EXISTS (SELECT 1 FROM meta_t WHERE key = 'journal.pruning_audit')
       BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END""",
)

SECOND_COLUMNS: Final[dict[str, dict[str, str]]] = {
    # Rises with every change of any job: who copies jobs elsewhere goes on after the last one.
    "jobs_t": {"rev": "INTEGER"},
}
"""What the second migration adds."""

_NEXT_REV: Final = """
UPDATE jobs_t SET rev = (SELECT coalesce(max(rev), 0) + 1 FROM jobs_t) WHERE rowid = NEW.rowid
"""

SECOND_EXTRAS: Final = (
    "CREATE INDEX IF NOT EXISTS jobs_by_rev ON jobs_t (rev)",
    # By the file itself, so that an older uphold that works beside it numbers its changes too.
    f"CREATE TRIGGER IF NOT EXISTS jobs_begin AFTER INSERT ON jobs_t BEGIN {_NEXT_REV}; END",
    f"""CREATE TRIGGER IF NOT EXISTS jobs_change AFTER UPDATE OF task_id, job_type, target_ref,
        label, state, attempts, claimed_by_worker, created_at, updated_at, started_at,
        finished_at, last_error, log_path, result_path ON jobs_t BEGIN {_NEXT_REV}; END""",
)

OWN_KEYS: Final = "journal."
"""Prefix of the keys in meta_t that belong to the journal and not to the supervisor."""

BOOT: Final = "journal.boot_id"
CLEAN: Final = "journal.closed_cleanly"
SEQ_FLOOR: Final = "journal.seq_floor"
GAP: Final = "journal.gap"
DURABLE_SEQ: Final = "journal.durable_seq"
"""Events up to here are on the disk itself; only these may be copied elsewhere."""
DURABLE_REV: Final = "journal.durable_rev"
"""The same for changes of jobs."""
DURABLE_AUDIT: Final = "journal.durable_audit"
"""The same for lines of the audit, by position."""
SUPERVISOR: Final = "journal.supervisor_id"
AUDIT_HEAD: Final = "journal.audit_head"
AUDIT_COUNT: Final = "journal.audit_count"
AUDIT_BASE: Final = "journal.audit_base"
"""Hash of the last audit row that was pruned: where the chain that is left begins."""
PRUNING_AUDIT: Final = "journal.pruning_audit"
SPOOL_LOST: Final = "journal.spool_lost"
"""How many events had to go before they were copied to the shared database."""

SET_META: Final = (
    "INSERT INTO meta_t (key, value) VALUES (?, ?)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
