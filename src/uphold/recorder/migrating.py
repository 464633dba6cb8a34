"""Bringing the tables of a shared database up to date, by numbered steps.

What is missing is found by comparing, so a table that somebody dropped is made again, and one
that was there before us is extended; nothing is ever dropped. Steps are recorded in
`schema_migrations_t` as in the journal, and say whether an older uphold can work beside them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, func, insert, inspect, literal, select
from sqlalchemy.exc import DBAPIError

from uphold.core.times import utc_text
from uphold.errors import StoreUnavailable
from uphold.recorder.comparing import Change, Comparison, compare, home_of
from uphold.recorder.connecting import Store
from uphold.recorder.failures import SCHEMA, TIMEOUT, failure
from uphold.recorder.schema import MIGRATIONS

_JOURNAL: Final = 0x75706864
"""Marks an SQLite file as a journal."""


class Step(NamedTuple):
    """One numbered step. `additive`: a version that does not know it can work beside it."""

    version: int
    name: str
    additive: bool


STEPS: Final = (Step(1, "tables of the shared database", True),)


def pending(store: Store) -> list[str]:
    """Say what a migration would do, without doing it."""
    with store.begin() as connection:
        return [change.text for change in _changes(store, connection)]


def migrate(store: Store, wall: float) -> list[str]:
    """Add what is missing and say what it was; safe when several do it at once."""
    if not pending(store):
        return []
    with store.begin() as connection, _alone(store, connection):
        operations = Operations(MigrationContext.configure(connection))
        done = []
        for change in _changes(store, connection):
            _apply(store, change, operations)
            done.append(change.text)
        known = _recorded(connection)
        for step in STEPS:
            if step.version not in known:
                connection.execute(insert(MIGRATIONS), _row(step, wall))
        return done


def _apply(store: Store, change: Change, operations: Operations) -> None:
    try:
        change.apply(operations)
    except DBAPIError as cause:
        found = store.failure_of(cause)
        if found.code != SCHEMA:
            raise
        said = f"could not {change.text}: {cause.orig}"
        raise failure(SCHEMA, store.address, " ".join(said.split())) from cause


def _changes(store: Store, connection: Connection) -> list[Change]:
    """Find what is to be done; StoreUnavailable if it cannot be done by adding."""
    _refuse_wrong_places(store, connection)
    comparison = compare(connection)
    _refuse_problems(store, comparison)
    known = _recorded(connection)
    _refuse_others(store, known)
    steps = [
        Change(f"record step {step.version}, {step.name}", lambda _: None)
        for step in STEPS
        if step.version not in known
    ]
    return comparison.changes + steps


def _recorded(connection: Connection) -> dict[int, tuple[str, bool]]:
    """Read the steps that are recorded, also where somebody else's table lacks our columns."""
    found = inspect(connection)
    schema = home_of(found)
    if not found.has_table(MIGRATIONS.name, schema):
        return {}
    there = {each["name"] for each in found.get_columns(MIGRATIONS.name, schema)}
    wanted = [each for each in MIGRATIONS.columns if each.name in there]
    rows = connection.execute(select(*wanted)).mappings()
    return {row["version"]: (row.get("name") or "", bool(row.get("additive"))) for row in rows}


def _row(step: Step, wall: float) -> dict[str, object]:
    return {
        "version": step.version,
        "name": step.name,
        "applied_at": utc_text(wall),
        "additive": int(step.additive),
    }


def _refuse_wrong_places(store: Store, connection: Connection) -> None:
    if store.dialect == "postgresql":
        if connection.scalar(select(func.current_schema())) is None:
            said = "the search_path of the user names no schema that exists"
            remedy = "Create the schema, or set one: ALTER ROLE … SET search_path = …"
            raise failure(SCHEMA, store.address, said, remedy=remedy)
    elif store.dialect == "sqlite":
        mark = connection.exec_driver_sql("PRAGMA application_id").scalar()
        if mark == _JOURNAL:
            said = "the file is the journal of a supervisor itself"
            remedy = "Give the copy a file of its own in store.url."
            raise failure(SCHEMA, store.address, said, remedy=remedy)


def _refuse_problems(store: Store, comparison: Comparison) -> None:
    if comparison.problems:
        remedy = (
            "Another program's table stands there. Change the column, or give uphold a database"
            " (or, on PostgreSQL, a schema) of its own."
        )
        raise failure(SCHEMA, store.address, "; ".join(comparison.problems), remedy=remedy)


def _refuse_others(store: Store, known: dict[int, tuple[str, bool]]) -> None:
    ours = {step.version: step.name for step in STEPS}
    for version, (name, additive) in known.items():
        if ours.get(version, name) != name:
            said = f"{MIGRATIONS.name} has a step {version} that is not uphold's ({name!r})"
            raise failure(SCHEMA, store.address, said)
        if version not in ours and not additive:
            raise StoreUnavailable(
                f"the shared database at {store.address.shown} was changed by a newer uphold"
                f" (step {version}, this one knows up to {max(ours)}).",
                code="UPH_STORE_NEWER",
                remedy="Run the newer uphold here too, or give this one another database.",
            )


@contextmanager
def _alone(store: Store, connection: Connection) -> Iterator[None]:
    """Keep other migrations of this database out meanwhile. SQLite's transaction does already."""
    digest = hashlib.sha256(f"uphold {store.address.database}".encode())
    if store.dialect == "postgresql":
        # Until the end of the transaction, with everything that is changed in it.
        number = int.from_bytes(digest.digest()[:8], signed=True)
        connection.execute(select(func.pg_advisory_xact_lock(number)))
        yield
    elif store.dialect == "mysql":
        # Each change is a transaction of its own there; the lock is the session's.
        name = f"uphold_{digest.hexdigest()[:40]}"
        seconds = max(1, int(store.patience) - 1)
        if connection.scalar(select(func.get_lock(literal(name), seconds))) != 1:
            raise failure(TIMEOUT, store.address, "another migration is under way")
        try:
            yield
        except BaseException:
            store.close()  # and with its session the lock
            raise
        connection.execute(select(func.release_lock(literal(name))))
    else:
        yield
