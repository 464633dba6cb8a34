"""The statements that bring rows over: a row that is there already stays one row.

Each dialect says that in its own way. For MySQL they are written out, since its driver sends many
rows in one statement only if that ends the way it expects.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Executable, Table, TextClause, bindparam, text
from sqlalchemy.dialects import postgresql, sqlite

from uphold.recorder.schema import AUDIT, EVENTS, JOBS

_MYSQL: Final[dict[str, TextClause]] = {
    EVENTS.name: text("""
INSERT INTO events_t (id, supervisor_id, seq, `type`, entity_type, entity_id, `timestamp`, severity,
    payload, cause)
VALUES (:id, :supervisor_id, :seq, :type, :entity_type, :entity_id, :timestamp, :severity,
    :payload, :cause)
ON DUPLICATE KEY UPDATE id = id"""),
    AUDIT.name: text("""
INSERT INTO audit_log_t (audit_id, supervisor_id, `position`, actor, `action`, target_type,
    target_id, label, created_at, details_json, prev_hash, `hash`)
VALUES (:audit_id, :supervisor_id, :position, :actor, :action, :target_type,
    :target_id, :label, :created_at, :details_json, :prev_hash, :hash)
ON DUPLICATE KEY UPDATE audit_id = audit_id"""),
    JOBS.name: text("""
INSERT INTO jobs_t (job_id, task_id, job_type, target_ref, label, `state`, attempts,
    claimed_by_worker, created_at, updated_at, started_at, finished_at, last_error, log_path,
    result_path)
VALUES (:job_id, :task_id, :job_type, :target_ref, :label, :state, :attempts,
    :claimed_by_worker, :created_at, :updated_at, :started_at, :finished_at, :last_error, :log_path,
    :result_path)
ON DUPLICATE KEY UPDATE task_id = VALUES(task_id), job_type = VALUES(job_type),
    target_ref = VALUES(target_ref), label = VALUES(label), `state` = VALUES(`state`),
    attempts = VALUES(attempts), claimed_by_worker = VALUES(claimed_by_worker),
    created_at = VALUES(created_at), updated_at = VALUES(updated_at),
    started_at = VALUES(started_at), finished_at = VALUES(finished_at),
    last_error = VALUES(last_error), log_path = VALUES(log_path),
    result_path = VALUES(result_path)"""),
}


def add_once(dialect: str, table: Table) -> Executable:
    """Add rows; those whose key is there already are left as they are."""
    key = table.primary_key.columns[0].name
    if dialect == "mysql":
        return _mysql(table)
    made: Any = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    return made.on_conflict_do_nothing(index_elements=[key])  # type: ignore[no-any-return]


def add_or_replace(dialect: str, table: Table) -> Executable:
    """Add rows; of those whose key is there already the other columns become these."""
    if dialect == "mysql":
        return _mysql(table)
    key = table.primary_key.columns[0].name
    names = [column.name for column in table.columns if column.name != key]
    made: Any = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    return made.on_conflict_do_update(  # type: ignore[no-any-return]
        index_elements=[key], set_={name: made.excluded[name] for name in names}
    )


def _mysql(table: Table) -> Executable:
    return _MYSQL[table.name].bindparams(
        *(bindparam(each.name, type_=each.type) for each in table.columns)
    )
