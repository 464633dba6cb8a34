"""Forgetting what is old: events first, jobs later, the audit last. A little at a time."""

from __future__ import annotations

import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from dataclasses import dataclass
from typing import Final

from uphold.core.times import utc_text
from uphold.journal.audit import Link
from uphold.journal.tables import AUDIT_BASE, AUDIT_COUNT, PRUNING_AUDIT, SET_META

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How much is kept, and how many rows one call may remove."""

    events: int = 100_000
    events_age: float = 30 * DAY
    jobs_age: float = 90 * DAY
    audit_age: float = 730 * DAY
    at_once: int = 2_000


def prune(connection: sqlite3.Connection, now: float, keep: Keep, link: Link) -> tuple[int, Link]:
    """Remove what is too old or too much, inside the caller's transaction; tells how many rows."""
    removed = _events(connection, now, keep) + _jobs(connection, now, keep)
    audits = _audit(connection, now, keep)
    if audits:
        link = Link(link.head, link.rows - audits)
        connection.execute(SET_META, (AUDIT_COUNT, str(link.rows)))
    return removed + audits, link


def _events(connection: sqlite3.Connection, now: float, keep: Keep) -> int:
    """Remove the oldest, but never the last: it carries the number that goes on."""
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM events_t").fetchone()
    (total,) = connection.execute("SELECT count(*) FROM events_t").fetchone()
    surplus = min(max(0, total - max(1, keep.events)), keep.at_once)
    removed = connection.execute(
        "DELETE FROM events_t WHERE seq IN"
        " (SELECT seq FROM events_t WHERE seq < ? ORDER BY seq LIMIT ?)",
        (last, surplus),
    ).rowcount
    aged = connection.execute(
        "DELETE FROM events_t WHERE seq IN (SELECT seq FROM"
        " (SELECT seq, timestamp FROM events_t WHERE seq < ? ORDER BY seq LIMIT ?)"
        " WHERE timestamp < ?)",
        (last, keep.at_once - surplus, utc_text(max(0.0, now - keep.events_age))),
    ).rowcount
    return removed + aged


def _jobs(connection: sqlite3.Connection, now: float, keep: Keep) -> int:
    """Remove finished ones, but never the one that changed last: it carries the next number."""
    return connection.execute(
        "DELETE FROM jobs_t WHERE job_id IN (SELECT job_id FROM jobs_t WHERE updated_at < ?"
        " AND state IN ('succeeded', 'failed', 'canceled')"
        " AND rev < (SELECT max(rev) FROM jobs_t) LIMIT ?)",
        (utc_text(max(0.0, now - keep.jobs_age)), keep.at_once),
    ).rowcount


def _audit(connection: sqlite3.Connection, now: float, keep: Keep) -> int:
    """Cut the beginning of the chain off, and remember where what is left begins."""
    before = utc_text(max(0.0, now - keep.audit_age))
    oldest = connection.execute(
        "SELECT rowid, created_at, hash FROM audit_log_t ORDER BY rowid LIMIT ?", (keep.at_once,)
    ).fetchall()
    old: list[tuple[int, str]] = []
    for rowid, created_at, digest in oldest:
        if created_at >= before:
            break  # only a beginning can be cut off
        old.append((rowid, digest))
    if not old:
        return 0
    last, base = old[-1]
    connection.execute(SET_META, (PRUNING_AUDIT, "1"))
    connection.execute("DELETE FROM audit_log_t WHERE rowid <= ?", (last,))
    connection.execute("DELETE FROM meta_t WHERE key = ?", (PRUNING_AUDIT,))
    connection.execute(SET_META, (AUDIT_BASE, base))
    return len(old)
