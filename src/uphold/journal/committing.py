"""The one connection that writes, and its transactions. Used by one thread at a time."""

from __future__ import annotations

import os
import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.errors import Malformed, StoreUnavailable
from uphold.journal.audit import Link, append
from uphold.journal.connecting import BUSY_SECONDS, connect_writing
from uphold.journal.pruning import Keep, Stock, count_events, give_back, prune
from uphold.journal.queries import EVENTS, UNRESTRICTED
from uphold.journal.reading import event_shape
from uphold.journal.reserving import Headroom, Reserve
from uphold.journal.rows import INSERT_EVENT, UPSERT_JOB, UPSERT_SLOT, UPSERT_WORKER, Rows
from uphold.journal.spooling import EVERYTHING, copied_of
from uphold.journal.standing import prepare, resume
from uphold.journal.tables import (
    AUDIT_COUNT,
    AUDIT_HEAD,
    CLEAN,
    DURABLE_AUDIT,
    DURABLE_REV,
    DURABLE_SEQ,
    GAP,
    SET_META,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from uphold.journal.rows import Owner

_STAYS_USABLE: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY})
"""Errors after which the connection is as good as before."""
_ROWS_TO_CHECKPOINT: Final = 4_000
_ROWS_TO_PRUNE: Final = 2_000
_MARK_DURABLE: Final = (
    "INSERT INTO meta_t (key, value) VALUES"
    " (?, (SELECT coalesce(max(rev), 0) FROM jobs_t)),"
    " (?, (SELECT coalesce(max(rowid), 0) FROM audit_log_t))"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_NEEDS_ROOM: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
"""What a full disk says to a writer, or to the one who opens the journal's companion files."""

_LEFT_OPEN: Final[list[sqlite3.Connection]] = []
"""Until the process ends: whoever closes one changes the index, without room for that."""


class Committer:
    """Writes groups of batches, each group in one transaction."""

    def __init__(self, path: Path, *, owner: Owner, boot_id: str, now: float) -> None:
        self.owner = owner
        self._path = path
        self._boot_id = boot_id
        self._now = now
        self._connection: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None
        self._link = Link()
        self._last_seq = 0
        self._waits_for_disk: bool | None = None
        self._reserve = Reserve(path)
        self._headroom = Headroom(path)
        self._since_checkpoint = 0
        self._since_prune = 0
        self._events: int | None = None
        """How many there are, once they were counted."""

    def surplus(self, keep: Keep) -> int:
        """Tell how often over so much was written that something else may have to go."""
        # A tenth of all is little, and two thousand rows are rare enough to cost nobody time.
        return self._since_prune // max(1, min(_ROWS_TO_PRUNE, keep.events // 10))

    @property
    def overdue(self) -> int:
        """Tell how often over the log beside the file has grown long."""
        return self._since_checkpoint // _ROWS_TO_CHECKPOINT

    def prepare(self) -> None:
        """Open the journal, bring it up to date, and close it again."""
        self._open()
        self._drop()

    def write(self, group: Sequence[Rows], *, durable: bool) -> None:
        """Write these in order, all or none; when durable, they are on the disk afterwards.

        On a full disk the reserve is given up for what must be durable.
        """
        try:
            self._transact(group, durable=durable)
        except sqlite3.OperationalError as cause:
            full = cause.sqlite_errorcode in _NEEDS_ROOM
            if not (durable and full and self._reserve.give_up()):
                raise
            self._transact(group, durable=durable)
        else:
            self._reserve.renew()

    def _transact(self, group: Sequence[Rows], *, durable: bool) -> None:
        connection = self._open()
        self._wait_for_disk(connection, durable)
        try:
            connection.execute("BEGIN IMMEDIATE")
            link, last_seq = self._link, self._last_seq
            for rows in group:
                link = self._put(connection, rows, link)
                last_seq = max(last_seq, rows.last_seq)
            marks = _marks(link if link != self._link else None, last_seq if durable else None)
            connection.executemany(SET_META, marks)
            if durable:
                connection.execute(_MARK_DURABLE, (DURABLE_REV, DURABLE_AUDIT))
            connection.execute("COMMIT")
        except BaseException as cause:
            self._undo(connection, cause)
            raise
        self._link, self._last_seq = link, last_seq
        if self._events is not None:
            self._events += sum(len(rows.events) for rows in group)
        written = sum(map(_size, group))
        self._since_checkpoint += written
        self._since_prune += written

    def checkpoint(self) -> None:
        """Move what the log holds into the file itself. Waits for the disk."""
        self._since_checkpoint = 0
        with suppress(sqlite3.Error):  # it is tried again when the log has grown further
            self._open().execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def prune(self, now: float | None, keep: Keep) -> int:
        """Remove some of what is old; tells how much was done, 0 when nothing is left.

        Without `now` only what is too much goes, whatever its age.
        """
        copied = EVERYTHING if keep.spool is None else copied_of(self._path)
        connection = self._open()
        self._wait_for_disk(connection, False)  # what a power cut brings back goes again
        try:
            connection.execute("BEGIN IMMEDIATE")
            total = count_events(connection) if self._events is None else self._events
            removed, stock = prune(connection, now, keep, Stock(self._link, total), copied)
            connection.execute("COMMIT")
        except BaseException as cause:
            self._undo(connection, cause)
            raise
        self._link, self._events = stock
        more = removed >= keep.at_once
        self._since_prune = max(0, self._since_prune - removed) if more else 0
        self._since_checkpoint += removed
        return removed or self._shorten(connection, keep)

    def prune_some(self, keep: Keep) -> bool:
        """Remove some of what is too much, whatever its age; True when there may be more."""
        try:
            return self.prune(None, keep) >= keep.at_once
        except (sqlite3.Error, OSError, StoreUnavailable):
            self._since_prune = 0  # tried again when as much has been written
            return False

    def prune_much(self, keep: Keep) -> bool:
        """Remove twice what was written since the last time, if so much is too much."""
        may_go = 2 * self._since_prune
        while may_go > 0 and self.prune_some(keep):
            may_go -= keep.at_once
        return False

    def _shorten(self, connection: sqlite3.Connection, keep: Keep) -> int:
        try:
            pages = give_back(connection, keep)
        except BaseException as cause:
            self._undo(connection, cause)
            raise
        self._since_checkpoint += pages
        return pages

    def events(self, after: int, limit: int, worker: str | None) -> list[dict[str, object]]:
        """Read recorded events, oldest first."""
        values = UNRESTRICTED | {"after_seq": after, "worker": worker, "limit": limit}
        rows = self._open().execute(EVENTS[worker is not None, False], values)
        return [event_shape(row) for row in rows]

    def close(self) -> None:
        """Note that nothing is missing, and let go of the file."""
        with suppress(sqlite3.Error, OSError, StoreUnavailable):
            connection = self._open()
            _be_patient(connection, True)
            self._wait_for_disk(connection, True)
            connection.execute(SET_META, (CLEAN, "1"))
        self._drop()

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            self._refuse_other_file()
            if not self._headroom.is_there():
                raise _full()
            return self._connection
        if not self._headroom.is_there_for():
            raise _full()
        if self._inode is None:
            create_private(self._path)
        else:
            self._refuse_other_file()
        try:
            return self._enter(connect_writing(self._path))
        except BaseException:
            if self._inode is None:
                _remove_empty(self._path)
            raise

    def _enter(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        self._waits_for_disk = True
        first = self._inode is None
        try:
            if first:  # nobody is served yet: whoever holds the file may be waited for
                _be_patient(connection, True)
            standing = (
                prepare(connection, owner=self.owner, boot_id=self._boot_id, now=self._now)
                if first
                else resume(connection, self.owner)
            )
            if first:
                _be_patient(connection, False)
        except BaseException:
            connection.close()
            raise
        self.owner, self._link = standing.owner, standing.link
        self._events = None
        self._last_seq = standing.last_seq
        self._inode = _inode(self._path)
        self._connection = connection
        self._headroom.forget()
        self._reserve.renew()
        return connection

    def _refuse_other_file(self) -> None:
        # Writing on into a file that was removed would lose everything without a word.
        if _inode(self._path) != self._inode:
            raise StoreUnavailable(
                f"the journal {self._path} was removed or replaced while the supervisor ran.",
                code="UPH_JOURNAL_REPLACED",
                remedy="Put it back, or run uphold restart --keep-workers: a new one is made.",
            )

    def _wait_for_disk(self, connection: sqlite3.Connection, wanted: bool) -> None:  # noqa: FBT001
        if self._waits_for_disk is not wanted:
            connection.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._waits_for_disk = wanted

    def _undo(self, connection: sqlite3.Connection, cause: BaseException) -> None:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        code = getattr(cause, "sqlite_errorcode", None)
        if isinstance(cause, sqlite3.OperationalError) and code not in _STAYS_USABLE:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            # The last to close it moves all that waits in the log into the file.
            if self._headroom.is_there_for(2 * _size_of_log(self._path)):
                with suppress(sqlite3.Error):
                    self._connection.close()
            else:
                _LEFT_OPEN.append(self._connection)
        self._connection = None

    def _put(self, connection: sqlite3.Connection, rows: Rows, link: Link) -> Link:
        if rows.events:
            done = connection.executemany(INSERT_EVENT, rows.events)
            if done.rowcount != len(rows.events):
                self._events = None
                _refuse_other_events(connection, rows)
        if rows.slots:
            connection.executemany(UPSERT_SLOT, rows.slots)
            connection.executemany(UPSERT_WORKER, rows.workers)
        if rows.forgotten:
            connection.executemany("DELETE FROM slots_t WHERE slot = ?", rows.forgotten)
            connection.executemany("DELETE FROM workers_t WHERE worker_id = ?", rows.forgotten)
        for worker, override in rows.overrides:
            _put_override(connection, worker, override)
        if rows.meta:
            connection.executemany(SET_META, rows.meta)
        if rows.jobs:
            connection.executemany(UPSERT_JOB, rows.jobs)
        self._put_pulses(connection, rows)
        return append(connection, rows.audit, link)

    def _put_pulses(self, connection: sqlite3.Connection, rows: Rows) -> None:
        if rows.tells_gap:
            connection.execute("DELETE FROM meta_t WHERE key = ?", (GAP,))
        for pulse in rows.pulses:
            beat = pulse.at if pulse.beat else None
            connection.execute(
                "UPDATE supervisors_t SET status = coalesce(?, status), updated_at = ?,"
                " last_heartbeat = coalesce(?, last_heartbeat),"
                " health_metrics = coalesce(?, health_metrics) WHERE id = ?",
                (pulse.status, pulse.at, beat, pulse.metrics, self.owner.id),
            )
            connection.execute(
                "UPDATE workers_t SET status = coalesce(?, status),"
                " last_heartbeat_at = coalesce(?, last_heartbeat_at) WHERE worker_id = ?",
                (pulse.status, beat, f"supervisor_{self.owner.name}"),
            )


def _size_of_log(path: Path) -> int:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size
    except OSError:
        return 0


def _full() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


def _be_patient(connection: sqlite3.Connection, wanted: bool) -> None:  # noqa: FBT001
    milliseconds = int(BUSY_SECONDS * 1000) if wanted else 0
    connection.execute(f"PRAGMA busy_timeout = {milliseconds}").fetchone()


def _size(rows: Rows) -> int:
    return len(rows.events) + len(rows.slots)


def create_private(path: Path) -> None:
    """Make the file so that nobody else can ever read it; one that is there stays."""
    with suppress(FileExistsError):
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)


def _remove_empty(path: Path) -> None:
    """Take back a file that could not be filled: an empty one would look like a lost journal."""
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - asked before every transaction; Path costs twice as much
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _marks(link: Link | None, durable_seq: int | None) -> list[tuple[str, str]]:
    marks = []
    if link is not None:
        marks += [(AUDIT_HEAD, link.head), (AUDIT_COUNT, str(link.rows))]
    if durable_seq is not None:
        marks.append((DURABLE_SEQ, str(durable_seq)))
    return marks


def _put_override(connection: sqlite3.Connection, worker: str, override: str | None) -> None:
    if override is None:
        connection.execute("DELETE FROM overrides_t WHERE worker = ?", (worker,))
    else:
        connection.execute(
            "INSERT OR REPLACE INTO overrides_t (worker, override) VALUES (?, ?)",
            (worker, override),
        )


def _refuse_other_events(connection: sqlite3.Connection, rows: Rows) -> None:
    """Accept events that are there already; refuse others under the same numbers."""
    for seq, identity, *_ in rows.events:
        found = connection.execute("SELECT id FROM events_t WHERE seq = ?", (seq,)).fetchone()
        if found[0] != identity:
            raise Malformed(
                f"event {seq} is already in the journal as '{found[0]}', not as '{identity}'.",
                code="UPH_JOURNAL_CONFLICT",
            )
