"""Copying the journal to the shared database: in order, in batches, no row twice.

How far the copy has come stands in the shared database itself (`copies_t`), changed in the same
transaction as the rows. Whoever dies when: what was committed is never copied again, and what was
not is. Keys make sure besides that a row that comes again stays one row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Executable, Table, insert, select, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from uphold.core.times import utc_text
from uphold.errors import StoreUnavailable
from uphold.journal.outgoing import BEGINNING, Cursor, Outgoing
from uphold.recorder.connecting import Store
from uphold.recorder.fitting import Fitting, Row, look_at, plain
from uphold.recorder.migrating import migrate
from uphold.recorder.refusals import Refusals
from uphold.recorder.schema import AUDIT, COPIES, EVENTS, JOBS
from uphold.recorder.statements import add_once, add_or_replace

AT_ONCE: Final = 2_000
"""Rows of each table in one transaction."""
_CHECKS: Final = frozenset({1644, 3819, 4025, "P0001"})
"""What a check or a trigger of somebody else's says to a row; drivers know no class for it."""
_ASKED: Final = 500
"""Keys in one question."""
_SOME: Final = 3
"""If all of so many rows are refused, it is not the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far one supervisor's copy has come, and what it cost."""

    cursor: Cursor = BEGINNING
    lost: int = 0
    set_aside: int = 0


class Step(NamedTuple):
    """What one transaction copied, and how far the copy has come by it."""

    rows: int
    full: bool
    """Whether there may be more."""
    place: Place


class Copier:
    """Copies one journal to one database."""

    def __init__(
        self,
        store: Store,
        journal: Path,
        *,
        wall: Callable[[], float],
        refusals: Refusals,
        say: Callable[[str], None],
    ) -> None:
        self._store = store
        self._journal = journal
        self._wall = wall
        self._refusals = refusals
        self._say = say
        self._fitting: Fitting | None = None
        self._statements: dict[str, Executable] = {}
        self._owner = ""

    def prepare(self) -> None:
        """Bring the tables up to date and learn what fits into them; StoreUnavailable if not."""
        for change in migrate(self._store, self._wall()):
            self._say(f"the shared database: {change}")
        dialect = self._store.dialect
        with self._store.begin() as connection:
            self._fitting = look_at(connection, dialect, [EVENTS, AUDIT, JOBS])
            self._statements = {
                EVENTS.name: add_once(dialect, EVENTS),
                AUDIT.name: add_once(dialect, AUDIT),
                JOBS.name: add_or_replace(dialect, JOBS),
            }

    def copy(self, at_once: int = AT_ONCE) -> Step:
        """Copy the next rows in one transaction, and note in it how far that is."""
        self._prepare_once()
        with self._store.begin() as connection, Outgoing(self._journal) as journal:
            owner = self._owner_of(journal)
            before = place_of(connection, owner)
            cursor = journal.resumed(before.cursor)
            if cursor.events < before.cursor.events:
                self._say("the journal has begun anew: all of it is copied")
            rows, after = self._put(connection, journal, cursor, at_once)
            lost = _lost(cursor, rows["events"], journal.skipped_to())
            if lost:
                self._say(f"{lost} events were gone before they could be copied")
            place = Place(
                cursor=after,
                lost=before.lost + lost,
                set_aside=before.set_aside + self._refusals.take_count(),
            )
            if place != before:
                _keep(connection, owner, place, self._wall())
        counts = [len(each) for each in rows.values()]
        return Step(sum(counts), _more(journal_rows=rows, at_once=at_once), place)

    def replay(self, after: Cursor, at_once: int = AT_ONCE) -> tuple[Step, Cursor]:
        """Copy again what the journal still has after a place; the noted one stays as it is."""
        self._prepare_once()
        with self._store.begin() as connection, Outgoing(self._journal) as journal:
            owner = self._owner_of(journal)
            # Held meanwhile: a job must not be replaced by what it was before.
            place = place_of(connection, owner)
            rows, reached = self._put(connection, journal, after, at_once)
            refused = self._refusals.take_count()
            if refused:
                place = replace(place, set_aside=place.set_aside + refused)
                _keep(connection, owner, place, self._wall())
        counts = [len(each) for each in rows.values()]
        return Step(sum(counts), _more(journal_rows=rows, at_once=at_once), place), reached

    def forget(self) -> None:
        """Look again at the tables before the next copy: the database was away, or is another."""
        self._fitting = None

    def _prepare_once(self) -> None:
        if self._fitting is None:
            self.prepare()

    def _owner_of(self, journal: Outgoing) -> str:
        if not self._owner:
            self._owner = journal.supervisor_id()
        if not self._owner:
            raise StoreUnavailable(
                f"the journal {self._journal} does not say whose it is.",
                code="UPH_JOURNAL_UNAVAILABLE",
                remedy="Start the supervisor once; it writes that down.",
            )
        return self._owner

    def _put(
        self, connection: Connection, journal: Outgoing, cursor: Cursor, at_once: int
    ) -> tuple[dict[str, list[Any]], Cursor]:
        upto = journal.durable()
        audit = journal.audit_after(cursor.audit, upto.audit, at_once)
        events = journal.events_after(cursor.events, upto.events, at_once)
        jobs = journal.jobs_after(cursor.jobs, upto.jobs, at_once)
        owned = {"supervisor_id": self._owner}
        lines = [{**owned, **dict(row)} for row in audit]
        self._add(connection, AUDIT, _told_apart(connection, self._owner, lines))
        self._add(connection, EVENTS, [{**owned, **dict(row)} for row in events])
        self._add(connection, JOBS, [_without_rev(row) for row in jobs])
        after = Cursor(
            events=events[-1]["seq"] if events else cursor.events,
            event_id=events[-1]["id"] if events else cursor.event_id,
            audit=audit[-1]["position"] if audit else cursor.audit,
            audit_id=audit[-1]["audit_id"] if audit else cursor.audit_id,
            jobs=jobs[-1]["rev"] if jobs else cursor.jobs,
        )
        return {"audit": audit, "events": events, "jobs": jobs}, after

    def _add(self, connection: Connection, table: Table, rows: list[Row]) -> None:
        assert self._fitting is not None
        for row in rows:
            if cut := self._fitting.fit(table.name, row):
                key = row[table.primary_key.columns[0].name]
                self._say(f"cut {', '.join(cut)} of {key} to fit into {table.name}")
        if rows:
            refused = self._add_all(connection, table, rows)
            if len(refused) == len(rows) >= _SOME:
                raise refused[0][1]  # the table is at fault: nothing is set aside, and it is told
            for row, cause in refused:
                self._refusals.set_aside(table.name, row, cause)

    def _add_all(
        self, connection: Connection, table: Table, rows: Sequence[Row]
    ) -> list[tuple[Row, DBAPIError]]:
        """Add rows; those that are refused for themselves are given back, the others stand."""
        try:
            with connection.begin_nested():
                connection.execute(self._statements[table.name], rows)
        except DBAPIError as cause:
            if not _is_rows_fault(cause):
                raise
            if len(rows) == 1:
                return self._add_plainly(connection, table, rows[0], cause)
            half = len(rows) // 2
            return [
                *self._add_all(connection, table, rows[:half]),
                *self._add_all(connection, table, rows[half:]),
            ]
        return []

    def _add_plainly(
        self, connection: Connection, table: Table, row: Row, first: DBAPIError
    ) -> list[tuple[Row, DBAPIError]]:
        simple = plain(row)
        if simple == row or self._fitting is None:
            return [(row, first)]
        self._fitting.fit(table.name, simple)  # it has become longer
        try:
            with connection.begin_nested():
                connection.execute(self._statements[table.name], [simple])
        except DBAPIError as cause:
            if not _is_rows_fault(cause):
                raise
            return [(row, cause)]
        return []


def _is_rows_fault(cause: DBAPIError) -> bool:
    """Tell whether a row was refused for itself, and not for what is around it."""
    if isinstance(cause, DataError | IntegrityError):
        return True
    said = cause.orig
    number = said.args[0] if said is not None and said.args else None
    return bool({number, getattr(said, "sqlstate", None)} & _CHECKS)


def place_of(connection: Connection, owner: str) -> Place:
    """Read how far a supervisor's copy has come, and keep others from copying it meanwhile."""
    columns = COPIES.c
    found = connection.execute(
        select(COPIES).where(columns.supervisor_id == owner).with_for_update()
    ).first()
    if found is None:
        connection.execute(insert(COPIES), {"supervisor_id": owner, **_columns_of(Place())})
        return Place()
    row = found._mapping  # noqa: SLF001 - the documented way to read a row by names
    return Place(
        cursor=Cursor(
            events=row["events_seq"] or 0,
            event_id=row["event_id"] or "",
            audit=row["audit_position"] or 0,
            audit_id=row["audit_id"] or "",
            jobs=row["jobs_rev"] or 0,
        ),
        lost=row["lost"] or 0,
        set_aside=row["set_aside"] or 0,
    )


def _keep(connection: Connection, owner: str, place: Place, wall: float) -> None:
    connection.execute(
        update(COPIES).where(COPIES.c.supervisor_id == owner),
        {**_columns_of(place), "updated_at": utc_text(wall)},
    )


def _columns_of(place: Place) -> dict[str, object]:
    return {
        "events_seq": place.cursor.events,
        "event_id": place.cursor.event_id,
        "audit_position": place.cursor.audit,
        "audit_id": place.cursor.audit_id,
        "jobs_rev": place.cursor.jobs,
        "lost": place.lost,
        "set_aside": place.set_aside,
    }


def _told_apart(connection: Connection, owner: str, lines: list[Row]) -> list[Row]:
    """Give another key to lines whose key another supervisor has taken: none may be left out.

    Ids of orders are made of the second and four characters, so that is rare, and possible.
    """
    taken: set[str] = set()
    for begin in range(0, len(lines), _ASKED):
        ids = [line["audit_id"] for line in lines[begin : begin + _ASKED]]
        others = select(AUDIT.c.audit_id).where(
            AUDIT.c.audit_id.in_(ids), AUDIT.c.supervisor_id != owner
        )
        taken.update(connection.scalars(others))
    for line in lines if taken else ():
        if line["audit_id"] in taken:
            line["audit_id"] = f"{line['audit_id']}@{owner[:8]}"
    return lines


def _without_rev(row: Any) -> Row:
    made = dict(row)
    del made["rev"]
    return made


def _more(*, journal_rows: dict[str, list[Any]], at_once: int) -> bool:
    """Tell whether there may be more: a batch was full, or cut short since its rows are large."""
    return any(len(each) >= at_once or (each and _is_large(each)) for each in journal_rows.values())


def _is_large(rows: Iterable[Any]) -> bool:
    size = sum(len(value) for row in rows for value in row if isinstance(value, str))
    return size > 1_000_000


def _lost(cursor: Cursor, rows: Sequence[Any], skipped_to: int) -> int:
    """Count the events between the last copied one and these that the journal no longer has.

    What it never had is not counted: numbers skipped after a power cut, and what an event of
    type `gap` tells of. That is in the copy too.
    """
    if not cursor.event_id:
        return 0  # the first copy: what was before the journal's beginning was never ours
    told = [_gap(row) for row in rows if row["type"] == "gap"]
    lost, last = 0, cursor.events
    for row in rows:
        seq = row["seq"]
        if seq > last + 1 and seq != skipped_to + 1:
            missing = range(last + 1, seq)
            covered = max((_overlap(missing, each) for each in told), default=0)
            lost += len(missing) - covered
        last = seq
    return lost


def _gap(row: Any) -> range:
    try:
        payload = json.loads(row["payload"])
        return range(int(payload["from_seq"]), int(payload["to_seq"]) + 1)
    except (ValueError, TypeError, KeyError):
        return range(0)


def _overlap(one: range, other: range) -> int:
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))
