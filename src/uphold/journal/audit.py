"""The chain of the audit: each row names the hash of the one before it.

Whoever changes, drops or reorders a row, or cuts off the end, breaks it. Somebody who can
rewrite the whole file can also rewrite the chain; the copy in a shared database is for that.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.errors import Problem
from uphold.journal.tables import AUDIT_BASE, AUDIT_COUNT, AUDIT_HEAD

if TYPE_CHECKING:
    import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
    from collections.abc import Iterable

    from uphold.journal.reading import JournalReader

BEGINNING: Final = "0" * 64
"""What the first row names as the one before it."""

_SCHEME: Final = "uphold-audit-1"

COLUMNS: Final = (
    "audit_id",
    "actor",
    "action",
    "target_type",
    "target_id",
    "label",
    "created_at",
    "details_json",
)


class Link(NamedTuple):
    """Where the chain stands: the hash of its last row, and how many rows there are."""

    head: str = BEGINNING
    rows: int = 0


def chained(content: tuple[object, ...], before: str) -> str:
    """Hash one row (the columns above) together with the hash of the row before it."""
    written = json.dumps([_SCHEME, before, *content], separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def append(connection: sqlite3.Connection, rows: Iterable[tuple[object, ...]], link: Link) -> Link:
    """Add rows (the columns above) to the end of the chain; give where it stands then."""
    for content in rows:
        known = "SELECT 1 FROM audit_log_t WHERE audit_id = ?"
        if connection.execute(known, content[:1]).fetchone():
            continue  # the same batch again, after a failure: twice is once
        digest = chained(content, link.head)
        connection.execute(
            "INSERT INTO audit_log_t (audit_id, actor, action, target_type, target_id, label,"
            " created_at, details_json, prev_hash, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*content, link.head, digest),
        )
        link = Link(digest, link.rows + 1)
    return link


def verify(reader: JournalReader) -> list[Problem]:
    """Check the whole chain, and say for each break which row it is and what was done to it."""
    problems: list[Problem] = []
    # As of one moment: a supervisor may be adding rows meanwhile.
    meta, rows = reader.audit_chain()
    before = meta.get(AUDIT_BASE, BEGINNING)
    for count, row in enumerate(rows, start=1):
        at = f"audit row {count} ({row['audit_id']})"
        if row["prev_hash"] != before:
            problems.append(Problem(at, "a row before it was removed, added or moved."))
        content = tuple(row[column] for column in COLUMNS)
        if row["hash"] != chained(content, row["prev_hash"]):
            problems.append(Problem(at, "its content was changed after it was written."))
        before = row["hash"]
    problems += _end_problems(meta, before, len(rows))
    return problems


def _end_problems(meta: dict[str, str], head: str, count: int) -> list[Problem]:
    told = meta.get(AUDIT_COUNT, "0")
    if told != str(count):
        text = f"{told} rows were written and {count} are there."
        return [Problem("audit", f"{text} Rows were removed or added at the end.")]
    if meta.get(AUDIT_HEAD, BEGINNING) != head:
        return [Problem("audit", "the last row is not the last one that was written.")]
    return []
