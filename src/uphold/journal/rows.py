"""What a batch becomes in the tables: tuples in the order of the columns, and the statements.

Everything that can be wrong with a batch by itself shows up here, before any transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.events import Note
from uphold.core.health import condition, slot_health
from uphold.core.times import utc_or_none, utc_text
from uphold.errors import Malformed
from uphold.journal.tables import OWN_KEYS
from uphold.wire.codecs import encode
from uphold.wire.envelopes import envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.core.events import Recorded
    from uphold.core.statuses import SlotStatus
    from uphold.ports.journals import AuditEntry, Batch, JobRow

    Row = tuple[object, ...]

LONGEST_SUMMARY: Final = 255

INSERT_EVENT: Final = (
    "INSERT INTO events_t (seq, id, type, entity_type, entity_id, timestamp, severity, payload,"
    " cause) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (seq) DO NOTHING"
)
UPSERT_SLOT: Final = (
    "INSERT INTO slots_t (slot, boot_id, state, generation, nonce, record)"
    " VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (slot) DO UPDATE SET boot_id = excluded.boot_id, state = excluded.state,"
    " generation = excluded.generation, nonce = excluded.nonce, record = excluded.record"
)
UPSERT_WORKER: Final = (
    "INSERT INTO workers_t (worker_id, last_heartbeat_at, pid, hostname, status, poll_seconds,"
    " status_summary, supervisor_id, kind, team, state, health, generation, restarts)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (worker_id) DO UPDATE SET last_heartbeat_at = excluded.last_heartbeat_at,"
    " pid = excluded.pid, hostname = excluded.hostname, status = excluded.status,"
    " poll_seconds = excluded.poll_seconds,"
    " status_summary = excluded.status_summary, supervisor_id = excluded.supervisor_id,"
    " kind = excluded.kind, team = excluded.team, state = excluded.state,"
    " health = excluded.health, generation = excluded.generation, restarts = excluded.restarts"
)
UPSERT_JOB: Final = (
    "INSERT INTO jobs_t (job_id, task_id, job_type, target_ref, label, state, created_at,"
    " updated_at, started_at, finished_at, last_error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (job_id) DO UPDATE SET state = excluded.state,"
    " updated_at = excluded.updated_at, started_at = excluded.started_at,"
    " finished_at = excluded.finished_at, last_error = excluded.last_error"
)

_STATUS_AFTER: Final = {
    "supervisor.started": "active",
    "supervisor.resumed": "active",
    "supervisor.paused": "paused",
    "supervisor.stopped": "terminated",
    "supervisor.failed": "failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose journal this is, for the rows that say so."""

    name: str
    hostname: str
    pid: int
    id: str = ""
    """Empty: the id in the journal, or a new one."""


class Pulse(NamedTuple):
    """What an event says about the supervisor itself."""

    status: str | None
    at: str
    beat: bool
    metrics: str | None


class Rows(NamedTuple):
    """A batch, ready to be written."""

    events: list[Row]
    slots: list[Row]
    workers: list[Row]
    forgotten: list[tuple[str]]
    overrides: list[tuple[str, str | None]]
    meta: list[tuple[str, str]]
    audit: list[Row]
    jobs: list[Row]
    pulses: list[Pulse]
    tells_gap: bool
    last_seq: int


def rows_of(batch: Batch, *, boot_id: str, owner: Owner) -> Rows:
    """Turn a batch into rows; Malformed if something in it cannot be written down."""
    try:
        return Rows(
            events=[event_row(recorded) for recorded in batch.events],
            slots=[slot_row(status, boot_id) for status in batch.slots],
            workers=[worker_row(status, owner) for status in batch.slots],
            forgotten=[(slot,) for slot in batch.forgotten],
            overrides=list((batch.overrides or {}).items()),
            meta=[meta_row(key, value) for key, value in (batch.meta or {}).items()],
            audit=[audit_row(entry) for entry in batch.audit],
            jobs=[job_row(job) for job in batch.jobs],
            pulses=pulses(batch.events),
            tells_gap=any(_type(recorded) == "gap" for recorded in batch.events),
            last_seq=max((recorded.seq for recorded in batch.events), default=0),
        )
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as cause:
        raise Malformed(f"a batch for the journal cannot be written: {cause!r}") from cause


def event_row(recorded: Recorded) -> Row:
    """Give the columns of an event."""
    shown = envelope(recorded)
    shown["payload"] = encode(shown["payload"]).decode()
    shown["entity_id"] = storable(str(shown["entity_id"]))
    return tuple(shown.values())


def slot_row(status: SlotStatus, boot_id: str) -> Row:
    """Give the columns of a slot's current row."""
    record = encode(status).decode()
    return (status.slot, boot_id, str(status.state), status.generation, status.nonce, record)


def worker_row(status: SlotStatus, owner: Owner) -> Row:
    """Give the columns that people and dashboards read about a slot."""
    terms = status.terms
    return (
        status.slot,
        utc_or_none(status.proved_wall),
        None if status.identity is None else status.identity.pid or None,
        owner.hostname,
        str(condition(status)),
        None,
        storable(status.why)[:LONGEST_SUMMARY],
        owner.id,
        "process" if terms is None else str(terms.kind),
        None if terms is None else terms.team,
        str(status.state),
        str(slot_health(status)),
        status.generation,
        status.restarts,
    )


def audit_row(entry: AuditEntry) -> Row:
    """Give the columns of an audit entry, without its place in the chain."""
    return (
        storable(entry.id),
        storable(entry.actor),
        storable(entry.action),
        storable(entry.target_type),
        storable(entry.target_id),
        None if entry.label is None else storable(entry.label),
        utc_text(entry.at),
        encode(dict(entry.details)).decode(),
    )


def job_row(job: JobRow) -> Row:
    """Give the columns of a job."""
    return (
        job.id,
        job.task_id,
        job.type,
        storable(job.target),
        job.label,
        job.state,
        utc_text(job.created_at),
        utc_text(job.updated_at),
        utc_or_none(job.started_at),
        utc_or_none(job.finished_at),
        None if job.error is None else storable(job.error),
    )


def meta_row(key: str, value: str) -> tuple[str, str]:
    """Give the columns of a single fact; the journal's own facts are not for others to set."""
    if key.startswith(OWN_KEYS):
        raise Malformed(f"the key '{key}' belongs to the journal itself.")
    return storable(key), storable(value)


def pulses(events: Sequence[Recorded]) -> list[Pulse]:
    """Find what these events say about the supervisor's own row."""
    found = []
    for recorded in events:
        event = recorded.event
        if isinstance(event, Note) and event.type.startswith("supervisor."):
            beat = event.type == "supervisor.heartbeat"
            held = event.payload.get("paused")  # a paused one that starts again is paused still
            status = "paused" if held else _STATUS_AFTER.get(event.type)
            if beat or status:
                tells = beat or event.type == "supervisor.failed"  # and then: why
                metrics = encode(dict(event.payload)).decode() if tells else None
                found.append(Pulse(status, utc_text(recorded.at), beat, metrics))
    return found


def storable(text: str) -> str:
    """Escape halves of characters, which no database takes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _type(recorded: Recorded) -> str:
    event = recorded.event
    return event.type if isinstance(event, Note) else event.TYPE
