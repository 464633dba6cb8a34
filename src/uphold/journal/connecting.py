"""How the journal's file is opened: for its one writer, or for any number of readers.

Also what goes wrong with it, in sentences.
"""

from __future__ import annotations

import os
import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
from typing import TYPE_CHECKING, Final

from uphold.errors import StoreUnavailable
from uphold.host.files import is_kept_in_place

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "connect_reading",
    "connect_writing",
    "is_busy",
    "is_damage",
    "reads_still",
    "unavailable",
]

BUSY_SECONDS: Final = 2.0
_LARGEST_LEFT_OVER_WAL: Final = 16 * 1024 * 1024
_CACHE_KIB: Final = 256
"""Pages the writer keeps: it appends, and what it reads again the kernel has."""

_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_AGAIN: Final = "uphold tries again by itself; workers are not affected."

_CAUSES: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", f"Free some space; {_AGAIN}"),
    sqlite3.SQLITE_READONLY: ("it is read-only", f"Make its folder writable; {_AGAIN}"),
    sqlite3.SQLITE_PERM: ("permission is denied", "Run uphold as the owner of the home."),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "Is its folder there, may this user write to it, and is there space on the disk?",
    ),
    sqlite3.SQLITE_BUSY: ("another program holds it locked", f"Close that program; {_AGAIN}"),
    sqlite3.SQLITE_LOCKED: ("another program holds it locked", f"Close that program; {_AGAIN}"),
    sqlite3.SQLITE_IOERR: ("the disk reports an error", f"Look at the disk; {_AGAIN}"),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", ""),
    sqlite3.SQLITE_NOTADB: ("it is not a journal", ""),
}
_PLAIN: Final = frozenset(b"/-_.~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
"""What may stand in a URI as it is."""
_REBUILD: Final = (
    "Restart the supervisor (uphold restart --keep-workers): it sets the file aside and rebuilds it"
    " from what else it knows."
)


SQLITE_VERSION: Final = sqlite3.sqlite_version_info
"""Of the library that this interpreter has."""


def connect_writing(path: Path) -> sqlite3.Connection:
    """Open the file for its one writer; transactions are begun and ended by hand."""
    connection = sqlite3.connect(
        path,
        timeout=0.0,  # whoever may wait does so by trying again; the loop may not
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if path.stat().st_size == 0:
            # So that it can be shortened. A file with content would have to be written anew.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LEFT_OVER_WAL}").fetchone()
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # done aside: it waits for the disk
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    except BaseException:
        connection.close()
        raise
    return connection


def reads_still(path: Path) -> bool:
    """Tell whether everything lies in the file itself: no changes wait in the log beside it."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size == 0
    except OSError:
        return True


def connect_reading(path: Path) -> sqlite3.Connection:
    """Open the file for reading only: nothing is created beside a journal that rests.

    SQLite would make its two companion files even for a reader. A journal that was closed
    properly has none, and is read as the plain file it is.
    """
    if reads_still(path):
        return _reader(path, "&immutable=1")
    return (is_kept_in_place(path.parent) and _careful_reader(path)) or _reader(path)


def _careful_reader(path: Path) -> sqlite3.Connection | None:
    """Open it without a word into the mapped index, which may kill (`reserving.Headroom`)."""
    connection = _reader(path, "&readonly_shm=1")
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:  # there is no index, or none that can be used as it is
        connection.close()
        return None
    return connection


def _reader(path: Path, more: str = "") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{_quoted(path)}?mode=ro{more}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.row_factory = sqlite3.Row
    return connection


def is_damage(cause: BaseException) -> bool:
    """Tell whether this error proves that the file is damaged, and not only out of reach."""
    return isinstance(cause, sqlite3.Error) and _primary(cause) in _DAMAGE


def is_busy(cause: BaseException) -> bool:
    """Tell whether another program holds the file right now."""
    return isinstance(cause, sqlite3.Error) and _primary(cause) == sqlite3.SQLITE_BUSY


def unavailable(path: Path, cause: BaseException) -> StoreUnavailable:
    """Say in a sentence why the journal cannot be used, and what helps."""
    if isinstance(cause, StoreUnavailable):
        return StoreUnavailable(cause.message, code=cause.code, remedy=cause.remedy)
    number = _primary(cause) if isinstance(cause, sqlite3.Error) else None
    words, remedy = _CAUSES.get(number or 0, ("it does not answer", _AGAIN))
    damaged = number in _DAMAGE
    return StoreUnavailable(
        f"cannot use the journal {path}: {words} ({cause}).",
        code="UPH_JOURNAL_CORRUPT" if damaged else None,
        remedy=_REBUILD if damaged else remedy,
    )


def _primary(cause: sqlite3.Error) -> int | None:
    code: int | None = getattr(cause, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _quoted(path: Path) -> str:
    """Write a path as part of a URI; `urllib` would bring 300 KiB along for it."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(path))
