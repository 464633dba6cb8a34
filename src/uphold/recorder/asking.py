"""The questions of a verification, as each kind of database understands them.

Each is asked in a transaction of its own; what goes wrong is StoreUnavailable.
"""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Connection, func, select, table, text

from uphold.core.texts import printable
from uphold.core.times import parse_utc, utc_text
from uphold.errors import StoreUnavailable
from uphold.recorder.addresses import Address
from uphold.recorder.connecting import Store
from uphold.recorder.failures import SCHEMA, failure
from uphold.recorder.schema import METADATA

_VERSION: Final = {
    "mysql": "SELECT version()",
    "postgresql": "SHOW server_version",
    "sqlite": "SELECT sqlite_version()",
}
_PLACE_AND_TIME: Final = {
    "mysql": "SELECT database(), utc_timestamp(3)",
    "postgresql": "SELECT current_database(), now() AT TIME ZONE 'UTC'",
    "sqlite": "SELECT 'main', strftime('%Y-%m-%dT%H:%M:%fZ', 'now')",
}
# The zone the session says it is in, how far its clock is from UTC in seconds (the proof), and
# what sessions get that say nothing.
_TIME_ZONE: Final = {
    "mysql": (
        "SELECT @@session.time_zone, timestampdiff(SECOND, utc_timestamp(), now()),"
        " CASE @@global.time_zone WHEN 'SYSTEM' THEN concat('SYSTEM (', @@system_time_zone, ')')"
        " ELSE @@global.time_zone END"
    ),
    "postgresql": (
        "SELECT current_setting('TimeZone'), extract(timezone FROM now()),"
        " (SELECT reset_val FROM pg_settings WHERE name = 'TimeZone')"
    ),
    "sqlite": "SELECT 'UTC', 0, 'UTC'",
}


_UTC: Final = re.compile(r"\b(UTC|UCT|GMT|Zulu)\b|^[+-]00:00$")


class Questions:
    """Asks one database, reading only."""

    def __init__(self, address: Address, patience: float) -> None:
        self._address = address
        self._patience = patience

    def connection(self) -> tuple[str, dict[str, str]]:
        """Open a connection of its own, hear something over it, and close it."""
        with self._store() as store, store.begin() as connection:
            said = self._ask(connection, _VERSION)[0]
        names = {"mysql": "MySQL", "postgresql": "PostgreSQL", "sqlite": "SQLite"}
        mysql = "MariaDB" if "MariaDB" in said else "MySQL"
        name = mysql if self._address.dialect == "mysql" else names[self._address.dialect]
        version = f"{name} {said.partition('-')[0].partition(' ')[0]}"
        return f"{version} at {self._address.shown}", {"server_version": version}

    def place_and_time(self) -> tuple[str, str]:
        """Tell the database's name and the server's time, RFC 3339 in UTC."""
        with self._store() as store, store.begin() as connection:
            name, moment = self._ask(connection, _PLACE_AND_TIME)
        place = self._address.database if self._address.dialect == "sqlite" else str(name)
        return place, utc_text(parse_utc(str(moment)))

    def rows(self, name: str) -> int:
        """Count the rows of one table."""
        try:
            with self._store() as store, store.begin() as connection:
                return int(connection.scalar(select(func.count()).select_from(table(name))) or 0)
        except StoreUnavailable as cause:
            if cause.code == SCHEMA:
                raise self._no_table(name) from cause
            raise

    def time_zone(self) -> tuple[str, dict[str, str]]:
        """Make sure that our session is UTC; tell what the server's default is."""
        with self._store() as store, store.begin() as connection:
            session, seconds, default = self._ask(connection, _TIME_ZONE)
        if int(seconds) != 0 or str(session).upper() not in ("UTC", "+00:00"):
            raise self._not_utc(str(session))
        told = {"session_time_zone": str(session), "server_time_zone": str(default)}
        detail = f"the session is UTC; the server's default is {default}"
        if not _UTC.search(str(default)):
            detail += ", which programs see that do not ask for UTC"
        return detail, told

    def _no_table(self, name: str) -> StoreUnavailable:
        remedy = "Run `uphold db migrate`: it makes what is missing."
        if name not in METADATA.tables:
            remedy = "Create it, or take it out of store.critical_tables."
        return failure(SCHEMA, self._address, f"there is no table {name}", remedy=remedy)

    def _not_utc(self, session: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"the session with {self._address.shown} is in the time zone {printable(session)!r},"
            " although UTC was asked for.",
            code="UPH_STORE_TIME_ZONE",
            remedy="Let nothing between uphold and the server change the time zone of sessions.",
        )

    def _store(self) -> Store:
        return Store(self._address, patience=self._patience, create=False)

    def _ask(self, connection: Connection, statements: dict[str, str]) -> tuple[str, ...]:
        return tuple(connection.execute(text(statements[self._address.dialect])).one())
