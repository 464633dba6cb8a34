"""Reading a journal from outside: while its supervisor writes, and while there is none.

A reader never creates or changes anything. What it gives are plain mappings with the names of
the public interface. Only the standard library is used, so that the command line stays quick.
"""

from __future__ import annotations

import json
import os
import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from typing import TYPE_CHECKING, Any, Final, Self

from uphold.core.names import worker_of
from uphold.core.times import utc_text
from uphold.errors import EXIT_NOT_PERMITTED, StoreUnavailable
from uphold.journal.connecting import connect_reading, reads_still, unavailable
from uphold.journal.queries import (
    AUDIT,
    AUDIT_CHAIN,
    EVENTS,
    JOBS,
    META,
    OVERRIDES,
    SLOTS,
    STEPS,
    UNRESTRICTED,
)
from uphold.journal.tables import OWN_KEYS, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    Question = tuple[str, Mapping[str, object]]
    Shape = dict[str, object]

_BY_EFFECT: Final = os.access in os.supports_effective_ids


class JournalReader:
    """Looks into one journal. Not for use by several threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._connection: sqlite3.Connection | None = None
        self._still = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def events(  # noqa: PLR0913 - a search form
        self,
        *,
        after_seq: int | None = None,
        since: float | None = None,
        until: float | None = None,
        worker: str | None = None,
        types: Sequence[str] | None = None,
        severities: Sequence[str] | None = None,
        cause: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Shape]:
        """Find recorded events as envelopes. Times are seconds of wall time, types patterns."""
        values = UNRESTRICTED | {
            "after_seq": after_seq,
            "since": _text(since),
            "until": _text(until),
            "worker": worker,
            "types": _listed(types),
            "severities": _listed(severities),
            "cause": cause,
            "limit": limit,
        }
        question = EVENTS[worker is not None, newest_first]
        return [event_shape(row) for row in self._rows(question, values)]

    def audit(  # noqa: PLR0913 - a search form
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        targets: Sequence[str] | None = None,
        actor: str | None = None,
        actions: Sequence[str] | None = None,
        label: str | None = None,
        cause: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Shape]:
        """Find lines of the audit. `cause` is an order: it, its refusal and its outcome."""
        values = UNRESTRICTED | {
            "since": _text(since),
            "until": _text(until),
            "targets": _listed(targets),
            "actor": actor,
            "actions": _listed(actions),
            "label": label,
            "cause": cause,
            "limit": limit,
        }
        return [_audit_shape(row) for row in self._rows(AUDIT[newest_first], values)]

    def jobs(  # noqa: PLR0913 - a search form
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        states: Sequence[str] | None = None,
        targets: Sequence[str] | None = None,
        actions: Sequence[str] | None = None,
        label: str | None = None,
        cause: str | None = None,
        task_id: str | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Shape]:
        """Find jobs, by the time they were created. `cause` is the order, which is the job."""
        values = UNRESTRICTED | {
            "since": _text(since),
            "until": _text(until),
            "states": _listed(states),
            "targets": _listed(targets),
            "actions": _listed(actions),
            "label": label,
            "cause": cause,
            "task_id": task_id,
            "limit": limit,
        }
        return [dict(row) for row in self._rows(JOBS[newest_first], values)]

    def slots(self) -> list[Shape]:
        """Give the last known row of every slot, with what proves or disproves its life."""
        return [_slot_shape(row) for row in self._rows(SLOTS)]

    def overrides(self) -> dict[str, Any]:
        """Give what people have ordered beside the configuration, by worker."""
        rows = self._rows(OVERRIDES)
        return {row["worker"]: _parsed(row["override"]) for row in rows}

    def meta(self) -> dict[str, str]:
        """Give the single facts of the supervisor."""
        rows = self._rows(META)
        return {row["key"]: row["value"] for row in rows if not row["key"].startswith(OWN_KEYS)}

    def own_meta(self) -> dict[str, str]:
        """Give the single facts of the journal itself."""
        rows = self._rows(META)
        return {row["key"]: row["value"] for row in rows if row["key"].startswith(OWN_KEYS)}

    def refuse_newer(self) -> None:
        """Raise StoreUnavailable if a newer uphold changed what we rely on."""
        from uphold.journal.migrations import (  # noqa: PLC0415 - only who means to write asks
            MIGRATIONS,
            refuse_newer,
        )

        rows = self._rows(STEPS)
        refuse_newer({row["version"]: bool(row["additive"]) for row in rows}, MIGRATIONS)

    def audit_rows(self) -> Iterator[sqlite3.Row]:
        """Give every line of the audit as it is stored, in the order of the chain."""
        return iter(self._rows(AUDIT_CHAIN))

    def audit_chain(self) -> tuple[dict[str, str], list[sqlite3.Row]]:
        """Give the lines of the audit and the journal's own facts as of one moment."""
        facts, rows = self._ask([(META, {}), (AUDIT_CHAIN, {})])
        return {row["key"]: row["value"] for row in facts}, rows

    def _rows(
        self, statement: str, values: Mapping[str, object] | None = None
    ) -> list[sqlite3.Row]:
        return self._ask([(statement, values or {})])[0]

    def _ask(self, questions: Sequence[Question]) -> list[list[sqlite3.Row]]:
        try:
            answers = self._ask_once(questions)
        except sqlite3.Error as cause:
            if not self._moved():
                raise self._refusal(cause) from cause
        else:
            if not self._moved():
                return answers
        # A supervisor came up while we read a resting file: what we saw may be torn.
        self.close()
        try:
            return self._ask_once(questions)
        except sqlite3.Error as cause:
            raise self._refusal(cause) from cause

    def _ask_once(self, questions: Sequence[Question]) -> list[list[sqlite3.Row]]:
        """Answer all questions as of the same moment."""
        connection = self._connected()
        connection.execute("BEGIN")
        try:
            return [self._fetched(connection.execute(*question)) for question in questions]
        finally:
            connection.rollback()

    def _fetched(self, found: sqlite3.Cursor) -> list[sqlite3.Row]:
        return found.fetchall()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._refuse_unreadable()
            self._still = reads_still(self._path)
            self._connection = connect_reading(self._path)
        return self._connection

    def _refuse_unreadable(self) -> None:
        try:
            self._path.stat()
            readable = os.access(self._path, os.R_OK, effective_ids=_BY_EFFECT)
        except (FileNotFoundError, NotADirectoryError):
            raise StoreUnavailable(
                f"there is no journal at {self._path}.",
                code="UPH_JOURNAL_MISSING",
                remedy="Has a supervisor ever run here? Check --home, or run uphold start.",
            ) from None
        except OSError:
            readable = False
        if not readable:
            raise StoreUnavailable(
                f"cannot use the journal {self._path}: permission is denied.",
                remedy="Only the owner of the home may read it: ask as that user, or as root.",
                exit_code=EXIT_NOT_PERMITTED,
            )

    def _moved(self) -> bool:
        return self._still and not reads_still(self._path)

    def _refusal(self, cause: sqlite3.Error) -> StoreUnavailable:
        self.close()
        return unavailable(self._path, cause)


def event_shape(row: Any) -> Shape:
    """Give an envelope from the columns of an event, in their order."""
    shape = dict(zip(TABLES["events_t"], row, strict=True))
    shape["payload"] = _parsed(row[7])
    return shape


def _audit_shape(row: sqlite3.Row) -> Shape:
    shape = dict(row)
    details = shape.pop("details_json")
    return {**shape, "details": _parsed(details)}


def _slot_shape(row: sqlite3.Row) -> Shape:
    """Give what is known about a slot. Its nonce and its environment stay inside."""
    record = _table(_parsed(row["record"]))
    identity = _table(record.get("identity"))
    terms = _table(record.get("terms"))
    ended = _table(record.get("exit"))
    return {
        "slot": row["slot"],
        "name": worker_of(row["slot"]),
        "kind": terms.get("kind", "process"),
        "team": terms.get("team"),
        "state": row["state"],
        "generation": row["generation"],
        "pid": identity.get("pid"),
        "start_ticks": identity.get("start_ticks"),
        "boot_id": identity.get("boot_id"),
        "inode": identity.get("inode"),
        "since": _moment(record.get("since_wall")),
        "started_at": _moment(record.get("started_wall")),
        "last_heartbeat_at": _moment(record.get("proved_wall")),
        "failures": record.get("failures", 0),
        "restarts": record.get("restarts", 0),
        "exit": None if not ended else {**ended, "at": _moment(ended.get("at"))},
        "last_error": record.get("error"),
        "why": record.get("why", ""),
    }


def _parsed(text: str | None) -> Any:
    """Read JSON from a column; what is broken is shown as it stands instead of hiding the rest."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


def _table(value: object) -> dict[str, Any]:
    """Take a table from a row; whoever damaged it may have put anything there."""
    return value if isinstance(value, dict) else {}


def _listed(words: Sequence[str] | None) -> str | None:
    return None if words is None else json.dumps(list(words))


def _text(wall: float | None) -> str | None:
    return None if wall is None else utc_text(wall)


def _moment(wall: float | None) -> str | None:
    try:
        return utc_text(wall) if wall else None
    except (ValueError, OverflowError, OSError, TypeError):
        return None
