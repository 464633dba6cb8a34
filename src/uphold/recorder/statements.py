"""The statements that bring rows over: a row that is there already stays one row.

Each dialect says that in its own way. For MySQL the words are put together here, since its
driver sends many rows in one statement only if it ends the way it expects.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Executable, Table, bindparam, text
from sqlalchemy.dialects import postgresql, sqlite


def add_once(connection: Connection, dialect: str, table: Table) -> Executable:
    """Add rows; those whose key is there already are left as they are."""
    key = table.primary_key.columns[0].name
    if dialect == "mysql":
        quoted = _quoted(connection, key)
        return _mysql(connection, table, f"{quoted} = {quoted}")
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing(index_elements=[key])
    return sqlite.insert(table).on_conflict_do_nothing(index_elements=[key])


def add_or_replace(connection: Connection, dialect: str, table: Table) -> Executable:
    """Add rows; of those whose key is there already the other columns become these."""
    key = table.primary_key.columns[0].name
    names = [column.name for column in table.columns if column.name != key]
    if dialect == "mysql":
        changes = ", ".join(
            f"{quoted} = VALUES({quoted})" for quoted in (_quoted(connection, n) for n in names)
        )
        return _mysql(connection, table, changes)
    made: Any = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    return made.on_conflict_do_update(  # type: ignore[no-any-return]
        index_elements=[key], set_={name: made.excluded[name] for name in names}
    )


def _mysql(connection: Connection, table: Table, on_duplicate: str) -> Executable:
    columns = list(table.columns)
    names = ", ".join(_quoted(connection, column.name) for column in columns)
    values = ", ".join(f":{column.name}" for column in columns)
    statement = text(
        # Names of our own columns, quoted; values are parameters.
        f"INSERT INTO {_quoted(connection, table.name)} ({names}) VALUES ({values})"  # noqa: S608
        f" ON DUPLICATE KEY UPDATE {on_duplicate}"
    )
    return statement.bindparams(*(bindparam(each.name, type_=each.type) for each in columns))


def _quoted(connection: Connection, name: str) -> str:
    return connection.dialect.identifier_preparer.quote(name)
