"""One connection to the shared database, and every way in which it can fail.

Whoever uses it gets transactions in sessions that are UTC, and `StoreUnavailable` for whatever
goes wrong. Connecting and each statement end within `patience`, also on a server that accepts
and never answers. A connection that failed is dropped; the next transaction makes a new one.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Self
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from uphold.errors import StoreUnavailable
from uphold.recorder.addresses import Address
from uphold.recorder.failures import NO_DATABASE, failure, translate
from uphold.recorder.watchdogs import Watchdog, is_silent

PATIENCE: Final = 10.0
"""Seconds a connect or a statement may take."""

# Modes of our own: a server's ANSI_QUOTES or missing strictness would change what statements mean.
_MYSQL_SESSION: Final = (
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    # What we no longer wait for need not go on over there; only MariaDB reads the last part.
    (
        "SET SESSION innodb_lock_wait_timeout = {seconds}, lock_wait_timeout = {seconds}"
        " /*M!, max_statement_time = {seconds} */"
    ),
)
_POSTGRESQL_SESSION: Final = (
    "SET TIME ZONE 'UTC'",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET statement_timeout = '{seconds}s'",
    "SET lock_timeout = '{seconds}s'",
    "SET client_min_messages = 'warning'",
)


class Store:
    """The shared database, for one thread at a time. Nothing is connected before it is needed."""

    def __init__(
        self, url: str | Address, *, patience: float = PATIENCE, create: bool = True
    ) -> None:
        """Take an address; `create` lets an SQLite file come into being."""
        self.address = url if isinstance(url, Address) else Address.parse(url)
        self.patience = patience
        self._create = create
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._watchdog = Watchdog(patience)

    @property
    def dialect(self) -> str:
        """`mysql`, `postgresql` or `sqlite`."""
        return self.address.dialect

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Do something in one transaction; StoreUnavailable if the database does not let us."""
        connection = self._connected()
        try:
            if self.dialect == "sqlite":
                # Two who read first and write then would wait for each other.
                connection.exec_driver_sql("BEGIN IMMEDIATE" if self._create else "BEGIN")
            yield connection
            self._watchdog.watch(_raw(connection))
            connection.commit()
        except SQLAlchemyError as cause:
            self._drop()
            raise self.failure_of(cause) from cause
        except BaseException:
            self._roll_back()
            raise
        finally:
            self._watchdog.rest()

    def close(self) -> None:
        """Let go of the connection; the next transaction would make a new one."""
        self._drop()
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _connected(self) -> Connection:
        if self._connection is not None and not is_silent(_raw(self._connection)):
            self._drop()  # the server hung up meanwhile
        if self._connection is None:
            self._watchdog = Watchdog(self.patience)
            try:
                self._connection = self._open().connect()
                self._connection.rollback()  # what made the session ready is over
            except Exception as cause:  # drivers raise what they like before a session stands
                self._drop()
                raise self.failure_of(cause) from cause
            finally:
                self._watchdog.rest()
        return self._connection

    def _open(self) -> Engine:
        if self._engine is None:
            engine = create_engine(
                self.address.engine_url(),
                poolclass=NullPool,
                hide_parameters=True,
                **self._driver_options(),
            )
            event.listen(engine, "connect", self._make_ready, insert=True)
            event.listen(engine, "before_cursor_execute", self._before_statement)
            event.listen(engine, "after_cursor_execute", self._after_statement)
            self._engine = engine
        return self._engine

    def _driver_options(self) -> dict[str, Any]:
        if self.dialect == "mysql":
            limits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"))
            return {"connect_args": dict.fromkeys(limits, self.patience)}
        if self.dialect == "postgresql":
            return {"connect_args": {"connect_timeout": max(2, math.ceil(self.patience))}}
        return {"creator": self._open_file}

    def _open_file(self) -> sqlite3.Connection:
        mode = "rwc" if self._create else "ro"
        return sqlite3.connect(
            f"file:{quote(self.address.database)}?mode={mode}",
            uri=True,
            timeout=self.patience,
            isolation_level=None,
            check_same_thread=False,  # the watchdog interrupts it
        )

    def _make_ready(self, raw: Any, _record: object) -> None:
        """Make a fresh session ours; watched until all of connecting is over."""
        self._watchdog.watch(raw)
        if self.dialect == "sqlite":
            return
        statements = _MYSQL_SESSION if self.dialect == "mysql" else _POSTGRESQL_SESSION
        cursor = raw.cursor()
        for statement in statements:
            cursor.execute(statement.format(seconds=max(1, math.ceil(self.patience))))
        cursor.close()
        raw.commit()

    def _before_statement(self, connection: Connection, *_: object) -> None:
        self._watchdog.watch(_raw(connection))

    def _after_statement(self, *_: object) -> None:
        self._watchdog.rest()

    def failure_of(self, cause: BaseException) -> StoreUnavailable:
        """Say what went wrong, as this store would raise it."""
        if self.dialect == "sqlite" and "unable to open" in str(cause):
            said = "the file or its folder is missing, or may not be read"
            remedy = "Make the folder and run `uphold db migrate`, or correct store.url."
            return failure(NO_DATABASE, self.address, said, remedy=remedy)
        late = self.patience if self._watchdog.bitten else None
        return translate(cause, self.address, late=late)

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is not None:
            try:
                self._watchdog.watch(_raw(connection))
                connection.rollback()
            except SQLAlchemyError:
                self._drop()

    def _drop(self) -> None:
        """Forget the connection, without a word to a server that may not listen."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError, OSError):
                connection.invalidate()
            with suppress(SQLAlchemyError, OSError):
                connection.close()


def _raw(connection: Connection) -> Any:
    """Give the driver's own connection."""
    return connection.connection.dbapi_connection
