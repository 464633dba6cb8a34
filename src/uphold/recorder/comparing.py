"""What a shared database lacks, by comparing its tables with ours. Nothing is changed here.

Tables may be there already, made by another program with fewer columns or other lengths. They
are extended. What cannot be made to fit by adding something is a problem that names table and
column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from alembic.operations import Operations
from sqlalchemy import Column, Connection, Inspector, Table, inspect, types
from sqlalchemy.schema import CreateTable
from sqlalchemy.sql import text

from uphold.recorder.schema import KEY_LENGTH, METADATA, VIEWS, UtcTime


class Change(NamedTuple):
    """One thing to add."""

    text: str
    """What it is, as an imperative: `add column workers_t.details`."""
    apply: Callable[[Operations], None]


class Comparison(NamedTuple):
    """What is to be added, and what cannot be mended by adding."""

    changes: list[Change]
    problems: list[str]


def compare(connection: Connection) -> Comparison:
    """Compare all our tables with what is there."""
    found = inspect(connection)
    schema = home_of(found)
    tables, views = set(found.get_table_names(schema)), set(found.get_view_names(schema))
    changes: list[Change] = []
    problems: list[str] = []
    for table in METADATA.sorted_tables:
        if table.name in tables:
            existing = _Existing(found, table, connection.dialect.name)
            problems += existing.problems()
            changes += existing.changes()
        elif table.name in views:
            problems.append(f"{table.name} is a view, not a table")
        else:
            changes.append(_made(table))
    changes += [
        _made_view(name, statement)
        for name, statement in VIEWS.items()
        if name not in views and name not in tables
    ]
    return Comparison(changes, problems)


def home_of(found: Inspector) -> str | None:
    """Name the schema that is ours in PostgreSQL: the first of the search path, and no other.

    Tables of others further down the path are not ours to extend; ours will stand before them.
    """
    return found.default_schema_name if found.dialect.name == "postgresql" else None


class _Existing:
    """One table that is there already."""

    def __init__(self, found: Inspector, table: Table, dialect: str) -> None:
        self._found = found
        self._table = table
        self._dialect = dialect
        self._schema = home_of(found)
        columns = found.get_columns(table.name, self._schema)
        self._columns: dict[str, Any] = {each["name"]: each for each in columns}
        self._key: str = table.primary_key.columns[0].name

    def problems(self) -> list[str]:
        name = self._table.name
        if self._key not in self._columns:
            return [f"{name} has no column {self._key}, which is its key here"]
        wrong = [
            f"{name}.{column.name} is {self._columns[column.name]['type']},"
            f" which cannot hold {_family(column.type)}"
            for column in self._table.columns
            if column.name in self._columns and not self._fits(column)
        ]
        demanding = [
            f"{name}.{column} must not be empty and has no default, so no row of ours can be added"
            for column, there in self._columns.items()
            if column not in self._table.columns and self._is_demanding(there)
        ]
        return wrong + demanding

    def changes(self) -> list[Change]:
        missing = [each for each in self._table.columns if each.name not in self._columns]
        changes = [_added(self._table, column) for column in missing if column.name != self._key]
        if self._key in self._columns and not self._is_unique():
            changes.append(self._indexed(f"{self._table.name}_key", [self._key], unique=True))
        there = {each["name"] for each in self._found.get_indexes(self._table.name, self._schema)}
        for index in sorted(self._table.indexes, key=lambda each: str(each.name)):
            if index.name not in there:
                columns = [column.name for column in index.columns]
                changes.append(self._indexed(str(index.name), columns))
        return changes

    def _fits(self, column: Column[Any]) -> bool:
        """Tell whether values of our column can be written into the one that is there."""
        if self._dialect == "sqlite":
            return True  # its columns take anything
        there, ours = self._columns[column.name]["type"], _family(column.type)
        if self._dialect == "mysql" and isinstance(there, types.String | types.JSON):
            return ours != "numbers"  # it reads dates and documents from text by itself
        if isinstance(there, types.Enum):
            return False
        return _family(there) == ours

    def _is_demanding(self, there: dict[str, Any]) -> bool:
        if there["nullable"] or there.get("default") is not None:
            return False
        if there.get("computed") or there.get("identity"):
            return False
        if self._dialect == "sqlite" and there.get("primary_key"):
            return not isinstance(there["type"], types.Integer)  # that one counts by itself
        return there.get("autoincrement") is not True

    def _is_unique(self) -> bool:
        name = self._table.name
        found, schema = self._found, self._schema
        keys = [found.get_pk_constraint(name, schema)["constrained_columns"]]
        keys += [each["column_names"] for each in found.get_unique_constraints(name, schema)]
        for index in found.get_indexes(name, schema):
            if index["unique"] and not index.get("dialect_options", {}).get("postgresql_where"):
                keys.append([each or "" for each in index["column_names"]])
        return [self._key] in keys

    def _indexed(self, index: str, columns: list[str], *, unique: bool = False) -> Change:
        options: dict[str, Any] = {}
        lengths = {each: KEY_LENGTH for each in columns if self._needs_length(each)}
        if lengths:
            options["mysql_length"] = lengths
        table = self._table.name
        kind = "unique index" if unique else "index"
        return Change(
            f"add {kind} {index} on {table} ({', '.join(columns)})",
            lambda operations: operations.create_index(
                index, table, columns, unique=unique, **options
            ),
        )

    def _needs_length(self, column: str) -> bool:
        there = self._columns.get(column)
        kind = self._table.columns[column].type if there is None else there["type"]
        return isinstance(kind, types.Text | types.LargeBinary) and self._dialect == "mysql"


_FAMILIES: Final = (
    ("numbers", types.Numeric | types.Float | types.Integer | types.Boolean),
    ("times", types.DateTime | UtcTime),
    ("text", types.String),
)


def _family(kind: Any) -> str:
    return next((name for name, kinds in _FAMILIES if isinstance(kind, kinds)), "something else")


def _made(table: Table) -> Change:
    def apply(operations: Operations) -> None:
        operations.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            index.create(operations.get_bind())

    return Change(f"make table {table.name}", apply)


def _made_view(name: str, statement: str) -> Change:
    return Change(
        f"make view {name}",
        lambda operations: operations.execute(text(statement)),
    )


def _added(table: Table, column: Column[Any]) -> Change:
    fresh: Column[Any] = Column(column.name, column.type, nullable=True)
    return Change(
        f"add column {table.name}.{column.name}",
        lambda operations: operations.add_column(table.name, fresh),
    )
