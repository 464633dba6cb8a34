"""The tables of the shared database. Nothing is executed here.

Names and columns are those of the journal. What is unlimited there is unlimited here, so that no
row can ever be too long to be copied; only keys, and what an index needs, have a length.
Columns are added freely in later versions; renaming or removing one needs a step of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    types,
)
from sqlalchemy.dialects import mysql, postgresql

from uphold.core.times import parse_utc, utc_text

SUMMARY_LENGTH: Final = 255
"""Characters in `workers_t.status_summary`."""
KEY_LENGTH: Final = 191
"""Characters in a key: what every MySQL and MariaDB can index."""


class UtcTime(types.TypeDecorator[str]):
    """A moment: RFC 3339 text on our side as in the journal, a real date-time over there."""

    impl = types.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> types.TypeEngine[Any]:
        """Choose a column with milliseconds."""
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=3))
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """Take text as the journal has it; what is no time at all becomes unknown."""
        if value is None:
            return None
        try:
            text = utc_text(parse_utc(value))
        except (ValueError, OverflowError):
            return None
        if dialect.name == "sqlite":
            return text
        moment = datetime.fromisoformat(text)
        # A DATETIME has no zone: what stands there is UTC, as every session is.
        return moment if dialect.name == "postgresql" else moment.replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Give text as the journal has it."""
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return utc_text(aware.timestamp())
        return None if value is None else str(value)


def _key() -> types.TypeEngine[str]:
    # Names that differ by a capital letter only are different workers.
    exact = mysql.VARCHAR(KEY_LENGTH, charset="utf8mb4", collation="utf8mb4_bin")
    return String(KEY_LENGTH).with_variant(exact, "mysql", "mariadb")


def _long() -> types.TypeEngine[str]:
    return Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


def _table(name: str, *columns: Column[Any] | Index) -> Table:
    return Table(name, METADATA, *columns, mysql_engine="InnoDB", mysql_charset="utf8mb4")


METADATA: Final = MetaData()

SUPERVISORS: Final = _table(
    "supervisors_t",
    Column("id", _key(), primary_key=True),
    Column("name", Text()),
    Column("description", Text()),
    Column("status", Text()),
    Column("config", _long()),
    Column("parent_id", Text()),
    Column("hierarchy_level", Integer()),
    Column("created_at", UtcTime()),
    Column("updated_at", UtcTime()),
    Column("last_heartbeat", UtcTime()),
    Column("health_metrics", _long()),
)

# One row per slot, and one for each supervisor itself, `supervisor_<name>`.
WORKERS: Final = _table(
    "workers_t",
    Column("worker_id", _key(), primary_key=True),
    Column("last_heartbeat_at", UtcTime()),
    Column("pid", Integer()),
    Column("hostname", Text()),
    Column("status", Text()),
    Column("poll_seconds", Double()),
    Column("status_summary", String(SUMMARY_LENGTH)),
    Column("supervisor_id", _key()),
    Column("kind", Text()),
    Column("team", Text()),
    Column("state", Text()),
    Column("health", Text()),
    Column("generation", BigInteger()),
    Column("restarts", BigInteger()),
    Column("details", _long()),
    Index("workers_by_supervisor", "supervisor_id"),
)

JOBS: Final = _table(
    "jobs_t",
    Column("job_id", _key(), primary_key=True),
    Column("task_id", Text()),
    Column("job_type", Text()),
    Column("target_ref", Text()),
    Column("label", Text()),
    Column("state", Text()),
    Column("attempts", Integer()),
    Column("claimed_by_worker", Text()),
    Column("created_at", UtcTime()),
    Column("updated_at", UtcTime()),
    Column("started_at", UtcTime()),
    Column("finished_at", UtcTime()),
    Column("last_error", _long()),
    Column("log_path", Text()),
    Column("result_path", Text()),
    Index("jobs_by_age", "updated_at"),
)

AUDIT: Final = _table(
    "audit_log_t",
    Column("audit_id", _key(), primary_key=True),
    Column("supervisor_id", _key()),
    Column("position", BigInteger()),
    Column("actor", Text()),
    Column("action", Text()),
    Column("target_type", Text()),
    Column("target_id", Text()),
    Column("label", Text()),
    Column("created_at", UtcTime()),
    # Exactly the journal's text: the chain of hashes is over it.
    Column("details_json", _long()),
    Column("prev_hash", Text()),
    Column("hash", Text()),
    Index("audit_in_order", "supervisor_id", "position"),
)

EVENTS: Final = _table(
    "events_t",
    Column("id", _key(), primary_key=True),
    Column("supervisor_id", _key()),
    Column("seq", BigInteger()),
    Column("type", Text()),
    Column("entity_type", Text()),
    Column("entity_id", Text()),
    Column("timestamp", UtcTime()),
    Column("severity", Text()),
    Column("payload", _long()),
    Column("cause", Text()),
    Index("events_in_order", "supervisor_id", "seq"),
    Index("events_by_entity", "entity_id", mysql_length=KEY_LENGTH),
    Index("events_by_time", "timestamp"),
)

# How far the copy of each supervisor's journal has come; changed together with what is copied.
COPIES: Final = _table(
    "copies_t",
    Column("supervisor_id", _key(), primary_key=True),
    Column("events_seq", BigInteger()),
    Column("event_id", Text()),
    Column("audit_position", BigInteger()),
    Column("audit_id", Text()),
    Column("jobs_rev", BigInteger()),
    Column("lost", BigInteger()),
    Column("set_aside", BigInteger()),
    Column("updated_at", UtcTime()),
)

MIGRATIONS: Final = _table(
    "schema_migrations_t",
    Column("version", Integer(), primary_key=True, autoincrement=False),
    Column("name", Text()),
    Column("applied_at", UtcTime()),
    Column("additive", Integer()),
)

VIEWS: Final = {
    "events_v": (
        "CREATE VIEW events_v AS"
        " SELECT supervisor_id, seq, id, type, type AS event_type, entity_type, entity_id,"
        " timestamp, severity, payload, cause FROM events_t"
    ),
}
