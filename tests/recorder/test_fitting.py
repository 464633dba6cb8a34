"""Values that do not fit, and statements for each kind of database."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import String, Text, create_engine, types
from sqlalchemy.dialects import mysql

from uphold.recorder.fitting import Fitting, _limit, plain
from uphold.recorder.schema import AUDIT, EVENTS, JOBS
from uphold.recorder.statements import add_once, add_or_replace


def fitted(row, limits, dialect="mysql", largest=4_000_000):
    cut = Fitting(dialect, largest, {"t": limits}).fit("t", row)
    return row, cut


def test_what_fits_stays_as_it_is():
    row = {"a": "x" * 10, "b": 5, "c": None}
    assert fitted(dict(row), {"a": (10, False)}) == (row, [])


def test_text_is_cut_to_the_characters_or_bytes_of_its_column():
    row, cut = fitted({"a": "abcdefghijk", "b": "ü" * 100}, {"a": (10, False), "b": (50, True)})
    assert row["a"] == "abcdefghi…"
    assert len(row["b"].encode()) <= 50
    assert row["b"].startswith("ü" * 20)
    assert cut == ["a", "b"]


@pytest.mark.accepts("P18")
def test_a_document_that_is_too_long_stays_a_document_and_says_so():
    row, cut = fitted({"payload": json.dumps({"x": "y" * 5000})}, {"payload": (4096, True)})
    assert cut == ["payload"]
    told = json.loads(row["payload"])
    assert told["cut"] is True
    assert told["length"] > 5000
    assert told["begins"].startswith('{"x": "yyy')


def test_postgresql_gets_no_nul():
    assert fitted({"a": "x\0y"}, {}, "postgresql")[0] == {"a": "x␀y"}
    assert fitted({"a": "x\0y"}, {}, "mysql")[0] == {"a": "x\0y"}


def test_columns_tell_what_they_take():
    assert _limit(String(20), 1000) == (20, False)
    assert _limit(Text(), 1000) == (1000, True)
    assert _limit(mysql.TEXT(), 10**6) == (65535, True)
    assert _limit(mysql.TINYTEXT(), 10**6) == (255, True)
    assert _limit(mysql.MEDIUMTEXT(), 10**6) == (10**6, True)
    assert _limit(types.Integer(), 1000) is None


def test_the_simplest_signs_say_what_they_stand_for():
    assert plain({"a": "Zoë", "b": 1}) == {"a": "Zo\\xeb", "b": 1}


@pytest.mark.parametrize(
    ("dialect", "scheme", "ends"),
    [
        ("mysql", "mysql+pymysql://", "ON DUPLICATE KEY UPDATE id = id"),
        ("postgresql", "postgresql+psycopg://", "ON CONFLICT (id) DO NOTHING"),
        ("sqlite", "sqlite://", "ON CONFLICT (id) DO NOTHING"),
    ],
)
@pytest.mark.accepts("S42")
def test_a_row_that_is_there_is_left_as_it_is_and_values_are_parameters(dialect, scheme, ends):
    connection = create_engine(scheme)  # never connected; its dialect is what is wanted
    statement = add_once(dialect, EVENTS).compile(dialect=connection.dialect)
    assert str(statement).endswith(ends)
    for table in (EVENTS, AUDIT, JOBS):
        made = add_once(dialect, table).compile(dialect=connection.dialect)
        assert set(made.params) == {column.name for column in table.columns}
    replaced = str(add_or_replace(dialect, JOBS).compile(dialect=connection.dialect))
    assert "last_error = " in replaced
    assert "job_id = " not in replaced
