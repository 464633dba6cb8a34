"""Addresses of shared databases: `mysql://user:password@host:3306/name` and its like.

Nothing here needs the SQL toolkit before an engine is wanted, so an address can be shown by
programs that have no use for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, unquote

from uphold.core.texts import printable
from uphold.errors import StoreUnavailable

if TYPE_CHECKING:
    from sqlalchemy import URL

DIALECTS: Final = {
    "mysql": "mysql",
    "mariadb": "mysql",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "sqlite": "sqlite",
}
_DRIVERS: Final = {"mysql": "mysql+pymysql", "postgresql": "postgresql+psycopg", "sqlite": "sqlite"}
_SCHEME: Final = re.compile(r"(?P<scheme>[a-z]+)(?:\+[a-z0-9]+)?://(?P<rest>.*)", re.DOTALL)
# The password is taken as long as it can be: should somebody have written an "@" or a "/" into
# it, no part of it may be taken for the host, and shown.
_REST: Final = re.compile(
    r"(?:(?P<user>[^:/@]*)(?::(?P<password>.*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.%]*\]|[^:/?@\[\]]*)(?::(?P<port>[0-9]{1,5}))?"
    r"/(?P<database>[^?]+)(?:\?(?P<query>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a shared database is, and who asks for it."""

    dialect: str
    """`mysql`, `postgresql` or `sqlite`."""
    database: str
    """Its name; the path of the file for SQLite."""
    host: str = ""
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read an address; StoreUnavailable, without repeating it, if that cannot be done."""
        scheme = _SCHEME.fullmatch(url)
        if scheme is None or scheme["scheme"] not in DIALECTS:
            raise _wrong("it does not begin with mysql://, mariadb://, postgresql:// or sqlite:///")
        dialect = DIALECTS[scheme["scheme"]]
        if dialect == "sqlite":
            return cls._of_file(scheme["rest"])
        rest = _REST.fullmatch(scheme["rest"])
        if rest is None:
            raise _wrong("it is not of the form mysql://user:password@host:port/name")
        port = int(rest["port"]) if rest["port"] else None
        if port is not None and not 0 < port < 65536:
            raise _wrong("its port is not a number from 1 to 65535")
        return cls(
            dialect=dialect,
            host=unquote(rest["host"]).strip("[]"),
            port=port,
            user=None if rest["user"] is None else unquote(rest["user"]),
            password=None if rest["password"] is None else unquote(rest["password"]),
            database=unquote(rest["database"]),
            query=tuple(parse_qsl(rest["query"] or "", keep_blank_values=True)),
        )

    @classmethod
    def _of_file(cls, rest: str) -> Address:
        path = rest.partition("?")[0]
        if not path.startswith("/") or path in {"/", "/:memory:"}:
            raise _wrong("an SQLite database is given as sqlite:////path/to/file.db")
        return cls(dialect="sqlite", database=unquote(path[1:]))

    @property
    def shown(self) -> str:
        """The address as anybody may read it: without user, password and options."""
        if self.dialect == "sqlite":
            return printable(f"sqlite:///{quote(self.database)}")
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return printable(f"{self.dialect}://{host}{port}/{quote(self.database)}")

    def engine_url(self) -> URL:
        """Give it to the SQL toolkit, with the drivers we use."""
        from sqlalchemy import URL  # noqa: PLC0415 - see the top

        query: dict[str, Any] = dict(self.query)
        if self.dialect == "mysql":
            query["charset"] = "utf8mb4"
        return URL.create(
            _DRIVERS[self.dialect],
            username=self.user,
            password=self.password,
            # Without a host the drivers differ: one asks this machine, the other a socket.
            host=self.host or ("127.0.0.1" if self.dialect == "mysql" else None),
            port=self.port,
            database=self.database,
            query=query,
        )


def _wrong(why: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the address of the shared database cannot be read: {why}.",
        code="UPH_STORE_ADDRESS",
        remedy=(
            "Correct store.url, for instance mysql://user:password@host:3306/name;"
            " signs such as @ / ? in a password are written as %40 %2F %3F."
        ),
    )
