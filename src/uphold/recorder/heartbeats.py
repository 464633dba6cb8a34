"""The rows that read like a status page: `workers_t` and `supervisors_t` of a shared database.

They are made from one document of `status`, so they agree with each other, and are written in one
transaction. Several supervisors may share the tables: a row that another live one owns is left
alone and reported. Failures are `StoreUnavailable`, and the caller's to bear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite

from uphold.core.names import is_companion
from uphold.core.statuses import SupervisorStatus
from uphold.core.supervisors import INTERVAL_KEY, REASON_KEY, SupervisorRow, judge
from uphold.core.times import utc_text
from uphold.errors import Malformed
from uphold.recorder.connecting import Store
from uphold.recorder.schema import SUPERVISORS, WORKERS
from uphold.recorder.summaries import (
    cut,
    supervisor_details,
    supervisor_summary,
    worker_details,
    worker_summary,
)
from uphold.wire.codecs import decode, encode

_AT_ONCE: Final = 250
"""Rows in one statement: few round trips, and far below every limit of a server."""
_MOST_NAMED: Final = 50
"""Beyond so many touched workers it is simpler to look at all rows of ours."""
_ENDED: Final = frozenset({SupervisorStatus.TERMINATED, SupervisorStatus.FAILED})

Row = dict[str, Any]


class Clash(NamedTuple):
    """A row that another supervisor owns, which lives: it was not written."""

    worker_id: str
    owner_id: str
    owner_name: str

    @property
    def message(self) -> str:
        """Say what is wrong."""
        owner = f"'{self.owner_name}' ({self.owner_id})" if self.owner_name else self.owner_id
        return f"the row '{self.worker_id}' belongs to the supervisor {owner}, which lives."

    @property
    def remedy(self) -> str:
        """Say what to do."""
        what = "[supervisor] name" if self.worker_id.startswith("supervisor_") else "the worker"
        return f"Names are unique in a shared database: rename {what} here or there."


class Written(NamedTuple):
    """What became of it."""

    rows: int
    removed: int
    clashes: tuple[Clash, ...] = ()


class _Owners(NamedTuple):
    """Who else stands in the rows we want to write."""

    succeeded: frozenset[str]
    """Those who are silent or ended: their rows become ours."""
    clashes: tuple[Clash, ...]


def introduce(store: Store, document: Mapping[str, Any], wall: float) -> None:
    """Make the row in `supervisors_t` if there is none; afterwards it is only updated."""
    about = document["supervisor"]
    row = {
        **_supervisor_values(document, wall),
        "id": about["id"],
        "hierarchy_level": 0,
        "created_at": utc_text(wall),
    }
    with store.begin() as connection:
        insert = _insert(store, SUPERVISORS)
        if store.dialect == "mysql":
            same = [("id", SUPERVISORS.c.id)]
            connection.execute(insert.values(row).on_duplicate_key_update(same))
        else:
            connection.execute(insert.values(row).on_conflict_do_nothing())


def write_rows(
    store: Store, document: Mapping[str, Any], touched: set[str] | None, wall: float
) -> Written:
    """Write the supervisor's rows and those of the touched workers (None: all), all or none.

    Rows of ours whose workers are gone from the document go. A supervisor without a row in
    `supervisors_t` is tolerated (O-28, O-33): somebody removed it, and it is not made again.
    """
    about = document["supervisor"]
    own = str(about["id"])
    rows = list(_rows_of(document, touched, wall))
    with store.begin() as connection:
        owners = _owners(connection, own, [row["worker_id"] for row in rows], wall)
        lost = {clash.worker_id for clash in owners.clashes}
        mine = [row for row in rows if row["worker_id"] not in lost]
        for some in _slices(mine):
            _put(store, connection, some, own, owners.succeeded)
        removed = _remove_gone(connection, own, document, touched)
        statement = update(SUPERVISORS).where(SUPERVISORS.c.id == own)
        connection.execute(statement.values(_supervisor_values(document, wall)))
    return Written(rows=len(mine), removed=removed, clashes=owners.clashes)


def _rows_of(document: Mapping[str, Any], touched: set[str] | None, wall: float) -> Iterator[Row]:
    """Give the rows to be written, in the order of their keys: whoever locks, locks alike."""
    about, workers = document["supervisor"], _visible(document)
    rows = [
        _worker_row(about, row)
        for row in workers
        if touched is None or row["name"] in touched or row["slot"] in touched
    ]
    rows.append(_own_row(document, wall))
    yield from sorted(rows, key=lambda row: str(row["worker_id"]))


def _visible(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Leave out companions: every supervisor has the same ones, and they would clash."""
    return [row for row in document["workers"] if not is_companion(str(row["name"]))]


def _worker_row(about: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    remote = row["kind"] == "remote"
    # Who beats is known by that: a process that merely exists may hang.
    beat = row.get("last_heartbeat_at") or (None if remote else row.get("last_health_at"))
    return {
        "worker_id": row["slot"],
        "last_heartbeat_at": beat,
        "pid": row.get("pid"),
        "hostname": None if remote else about.get("host"),
        "status": row.get("condition"),
        "poll_seconds": row.get("poll_seconds"),
        "status_summary": cut(worker_summary(row)),
        "supervisor_id": str(about["id"]),
        "kind": row["kind"],
        "team": row.get("team"),
        "state": row["state"],
        "health": row["health"],
        "generation": row.get("generation"),
        "restarts": row.get("restarts"),
        "details": worker_details(row),
    }


def _own_row(document: Mapping[str, Any], wall: float) -> Row:
    about, workers = document["supervisor"], document["workers"]
    ended = about.get("status") in _ENDED
    return {
        "worker_id": f"supervisor_{about['name']}",
        "last_heartbeat_at": _beat_of(about, wall),
        "pid": None if ended else about.get("pid"),
        "hostname": about.get("host"),
        "status": about.get("status"),
        "poll_seconds": about.get(INTERVAL_KEY),
        "status_summary": cut(supervisor_summary(about, workers)),
        "supervisor_id": str(about["id"]),
        "kind": "supervisor",
        "team": None,
        "state": "stopped" if ended else "running",
        "health": about.get("health"),
        "generation": None,
        "restarts": None,
        "details": supervisor_details(about, workers),
    }


def _supervisor_values(document: Mapping[str, Any], wall: float) -> Row:
    about = document["supervisor"]
    states: dict[str, int] = {}
    for row in _visible(document):
        states[str(row["state"])] = states.get(str(row["state"]), 0) + 1
    metrics: Row = {
        INTERVAL_KEY: about.get(INTERVAL_KEY),
        "loop_lag": about.get("loop_lag"),
        "workers": dict(sorted(states.items())),
        "pending": (document.get("store") or {}).get("pending"),
    }
    error = about.get("last_error")
    if isinstance(error, Mapping):
        metrics |= {"code": error.get("code"), REASON_KEY: error.get("message")}
    values = {
        "name": about["name"],
        "status": about.get("status"),
        "config": about.get("config"),
        "updated_at": utc_text(wall),
        "last_heartbeat": _beat_of(about, wall),
        "health_metrics": encode(metrics).decode(),
    }
    return {key: value for key, value in values.items() if value is not None}


def _beat_of(about: Mapping[str, Any], wall: float) -> str | None:
    """Say when it last lived: now, as it has just answered, unless the document knows better."""
    told = about.get("last_heartbeat")
    if about.get("status") in _ENDED or told is not None:
        return None if told is None else str(told)
    return utc_text(wall)


def _owners(connection: Connection, own: str, wanted: Sequence[str], wall: float) -> _Owners:
    foreign: dict[str, str] = {}
    for some in _slices(wanted):
        found = select(WORKERS.c.worker_id, WORKERS.c.supervisor_id)
        asked = found.where(WORKERS.c.worker_id.in_(some), WORKERS.c.supervisor_id != own)
        foreign.update((worker_id, owner) for worker_id, owner in connection.execute(asked))
    alive = {
        owner: row.name
        for owner, row in _known(connection, set(foreign.values())).items()
        if not (judged := judge(row, wall)).gone and judged.age is not None
    }
    return _Owners(
        succeeded=frozenset(foreign.values()) - frozenset(alive),
        clashes=tuple(
            Clash(worker_id, owner, alive[owner])
            for worker_id, owner in sorted(foreign.items())
            if owner in alive
        ),
    )


def _known(connection: Connection, ids: set[str]) -> dict[str, SupervisorRow]:
    """Find what tells of these supervisors: their rows, or for lack of them what they left."""
    if not ids:
        return {}
    latest = select(WORKERS.c.supervisor_id, func.max(WORKERS.c.last_heartbeat_at))
    left = connection.execute(
        latest.where(WORKERS.c.supervisor_id.in_(sorted(ids))).group_by(WORKERS.c.supervisor_id)
    )
    known = {
        owner: SupervisorRow(id=owner, status="active", last_heartbeat=beat) for owner, beat in left
    }
    rows = connection.execute(select(SUPERVISORS).where(SUPERVISORS.c.id.in_(sorted(ids))))
    for row in rows.mappings():
        # One that has not beaten yet lives from when it introduced itself.
        beat = row["last_heartbeat"] or row["updated_at"] or row["created_at"]
        known[row["id"]] = replace(row_of(dict(row)), last_heartbeat=beat)
    return known


def row_of(row: Mapping[str, Any]) -> SupervisorRow:
    """Take from a row of `supervisors_t` what says how its supervisor does."""
    return SupervisorRow(
        id=row["id"],
        name=row["name"] or "",
        status=row["status"] or "",
        last_heartbeat=row["last_heartbeat"],
        metrics=metrics_in(row["health_metrics"]),
    )


def metrics_in(text: str | None) -> dict[str, object]:
    """Read the metrics of a row; nothing if somebody else wrote something else there."""
    try:
        return decode(dict, text or "{}")
    except Malformed:
        return {}


def _put(
    store: Store, connection: Connection, rows: Sequence[Row], own: str, succeeded: frozenset[str]
) -> None:
    """Insert or update; a row that got another owner meanwhile keeps it."""
    ours: ColumnElement[bool] = or_(
        WORKERS.c.supervisor_id.is_(None), WORKERS.c.supervisor_id.in_([own, *sorted(succeeded)])
    )
    insert = _insert(store, WORKERS).values(list(rows))
    # Whose it is comes last: MySQL changes one column after the other.
    names = [name for name in rows[0] if name not in ("worker_id", "supervisor_id")]
    names.append("supervisor_id")
    if store.dialect == "mysql":
        changes = [
            (name, case((ours, insert.inserted[name]), else_=WORKERS.c[name])) for name in names
        ]
        connection.execute(insert.on_duplicate_key_update(changes))
        return
    changed = {name: insert.excluded[name] for name in names}
    connection.execute(
        insert.on_conflict_do_update(index_elements=["worker_id"], set_=changed, where=ours)
    )


def _insert(store: Store, table: Any) -> Any:
    dialects = {"mysql": mysql, "postgresql": postgresql, "sqlite": sqlite}
    return dialects[store.dialect].insert(table)


def _remove_gone(
    connection: Connection, own: str, document: Mapping[str, Any], touched: set[str] | None
) -> int:
    about = document["supervisor"]
    if about.get("status") in _ENDED:
        return 0  # a journal knows of slots, not of workers that never ran: they stay as they were
    there = {str(row["slot"]) for row in _visible(document)} | {f"supervisor_{about['name']}"}
    asked = select(WORKERS.c.worker_id).where(WORKERS.c.supervisor_id == own)
    if touched is not None and len(touched) <= _MOST_NAMED:
        names = sorted(name for name in touched if not is_companion(name))
        if not names:
            return 0
        # Slots of a worker are NAME, NAME.2, NAME.3, …
        which = [WORKERS.c.worker_id.startswith(f"{name}.", autoescape=True) for name in names]
        asked = asked.where(or_(WORKERS.c.worker_id.in_(names), *which))
    gone = sorted({name for (name,) in connection.execute(asked)} - there)
    for some in _slices(gone):
        connection.execute(
            delete(WORKERS).where(WORKERS.c.worker_id.in_(some), WORKERS.c.supervisor_id == own)
        )
    return len(gone)


def _slices(items: Iterable[Any]) -> Iterator[list[Any]]:
    listed = list(items)
    for begin in range(0, len(listed), _AT_ONCE):
        yield listed[begin : begin + _AT_ONCE]
