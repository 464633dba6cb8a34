"""What a shared database holds of one supervisor's journal. Reads only, and locks nothing."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, inspect, select

from uphold.journal.outgoing import BEGINNING, Cursor
from uphold.recorder.connecting import Store
from uphold.recorder.schema import AUDIT, COPIES, EVENTS, JOBS


def holdings(store: Store, owner: str) -> tuple[dict[str, Any], Cursor]:
    """Count its rows, and tell how far the copy has come; StoreUnavailable if nobody answers."""
    with store.begin() as connection:
        there = set(inspect(connection).get_table_names())
        if not {COPIES.name, EVENTS.name, AUDIT.name, JOBS.name} <= there:
            return {"events": 0, "audit": 0, "jobs": 0, "lost": 0, "set_aside": 0}, BEGINNING
        return _counted(connection, owner)


def _counted(connection: Connection, owner: str) -> tuple[dict[str, Any], Cursor]:
    counts = {
        "events": _count(connection, EVENTS, owner),
        "audit": _count(connection, AUDIT, owner),
        # Jobs carry no name of a supervisor: these are everybody's.
        "jobs": connection.scalar(select(func.count()).select_from(JOBS)),
    }
    columns = COPIES.c
    found = connection.execute(select(COPIES).where(columns.supervisor_id == owner)).mappings()
    row = found.first()
    if row is None:
        return {**counts, "lost": 0, "set_aside": 0}, BEGINNING
    cursor = Cursor(
        events=row["events_seq"] or 0, audit=row["audit_position"] or 0, jobs=row["jobs_rev"] or 0
    )
    return {**counts, "lost": row["lost"] or 0, "set_aside": row["set_aside"] or 0}, cursor


def _count(connection: Connection, table: Any, owner: str) -> int:
    asked = select(func.count()).select_from(table).where(table.c.supervisor_id == owner)
    return connection.scalar(asked) or 0
