"""Where a journal stands when it is opened, and what an unclean boot does to its numbers.

Facts are committed without waiting for the disk: they survive the death of the supervisor,
but a power cut may take the last of them, although their numbers were already told to
listeners. So after a boot before which the journal was not closed, numbers skip ahead, far
beyond anything that could have been lost, and the skipped range is told as a gap.
"""

from __future__ import annotations

import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from uphold.core.times import utc_text
from uphold.journal.audit import BEGINNING, Link
from uphold.journal.migrations import migrate
from uphold.journal.tables import (
    AUDIT_COUNT,
    AUDIT_HEAD,
    BOOT,
    CLEAN,
    GAP,
    OWN_KEYS,
    SEQ_FLOOR,
    SET_META,
    SUPERVISOR,
)
from uphold.patterns import pattern

if TYPE_CHECKING:
    from uphold.journal.rows import Owner

_NUMBER: Final = pattern(r"[0-9]{1,18}")
SEQ_SKIP: Final = 1_000_000
GENERATION_SKIP: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the writer needs to know before it writes its first row."""

    owner: Owner
    link: Link
    last_seq: int


def prepare(connection: sqlite3.Connection, *, owner: Owner, boot_id: str, now: float) -> Standing:
    """Bring the tables up to date and note who opened the journal, and under which boot."""
    migrate(connection, now)
    connection.execute("BEGIN IMMEDIATE")
    try:
        meta = own_meta(connection)
        last_seq = highest_seq(connection, meta)
        if numbers_were_lost(meta, boot_id):
            last_seq = _skip(connection, meta, last_seq)
        owner = replace(owner, id=owner.id or meta.get(SUPERVISOR) or _new_id())
        marks = ((BOOT, boot_id), (CLEAN, "0"), (SUPERVISOR, owner.id))
        connection.executemany(SET_META, marks)
        _introduce(connection, owner, utc_text(now))
        _end_interrupted(connection, utc_text(now))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return Standing(owner=owner, link=link_of(meta), last_seq=last_seq)


def resume(connection: sqlite3.Connection, owner: Owner) -> Standing:
    """Look again where a journal stands that this process has prepared before."""
    meta = own_meta(connection)
    return Standing(owner=owner, link=link_of(meta), last_seq=highest_seq(connection, meta))


def own_meta(connection: sqlite3.Connection) -> dict[str, str]:
    """Read the journal's own facts."""
    rows = connection.execute("SELECT key, value FROM meta_t WHERE key LIKE ?", (f"{OWN_KEYS}%",))
    return {key: value for key, value in rows}  # noqa: C416 - rows are not always plain pairs


def highest_seq(connection: sqlite3.Connection, meta: dict[str, str]) -> int:
    """Give the last number that was used or skipped."""
    (last,) = connection.execute("SELECT max(seq) FROM events_t").fetchone()
    return max(last or 0, _whole(meta.get(SEQ_FLOOR)))


def numbers_were_lost(meta: dict[str, str], boot_id: str) -> bool:
    """Tell whether the machine went down while the journal was open."""
    return BOOT in meta and meta[BOOT] != boot_id and meta.get(CLEAN) != "1"


def gap_after(meta: dict[str, str], last_seq: int) -> tuple[str, int]:
    """Name the range that is skipped after a power cut, and the number that counts as the last.

    A gap that nobody was told of yet grows instead of being forgotten.
    """
    begins = _whole(meta.get(GAP, "").partition("-")[0]) or last_seq + 1
    return f"{begins}-{last_seq + SEQ_SKIP}", last_seq + SEQ_SKIP


def link_of(meta: dict[str, str]) -> Link:
    """Give the end of the audit chain."""
    return Link(meta.get(AUDIT_HEAD, BEGINNING), _whole(meta.get(AUDIT_COUNT)))


def _whole(text: str | None) -> int:
    """Read a number of ours; 0 if the row was damaged, as if it had never been written."""
    return int(text) if text is not None and _NUMBER.fullmatch(text) else 0


def _new_id() -> str:
    import uuid  # noqa: PLC0415 - needed once in the life of a home

    return str(uuid.uuid4())


def _skip(connection: sqlite3.Connection, meta: dict[str, str], last_seq: int) -> int:
    gap, floor = gap_after(meta, last_seq)
    connection.executemany(SET_META, ((GAP, gap), (SEQ_FLOOR, str(floor))))
    connection.execute("UPDATE slots_t SET generation = generation + ?", (GENERATION_SKIP,))
    return floor


def _end_interrupted(connection: sqlite3.Connection, at: str) -> None:
    """Say of jobs that nobody follows any more what became of them: nobody knows."""
    connection.execute(
        "UPDATE jobs_t SET state = 'failed', finished_at = ?, updated_at = ?, last_error ="
        " 'interrupted: the supervisor ended first, so nobody saw how this ended'"
        # One that waits for its flag to arrive is not under way: it goes on waiting.
        " WHERE state = 'running' OR (state = 'queued' AND task_id IS NULL)",
        (at, at),
    )


def _introduce(connection: sqlite3.Connection, owner: Owner, at: str) -> None:
    connection.execute(
        "INSERT INTO supervisors_t (id, name, status, hierarchy_level, created_at, updated_at)"
        " VALUES (?, ?, 'spawning', 0, ?, ?) ON CONFLICT (id) DO UPDATE SET"
        " name = excluded.name, status = excluded.status, updated_at = excluded.updated_at",
        (owner.id, owner.name, at, at),
    )
    connection.execute(
        "INSERT INTO workers_t (worker_id, pid, hostname, status, state, kind, supervisor_id)"
        " VALUES (?, ?, ?, 'spawning', 'running', 'supervisor', ?) ON CONFLICT (worker_id)"
        " DO UPDATE SET pid = excluded.pid, hostname = excluded.hostname,"
        " status = excluded.status, state = excluded.state, supervisor_id = excluded.supervisor_id",
        (f"supervisor_{owner.name}", owner.pid, owner.hostname, owner.id),
    )
