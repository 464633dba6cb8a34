"""Bringing a journal's tables up to date, one numbered step per transaction.

Tables that are there with fewer columns are extended; nothing is ever dropped. A journal that
a newer uphold has changed is still used if all those changes only added something; otherwise
it is refused with a sentence, and left as it is.
"""

from __future__ import annotations

import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from collections.abc import Callable
from typing import Final, NamedTuple

from uphold.core.times import utc_text
from uphold.errors import StoreUnavailable
from uphold.journal.tables import (
    APPLICATION_ID,
    EXTRAS,
    MIGRATIONS_TABLE,
    SECOND_COLUMNS,
    SECOND_EXTRAS,
    TABLES,
)


class Migration(NamedTuple):
    """One numbered step. `additive`: a version that does not know it can work beside it."""

    version: int
    name: str
    additive: bool
    run: Callable[[sqlite3.Connection], None]


def migrate(
    connection: sqlite3.Connection, now: float, steps: tuple[Migration, ...] | None = None
) -> None:
    """Run what has not run yet; StoreUnavailable if a newer uphold changed what we rely on."""
    connection.execute(MIGRATIONS_TABLE)
    known = MIGRATIONS if steps is None else steps
    done = _done(connection)
    refuse_newer(done, known)
    for step in known:
        if step.version not in done:
            _run(connection, step, now)


def refuse_newer(done: dict[int, bool], known: tuple[Migration, ...]) -> None:
    """Raise StoreUnavailable for steps we do not know and that changed more than they added."""
    ours = {step.version for step in known}
    foreign = sorted(version for version, additive in done.items() if not additive)
    unknown = [version for version in foreign if version not in ours]
    if unknown:
        raise StoreUnavailable(
            f"the journal was changed by a newer uphold (step {unknown[-1]},"
            f" this one knows up to {max(ours)}).",
            code="UPH_JOURNAL_NEWER",
            remedy="Run the newer uphold again, or give this one another home.",
        )


def _done(connection: sqlite3.Connection) -> dict[int, bool]:
    rows = connection.execute("SELECT version, additive FROM schema_migrations_t")
    return {version: bool(additive) for version, additive in rows}


def _run(connection: sqlite3.Connection, step: Migration, now: float) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        step.run(connection)
        connection.execute(
            "INSERT INTO schema_migrations_t (version, name, applied_at, additive)"
            " VALUES (?, ?, ?, ?)",
            (step.version, step.name, utc_text(now), int(step.additive)),
        )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _first(connection: sqlite3.Connection) -> None:
    """Make the tables of the core, or extend those that are there."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for table, columns in TABLES.items():
        body = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({body})")
        extend(connection, table, columns)
    for statement in EXTRAS:
        connection.execute(statement)


def _second(connection: sqlite3.Connection) -> None:
    """Have changes of jobs numbered, and number those of the past in their order."""
    for table, columns in SECOND_COLUMNS.items():
        extend(connection, table, columns)
    past = connection.execute("SELECT rowid FROM jobs_t ORDER BY updated_at, rowid").fetchall()
    numbered = [(number, rowid) for number, (rowid,) in enumerate(past, start=1)]
    connection.executemany("UPDATE jobs_t SET rev = ? WHERE rowid = ?", numbered)
    for statement in SECOND_EXTRAS:
        connection.execute(statement)


def extend(connection: sqlite3.Connection, table: str, columns: dict[str, str]) -> None:
    """Add the columns a table does not have yet."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    for name, kind in columns.items():
        if name not in there:
            connection.execute(
                f"ALTER TABLE {table} ADD COLUMN {name} {kind.removesuffix(' PRIMARY KEY')}"
            )


MIGRATIONS: Final[tuple[Migration, ...]] = (
    Migration(1, "tables of the core", False, _first),
    Migration(2, "changes of jobs are numbered", True, _second),
)
