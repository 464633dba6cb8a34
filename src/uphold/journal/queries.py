"""The questions that can be asked of a journal, whole and constant: values are parameters.

A condition whose parameter is null does not restrict anything. Lists are handed over as JSON;
patterns have `*`, `?` and `[…]`, and a text without them matches itself alone.
"""

from __future__ import annotations

from typing import Final

_EVENTS: Final = """
SELECT seq, id, type, entity_type, entity_id, timestamp, severity, payload, cause FROM events_t
WHERE seq > coalesce(:after_seq, 0)
  AND (:since IS NULL OR timestamp >= :since) AND (:until IS NULL OR timestamp <= :until)
  AND (:types IS NULL OR EXISTS
       (SELECT 1 FROM json_each(:types) AS wanted WHERE events_t.type GLOB wanted.value))
  AND (:severities IS NULL OR severity IN (SELECT value FROM json_each(:severities)))
  AND (:cause IS NULL OR cause = :cause OR (entity_type = 'order' AND entity_id = :cause))
"""
# Apart, because the index on the entity is only used where the entity is surely given.
_OF_WORKER: Final = _EVENTS + "AND entity_id = :worker AND entity_type = 'worker'"

EVENTS: Final = {
    # (of one worker, newest first)
    (False, False): _EVENTS + " ORDER BY seq LIMIT :limit",
    (False, True): _EVENTS + " ORDER BY seq DESC LIMIT :limit",
    (True, False): _OF_WORKER + " ORDER BY seq LIMIT :limit",
    (True, True): _OF_WORKER + " ORDER BY seq DESC LIMIT :limit",
}

AUDIT_CHAIN: Final = """
SELECT audit_id, actor, action, target_type, target_id, label, created_at, details_json,
       prev_hash, hash
FROM audit_log_t ORDER BY rowid
"""

_AUDIT: Final = """
SELECT audit_id, actor, action, target_type, target_id, label, created_at, details_json,
       prev_hash, hash
FROM audit_log_t
WHERE (:since IS NULL OR created_at >= :since) AND (:until IS NULL OR created_at <= :until)
  AND (:targets IS NULL OR target_id IN (SELECT value FROM json_each(:targets))
       OR CASE WHEN json_valid(details_json) THEN EXISTS
          (SELECT 1 FROM json_each(details_json, '$.names') AS named
           WHERE named.value IN (SELECT value FROM json_each(:targets))) ELSE 0 END)
  AND (:actor IS NULL OR actor GLOB :actor)
  AND (:actions IS NULL OR EXISTS
       (SELECT 1 FROM json_each(:actions) AS wanted
        WHERE action GLOB wanted.value OR action GLOB wanted.value || '.*'))
  AND (:label IS NULL OR label GLOB :label)
  AND (:cause IS NULL OR audit_id = :cause
       OR substr(audit_id, 1, length(:cause) + 1) = :cause || '.')
"""

AUDIT: Final = {
    False: _AUDIT + " ORDER BY rowid LIMIT :limit",
    True: _AUDIT + " ORDER BY rowid DESC LIMIT :limit",
}

_JOBS: Final = """
SELECT job_id, task_id, job_type, target_ref, label, state, attempts, claimed_by_worker,
       created_at, updated_at, started_at, finished_at, last_error, log_path, result_path
FROM jobs_t
WHERE (:since IS NULL OR created_at >= :since) AND (:until IS NULL OR created_at <= :until)
  AND (:states IS NULL OR state IN (SELECT value FROM json_each(:states)))
  AND (:targets IS NULL OR EXISTS
       (SELECT 1 FROM json_each(:targets) AS wanted
        WHERE instr(',' || target_ref || ',', ',' || wanted.value || ',') > 0))
  AND (:actions IS NULL OR EXISTS
       (SELECT 1 FROM json_each(:actions) AS wanted WHERE job_type GLOB wanted.value))
  AND (:label IS NULL OR label GLOB :label)
  AND (:cause IS NULL OR job_id = :cause) AND (:task_id IS NULL OR task_id = :task_id)
"""

JOBS: Final = {
    False: _JOBS + " ORDER BY created_at, rowid LIMIT :limit",
    True: _JOBS + " ORDER BY created_at DESC, rowid DESC LIMIT :limit",
}

UNRESTRICTED: Final[dict[str, object]] = dict.fromkeys(
    (
        *("after_seq", "since", "until", "types", "severities", "worker", "targets"),
        *("actor", "actions", "label", "cause", "states", "task_id"),
    )
)
"""Every parameter of the questions above, none of them given."""

SLOTS: Final = "SELECT slot, boot_id, state, generation, nonce, record FROM slots_t ORDER BY slot"
OVERRIDES: Final = "SELECT worker, override FROM overrides_t ORDER BY worker"
STEPS: Final = "SELECT version, additive FROM schema_migrations_t"
META: Final = "SELECT key, value FROM meta_t ORDER BY key"
