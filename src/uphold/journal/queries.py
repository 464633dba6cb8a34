"""The questions that can be asked of a journal, whole and constant: values are parameters.

A condition whose parameter is null does not restrict anything.
"""

from __future__ import annotations

from typing import Final

_EVENTS: Final = """
SELECT seq, id, type, entity_type, entity_id, timestamp, severity, payload, cause FROM events_t
WHERE seq > coalesce(:after_seq, 0)
  AND (:since IS NULL OR timestamp >= :since) AND (:until IS NULL OR timestamp <= :until)
  AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
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
  AND (:target IS NULL OR target_id = :target OR CASE WHEN json_valid(details_json) THEN EXISTS
       (SELECT 1 FROM json_each(details_json, '$.names') WHERE value = :target) ELSE 0 END)
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
"""

JOBS: Final = {
    False: _JOBS + " ORDER BY created_at, rowid LIMIT :limit",
    True: _JOBS + " ORDER BY created_at DESC, rowid DESC LIMIT :limit",
}

SLOTS: Final = "SELECT slot, boot_id, state, generation, nonce, record FROM slots_t ORDER BY slot"
OVERRIDES: Final = "SELECT worker, override FROM overrides_t ORDER BY worker"
META: Final = "SELECT key, value FROM meta_t ORDER BY key"
