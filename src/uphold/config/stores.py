"""What can be said about the shared database: its address, and names of tables in it.

Whether anybody answers there is the recorder's to find out; here only what could never work is
refused. The address may hold a password, so no message of ours repeats it.
"""
# The methods of every kind are explained once, in `kinds.Kind`.
# ruff: noqa: D102

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from uphold.patterns import pattern

if TYPE_CHECKING:
    from uphold.config.places import Place

SCHEMES: Final = ("mysql", "mariadb", "postgresql", "postgres", "sqlite")
_URL: Final = pattern(r"(?P<scheme>[a-z]{1,20})(?:\+[a-z0-9]{1,20})?://(?P<rest>.*)", re.DOTALL)
_TABLE: Final = pattern(r"[a-z_][a-z0-9_]{0,40}")
_MOST_TABLES: Final = 100


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The address of a database, `mysql://user:password@host:3306/name` for instance."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, str):
            return place.wrong("must be an address such as mysql://user:password@host/name")
        match = _URL.fullmatch(value)
        if match is None or match["scheme"] not in SCHEMES:
            kinds = "mysql://, mariadb://, postgresql:// or sqlite:///"
            return place.wrong(f"must be an address that begins with {kinds}")
        if any(not character.isprintable() for character in value):
            return place.wrong("must not contain control characters")
        _, slash, name = match["rest"].partition("/")
        if not slash or not name.partition("?")[0]:
            return place.wrong("must name a database after the host, as in mysql://host/name")
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^(mysql|mariadb|postgres|postgresql|sqlite)"}


def anchored(url: str, folder: str) -> str:
    """Let the file of an SQLite database be meant from the folder of the configuration."""
    from urllib.parse import quote  # noqa: PLC0415 - only for those who have a database

    path = url.removeprefix("sqlite:///")
    if path == url or path.startswith(("/", ":")):
        return url
    return f"sqlite:///{quote(folder)}/{path}"


@dataclass(frozen=True, slots=True)
class TableNames:
    """Names of tables; small letters, digits and underscores only, as they go into SQL."""

    def read(self, value: object, place: Place) -> object:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            return place.wrong("must be a list of names of tables")
        if len(value) > _MOST_TABLES:
            return place.wrong(f"must not name more than {_MOST_TABLES} tables")
        wrong = [name for name in value if not _TABLE.fullmatch(name)]
        if wrong:
            return place.must(
                "names of small letters, digits and underscores (at most 41)", wrong[0]
            )
        return tuple(map(str, value))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": f"^{_TABLE.pattern}$"}}
