"""Whether the packages that speak to databases are there; asked before anything imports them."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from uphold.errors import StoreUnavailable

_DRIVERS: Final = {"mysql": ("pymysql",), "postgresql": ("psycopg",), "sqlite": ()}


def require_packages(dialect: str) -> None:
    """Raise StoreUnavailable if what this kind of database needs is not installed."""
    for name in ("sqlalchemy", "alembic", *_DRIVERS[dialect]):
        try:
            import_module(name)
        except ImportError as cause:
            raise StoreUnavailable(
                f"the shared database cannot be used: the package {name!r} cannot be imported"
                f" ({cause}).",
                code="UPH_STORE_EXTRA_MISSING",
                remedy="Install what it needs beside uphold: pip install 'uphold[sql]'.",
            ) from cause
