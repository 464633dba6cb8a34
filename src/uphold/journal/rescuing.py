"""What happens to a journal that fails its check: it is set aside, never repaired in place."""

from __future__ import annotations

import os
import sqlite3  # noqa: TID251 - the journal is the one package that speaks SQL
import stat
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from uphold.core.times import utc_text
from uphold.journal.connecting import connect_reading, is_damage
from uphold.journal.tables import APPLICATION_ID, TABLES

if TYPE_CHECKING:
    from pathlib import Path

_HEADER: Final = b"SQLite format 3\x00"
_COMPANIONS: Final = ("-wal", "-shm", "-journal")


def rescue(path: Path, now: float) -> str | None:
    """Set the journal aside if it is damaged; the answer says so in a sentence."""
    damage = find_damage(path)
    return None if damage is None else set_aside(path, now, damage)


def find_damage(path: Path) -> str | None:
    """Say what is wrong with the file. Not being able to look is not damage."""
    try:
        found = os.lstat(path)
    except OSError:
        stray = [end for end in _COMPANIONS[:1] if path.with_name(path.name + end).exists()]
        return "only its log of changes is left" if stray else None
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if found.st_size == 0:
        return "it is empty"
    try:
        with path.open("rb") as opened:
            header = opened.read(len(_HEADER))
    except OSError:
        return None
    if header != _HEADER:
        return "it is not a database"
    return _check(path)


def set_aside(path: Path, now: float, damage: str) -> str:
    """Move the file and its companions out of the way; nothing of it is lost."""
    stamp = utc_text(now)[:19].replace("-", "").replace(":", "") + "Z"
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    turn = 1
    while os.path.lexists(target):
        turn += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{turn}")
    for end in ("", *_COMPANIONS):
        with suppress(FileNotFoundError):
            path.with_name(path.name + end).rename(target.with_name(target.name + end))
    return f"the journal {path} could not be used: {damage}. It was set aside as {target.name}."


def _check(path: Path) -> str | None:
    try:
        with closing(connect_reading(path)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                return str(verdict).replace("\n", " ")
            return _foreign(connection) or _missing(connection)
    except sqlite3.Error as cause:
        return str(cause) if is_damage(cause) else None


def _foreign(connection: sqlite3.Connection) -> str | None:
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    return None if mark in (0, APPLICATION_ID) else "it is the database of another program"


def _missing(connection: sqlite3.Connection) -> str | None:
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if "schema_migrations_t" not in names:
        return None
    first = connection.execute("SELECT 1 FROM schema_migrations_t WHERE version = 1").fetchone()
    lost = [table for table in TABLES if table not in names] if first else []
    return f"its table {lost[0]} is missing" if lost else None
