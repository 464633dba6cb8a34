"""What a journal has for a copy elsewhere: rows after a given place, and only durable ones.

Events are numbered, lines of the audit have a position, changes of jobs a number of their own.
A journal may have begun anew since somebody last looked (it was damaged and set aside): then the
row at the last place is another one, and everything is given again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.journal.reading import JournalReader
from uphold.journal.tables import (
    CLEAN,
    DURABLE_AUDIT,
    DURABLE_REV,
    DURABLE_SEQ,
    SEQ_FLOOR,
    SUPERVISOR,
)

if TYPE_CHECKING:
    import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
    from collections.abc import Mapping
    from pathlib import Path

_ROOM: Final = 4_000_000
"""Characters that are read at once."""

_META: Final = "SELECT key, value FROM meta_t WHERE key LIKE 'journal.%'"
_HIGHEST: Final = """
SELECT (SELECT coalesce(max(seq), 0) FROM events_t),
       (SELECT coalesce(max(rowid), 0) FROM audit_log_t),
       (SELECT coalesce(max({rev}), 0) FROM jobs_t)
"""
_AT: Final = """
SELECT (SELECT id FROM events_t WHERE seq = :events),
       (SELECT audit_id FROM audit_log_t WHERE rowid = :audit)
"""
_WAITING: Final = """
SELECT (SELECT count(*) FROM events_t WHERE seq > :events AND seq <= :events_to),
       (SELECT count(*) FROM audit_log_t WHERE rowid > :audit AND rowid <= :audit_to),
       (SELECT count(*) FROM jobs_t WHERE {rev} > :jobs AND {rev} <= :jobs_to),
       (SELECT timestamp FROM events_t WHERE seq > :events AND seq <= :events_to
        ORDER BY seq LIMIT 1),
       (SELECT created_at FROM audit_log_t WHERE rowid > :audit AND rowid <= :audit_to
        ORDER BY rowid LIMIT 1)
"""
_EVENTS: Final = """
SELECT seq, id, type, entity_type, entity_id, timestamp, severity, payload, cause FROM events_t
WHERE seq > :after AND seq <= :upto ORDER BY seq LIMIT :limit
"""
_AUDIT: Final = """
SELECT rowid AS position, audit_id, actor, action, target_type, target_id, label, created_at,
       details_json, prev_hash, hash
FROM audit_log_t WHERE rowid > :after AND rowid <= :upto ORDER BY rowid LIMIT :limit
"""
_JOBS: Final = """
SELECT {rev} AS rev, job_id, task_id, job_type, target_ref, label, state, attempts,
       claimed_by_worker, created_at, updated_at, started_at, finished_at, last_error, log_path,
       result_path
FROM jobs_t WHERE {rev} > :after AND {rev} <= :upto ORDER BY {rev} LIMIT :limit
"""


_SUPERVISOR: Final = """
SELECT supervisors_t.*, workers_t.hostname FROM supervisors_t
LEFT JOIN workers_t ON workers_t.worker_id = 'supervisor_' || supervisors_t.name
WHERE supervisors_t.id = :id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far a copy has come, and which rows stood there."""

    events: int = 0
    event_id: str = ""
    audit: int = 0
    audit_id: str = ""
    jobs: int = 0


BEGINNING: Final = Cursor()


class Waiting(NamedTuple):
    """What is to be copied after a cursor."""

    events: int
    audit: int
    jobs: int
    oldest: str | None
    """When the oldest of it happened."""

    @property
    def rows(self) -> int:
        """How many rows in all."""
        return self.events + self.audit + self.jobs


class Outgoing(JournalReader):
    """Reads one journal for a copy; of many large rows only as many as fit into memory easily."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rev: str | None = None

    def supervisor_id(self) -> str:
        """Tell whose journal it is; empty if nobody's yet."""
        return self.own_meta().get(SUPERVISOR, "")

    def supervisor_row(self) -> dict[str, object]:
        """Give the supervisor's own row; empty if there is none."""
        rows = self._rows(_SUPERVISOR, {"id": self.supervisor_id()})
        return dict(rows[0]) if rows else {}

    def skipped_to(self) -> int:
        """Tell the last number that was skipped after a power cut; 0 if none was."""
        return _whole(self.own_meta(), SEQ_FLOOR, 0)

    def durable(self) -> Cursor:
        """Tell how far the rows are on the disk itself."""
        meta, (highest,) = self._ask([(_META, {}), (self._with_rev(_HIGHEST), {})])
        facts = {row["key"]: row["value"] for row in meta}
        events, audit, jobs = highest
        if facts.get(CLEAN) == "1":  # it was closed: everything is
            return Cursor(events=events, audit=audit, jobs=jobs)
        return Cursor(
            events=min(events, _whole(facts, DURABLE_SEQ, events)),
            audit=min(audit, _whole(facts, DURABLE_AUDIT, audit)),
            jobs=min(jobs, _whole(facts, DURABLE_REV, jobs)),
        )

    def resumed(self, cursor: Cursor) -> Cursor:
        """Tell where to go on from a cursor: there, or at the beginning of another journal."""
        places = {"events": cursor.events, "audit": cursor.audit}
        meta, (highest,), (found,) = self._ask(
            [(_META, {}), (self._with_rev(_HIGHEST), {}), (_AT, places)]
        )
        facts = {row["key"]: row["value"] for row in meta}
        last = max(highest[0], _whole(facts, SEQ_FLOOR, 0))
        other_events = found[0] not in (None, cursor.event_id) and cursor.event_id != ""
        other_audit = found[1] not in (None, cursor.audit_id) and cursor.audit_id != ""
        if cursor.events > last or other_events:
            return BEGINNING
        if cursor.audit > highest[1] or other_audit:
            # Its oldest rows went, and with the last of them the numbers began again.
            cursor = replace(cursor, audit=0, audit_id="")
        return replace(cursor, jobs=0) if cursor.jobs > highest[2] else cursor

    def waiting(self, cursor: Cursor) -> Waiting:
        """Count what is to be copied."""
        upto = self.durable()
        values = {
            "events": cursor.events,
            "audit": cursor.audit,
            "jobs": cursor.jobs,
            "events_to": upto.events,
            "audit_to": upto.audit,
            "jobs_to": upto.jobs,
        }
        events, audit, jobs, *times = self._rows(self._with_rev(_WAITING), values)[0]
        return Waiting(events, audit, jobs, min(filter(None, times), default=None))

    def events_after(self, after: int, upto: int, limit: int) -> list[sqlite3.Row]:
        """Give the next events, oldest first."""
        return self._rows(_EVENTS, {"after": after, "upto": upto, "limit": limit})

    def audit_after(self, after: int, upto: int, limit: int) -> list[sqlite3.Row]:
        """Give the next lines of the audit with their positions, in the order of the chain."""
        return self._rows(_AUDIT, {"after": after, "upto": upto, "limit": limit})

    def jobs_after(self, after: int, upto: int, limit: int) -> list[sqlite3.Row]:
        """Give the jobs that changed next, as they are now."""
        values = {"after": after, "upto": upto, "limit": limit}
        return self._rows(self._with_rev(_JOBS), values)

    def _fetched(self, found: sqlite3.Cursor) -> list[sqlite3.Row]:
        rows: list[sqlite3.Row] = []
        room = _ROOM
        for row in found:
            rows.append(row)
            room -= sum(len(value) for value in row if isinstance(value, str))
            if room < 0:
                break
        return rows

    def _with_rev(self, statement: str) -> str:
        if self._rev is None:
            columns = {row["name"] for row in self._rows("PRAGMA table_info(jobs_t)")}
            # A journal that no supervisor of today has opened yet: nothing in it changes.
            self._rev = "rev" if "rev" in columns else "rowid"
        return statement.format(rev=self._rev)


def _whole(facts: Mapping[str, str], key: str, otherwise: int) -> int:
    text = facts.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else otherwise
