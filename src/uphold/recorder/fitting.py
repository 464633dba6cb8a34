"""Making values fit the columns that are there: too long, unknown signs, too much for a packet.

Nothing of ours is too long for tables of ours. Tables may be somebody else's, extended by us,
and servers have limits of their own. What had to be cut is told; it is never a reason to stop.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Final

from sqlalchemy import Connection, Table, inspect, text, types
from sqlalchemy.dialects import mysql

_LARGEST: Final = 4 * 2**20
"""Bytes of one value, whatever the server would take."""
_BEGINNING: Final = 1000
"""Characters that are kept of a document which is too long."""
_DOCUMENTS: Final = frozenset({"payload", "details_json", "config", "health_metrics", "details"})
_SIZES: Final = (
    (mysql.TINYTEXT, 255),
    (mysql.MEDIUMTEXT, 2**24 - 1),
    (mysql.LONGTEXT, 2**32 - 1),
)

Row = dict[str, Any]
Limits = dict[str, tuple[int, bool]]
"""By column: the most that it takes, and whether that is counted in bytes."""


class Fitting:
    """The limits of one database, and what they do to a row."""

    def __init__(self, dialect: str, largest: int, limits: dict[str, Limits]) -> None:
        self._nul = dialect == "postgresql"
        self._largest = largest
        self._limits = limits

    def fit(self, table: str, row: Row) -> list[str]:
        """Make a row fit; gives the names of the columns that had to be cut."""
        limits = self._limits.get(table, {})
        cut: list[str] = []
        for name, given in row.items():
            if not isinstance(given, str):
                continue
            value = given
            if self._nul and "\0" in value:
                value = row[name] = value.replace("\0", "\N{SYMBOL FOR NULL}")
            most, in_bytes = limits.get(name, (self._largest, True))
            if len(value) * (4 if in_bytes else 1) <= most:
                continue
            if (len(value.encode("utf-8", "replace")) if in_bytes else len(value)) > most:
                row[name] = _cut(name, value, most, in_bytes=in_bytes)
                cut.append(name)
        return cut


def look_at(connection: Connection, dialect: str, tables: list[Table]) -> Fitting:
    """Find out what fits into these tables of a database, as they are there."""
    largest = _LARGEST
    if dialect == "mysql":
        packet = connection.scalar(text("SELECT @@max_allowed_packet"))
        _keep_statements_below(int(packet or _LARGEST))
        # Signs may be doubled on their way, and there is more in a statement than one value.
        largest = min(largest, int(packet or largest) // 4)
    found = inspect(connection)
    limits = {
        table.name: {
            str(column["name"]): limit
            for column in found.get_columns(table.name)
            if (limit := _limit(column["type"], largest)) is not None
        }
        for table in tables
    }
    return Fitting(dialect, largest, limits)


def plain(row: Row) -> Row:
    """Write a row with the simplest signs only, for columns that know no others."""
    return {
        name: value.encode("ascii", "backslashreplace").decode()
        if isinstance(value, str)
        else value
        for name, value in row.items()
    }


def _keep_statements_below(packet: int) -> None:
    """Have PyMySQL put no more rows into a statement than the server takes."""
    driver = import_module("pymysql.cursors")  # only where that is the driver
    driver.Cursor.max_stmt_length = min(1_000_000, packet // 2)


def _limit(kind: types.TypeEngine[Any], largest: int) -> tuple[int, bool] | None:
    """Give the most that a column takes, and whether that is counted in bytes."""
    if not isinstance(kind, types.String):
        return None
    for text_kind, size in _SIZES:
        if isinstance(kind, text_kind):
            return min(size, largest), True
    if isinstance(kind, mysql.TEXT):
        return min(2**16 - 1, largest), True
    if kind.length is not None:
        return (kind.length, False) if kind.length * 4 <= largest else (largest, True)
    return largest, True


def _cut(name: str, value: str, most: int, *, in_bytes: bool) -> str:
    if name in _DOCUMENTS and most > 4 * _BEGINNING:
        shown = value[: _BEGINNING // 2]
        return json.dumps({"cut": True, "length": len(value), "begins": shown})
    if not in_bytes:
        return value[: most - 1] + "…" if most > 1 else value[:most]
    return value.encode("utf-8", "replace")[: max(0, most - 3)].decode(errors="ignore") + "…"
