"""What the next supervisor learns from the last one's journal.

Readings of the monotonic clock and processes mean nothing after a boot. For rows of an
earlier boot `since` and `started_at` become 0.0 (so a back-off is over as soon as the
machine has been up that long), `identity` becomes None (so the slot is looked for by its
nonce, and found gone), and so does `due` (so the next run is decided anew). State, counters,
terms and wall times stay: a slot that was running is still believed to run until somebody has
looked.
"""

from __future__ import annotations

import json
import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from uphold.core.specs import Instant
from uphold.core.statuses import SlotStatus, State
from uphold.errors import Malformed
from uphold.journal.connecting import connect_reading, unavailable
from uphold.journal.queries import META, OVERRIDES, SLOTS
from uphold.journal.standing import (
    GENERATION_SKIP,
    gap_after,
    highest_seq,
    numbers_were_lost,
    own_meta,
)
from uphold.journal.tables import GAP, OWN_KEYS
from uphold.ports.journals import Memory
from uphold.wire.codecs import decode, restore

if TYPE_CHECKING:
    from pathlib import Path

NOTHING = Memory(slots={}, overrides={}, meta={}, last_seq=0)


def recall(path: Path, boot_id: str) -> Memory:
    """Read everything at once; StoreUnavailable if the journal is there and cannot be read.

    `meta["gap"]` ("from-to") names numbers that were skipped after a power cut, until an
    event of type `gap` is recorded; `meta["unreadable"]` names slots whose rows are damaged
    and were recalled only in part.
    """
    if not path.exists():
        return NOTHING
    try:
        with closing(connect_reading(path)) as connection:
            return _memory(connection, boot_id) if _has_tables(connection) else NOTHING
    except sqlite3.Error as cause:
        raise unavailable(path, cause) from cause


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Tell whether the first migration has run; without it nothing was ever written."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'slots_t'").fetchone()
    return found is not None


def _memory(connection: sqlite3.Connection, boot_id: str) -> Memory:
    own = own_meta(connection)
    last_seq = highest_seq(connection, own)
    gap, skip = own.get(GAP), 0
    # Only true where the journal could not be prepared (a full disk): then the same skip is
    # made here that will be written down once it can be.
    if numbers_were_lost(own, boot_id):
        gap, last_seq = gap_after(own, last_seq)
        skip = GENERATION_SKIP
    slots, problems = _slots(connection, boot_id, skip)
    meta = {key: value for key, value in connection.execute(META) if not key.startswith(OWN_KEYS)}
    if gap:
        meta["gap"] = gap
    if problems:
        meta["unreadable"] = "; ".join(problems)
    overrides = dict(connection.execute(OVERRIDES).fetchall())
    return Memory(slots=slots, overrides=overrides, meta=meta, last_seq=last_seq)


def _slots(
    connection: sqlite3.Connection, boot_id: str, skip: int
) -> tuple[dict[str, SlotStatus], list[str]]:
    slots: dict[str, SlotStatus] = {}
    problems: list[str] = []
    for row in connection.execute(SLOTS):
        try:
            status = decode(SlotStatus, row["record"] or "")
        except Malformed as problem:
            problems.append(f"{row['slot']}: {problem.message}")
            status = _salvaged(row)
        generation = max(status.generation, row["generation"] or 0) + skip
        if generation != status.generation:
            status = replace(status, generation=generation)
        if row["boot_id"] != boot_id:
            status = replace(
                status, since=Instant(0.0), started_at=Instant(0.0), identity=None, due=None
            )
        slots[row["slot"]] = status
    return slots, problems


def _salvaged(row: sqlite3.Row) -> SlotStatus:
    """Keep of a damaged row what can still be read, field by field; a slot is never forgotten."""
    content: dict[str, object] = {"slot": row["slot"]}
    for key, value in _readable(row["record"]).items():
        try:
            restore(SlotStatus, {"slot": row["slot"], key: value})
        except Malformed:
            continue
        content[key] = value
    content |= {"slot": row["slot"], "nonce": row["nonce"] or content.get("nonce", "")}
    if row["state"] in set(State):
        content["state"] = row["state"]
    return restore(SlotStatus, content)


def _readable(text: str | None) -> dict[str, object]:
    try:
        plain = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}
