"""Forgetting what is old or too much: events first, jobs later, the audit last, and by age alone.

A little at a time, inside the caller's transaction. What is not copied to the shared database
yet is kept: events up to a size, jobs and the audit without a limit.
"""

from __future__ import annotations

import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from dataclasses import dataclass
from typing import Final, NamedTuple

from uphold.core.times import utc_text
from uphold.journal.audit import Link
from uphold.journal.spooling import EVERYTHING, Copied
from uphold.journal.tables import AUDIT_BASE, AUDIT_COUNT, PRUNING_AUDIT, SET_META, SPOOL_LOST

DAY: Final = 86400.0
_SAMPLE: Final = 100
_ROW_COST: Final = 60
"""Bytes of a row beside its text: its header, and its place in the index."""
_PAGES_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How much is kept, and how many rows one call may remove. Ages are seconds, sizes bytes."""

    events: int = 100_000
    events_age: float = 30 * DAY
    jobs_age: float = 90 * DAY
    audit_age: float = 730 * DAY
    size: int = 256 * 2**20
    """Of the file in use. The audit counts, but never goes for it."""
    least: int = 1_000
    """So many events, and a tenth of it of jobs, stay whatever the size: an audit that fills
    the file by itself must not take all the rest away."""
    spool: int | None = None
    """Bytes of events that wait for the shared database; None where there is none."""
    spare: int = 1024
    """Free pages that may stay in the file: the next rows need some."""
    at_once: int = 200


class Stock(NamedTuple):
    """What the one writer knows of its rows without counting them: that takes long."""

    link: Link
    events: int


def count_events(connection: sqlite3.Connection) -> int:
    """Count them, once."""
    (total,) = connection.execute("SELECT count(*) FROM events_t").fetchone()
    return int(total)


def prune(
    connection: sqlite3.Connection,
    now: float | None,
    keep: Keep,
    stock: Stock,
    copied: Copied = EVERYTHING,
) -> tuple[int, Stock]:
    """Remove some of what is too old or too much; tells how many rows. Without `now`: too much."""
    over = used_bytes(connection) > keep.size
    wanted = min(keep.events, keep.least) if over else keep.events
    events = _events(connection, now, keep, copied, stock.events, max(1, wanted))
    # Jobs go for the size only when no event can.
    jobs = _jobs(connection, now, keep, copied, over=over and not events)
    audits = 0 if now is None else _audit(connection, now, keep, copied)
    link = Link(stock.link.head, stock.link.rows - audits)
    if audits:
        connection.execute(SET_META, (AUDIT_COUNT, str(link.rows)))
    return events + jobs + audits, Stock(link, stock.events - events)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Measure the file without the pages that are free to be used again."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def give_back(connection: sqlite3.Connection, keep: Keep) -> int:
    """Shorten the file by some of its free pages if it has many; tells how many.

    Pages are moved within the file, so this needs no room for a second one. A journal of an
    earlier uphold cannot be shortened; its free pages are used again.
    """
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    spare = max(keep.spare, pages // 4)
    if free <= spare:
        return 0
    number = min(free - spare, _PAGES_AT_ONCE)
    connection.execute(f"PRAGMA incremental_vacuum({number})").fetchall()
    (left,) = connection.execute("PRAGMA freelist_count").fetchone()
    return int(free - left)


def _events(  # noqa: PLR0913, PLR0917 - one question, with all it depends on
    connection: sqlite3.Connection,
    now: float | None,
    keep: Keep,
    copied: Copied,
    total: int,
    wanted: int,
) -> int:
    """Remove the oldest, but never the last: it carries the number that goes on."""
    before = "" if now is None else utc_text(max(0.0, now - keep.events_age))
    oldest = connection.execute(
        "SELECT seq, timestamp FROM events_t WHERE seq < (SELECT max(seq) FROM events_t)"
        " ORDER BY seq LIMIT ?",
        (keep.at_once,),
    ).fetchall()
    surplus = total - wanted
    doomed = [seq for place, (seq, at) in enumerate(oldest) if place < surplus or at < before]
    waiting = [seq for seq in doomed if seq > copied.events]
    if waiting:
        done = sum(seq <= copied.events for seq, _ in oldest)
        lost = waiting[: _beyond_spool(connection, keep, copied.events, total - done)]
        doomed = doomed[: len(doomed) - len(waiting)] + lost
        _count_lost(connection, len(lost))
    connection.executemany("DELETE FROM events_t WHERE seq = ?", [(seq,) for seq in doomed])
    return len(doomed)


def _beyond_spool(connection: sqlite3.Connection, keep: Keep, copied: int, waiting: int) -> int:
    """Tell how many of the events that wait to be copied are more than may wait."""
    (mean,) = connection.execute(
        "SELECT avg(length(id) + length(type) + length(entity_id) + length(entity_type) + ?"
        " + length(timestamp) + length(severity) + length(payload) + length(coalesce(cause, '')))"
        " FROM (SELECT * FROM events_t WHERE seq > ? ORDER BY seq LIMIT ?)",
        (_ROW_COST, copied, _SAMPLE),
    ).fetchone()
    return max(0, waiting - int((keep.spool or 0) / (mean or _ROW_COST)))


def _count_lost(connection: sqlite3.Connection, number: int) -> None:
    if number:
        connection.execute(
            "INSERT INTO meta_t (key, value) VALUES (?, ?) ON CONFLICT (key)"
            " DO UPDATE SET value = CAST(value AS INTEGER) + excluded.value",
            (SPOOL_LOST, str(number)),
        )


def _jobs(
    connection: sqlite3.Connection, now: float | None, keep: Keep, copied: Copied, *, over: bool
) -> int:
    """Remove finished ones, but never the one that changed last: it carries the next number."""
    before = "" if now is None else utc_text(max(0.0, now - keep.jobs_age))
    removed = connection.execute(
        "DELETE FROM jobs_t WHERE job_id IN (SELECT job_id FROM jobs_t WHERE updated_at < ?"
        " AND state IN ('succeeded', 'failed', 'canceled') AND rev <= ?"
        " AND rev < (SELECT max(rev) FROM jobs_t) LIMIT ?)",
        (before, copied.jobs, keep.at_once),
    ).rowcount
    if not over or removed:
        return removed
    (total,) = connection.execute("SELECT count(*) FROM jobs_t").fetchone()
    surplus = min(total - max(1, keep.least // 10), keep.at_once)
    return connection.execute(
        "DELETE FROM jobs_t WHERE job_id IN (SELECT job_id FROM jobs_t"
        " WHERE state IN ('succeeded', 'failed', 'canceled') AND rev <= ?"
        " AND rev < (SELECT max(rev) FROM jobs_t) ORDER BY rev LIMIT ?)",
        (copied.jobs, max(0, surplus)),
    ).rowcount


def _audit(connection: sqlite3.Connection, now: float, keep: Keep, copied: Copied) -> int:
    """Cut the beginning of the chain off, and remember where what is left begins.

    The last line stays: places in the order are never given twice.
    """
    before = utc_text(max(0.0, now - keep.audit_age))
    oldest = connection.execute(
        "SELECT rowid, created_at, hash FROM audit_log_t WHERE rowid <= ?"
        " AND rowid < (SELECT max(rowid) FROM audit_log_t) ORDER BY rowid LIMIT ?",
        (copied.audit, keep.at_once),
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
