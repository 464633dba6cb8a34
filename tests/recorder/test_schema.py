"""The shared tables beside the journal's, and how moments become columns."""

from __future__ import annotations

import pytest
from sqlalchemy import create_mock_engine
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateTable

from uphold.journal.tables import TABLES
from uphold.recorder.schema import EVENTS, METADATA, WORKERS, UtcTime

OWN_OF_THE_JOURNAL = {"slots_t", "overrides_t", "meta_t"}


def test_every_table_that_both_have_has_all_columns_of_the_journals():
    for name, columns in TABLES.items():
        if name not in OWN_OF_THE_JOURNAL:
            assert set(columns) <= set(METADATA.tables[name].columns.keys()), name


@pytest.mark.accepts("B-76")
@pytest.mark.parametrize(
    ("dialect", "kind"),
    [
        (mysql.dialect(), "DATETIME(3)"),
        (postgresql.dialect(), "TIMESTAMP WITH TIME ZONE"),
        (sqlite.dialect(), "TEXT"),
    ],
)
def test_moments_are_real_ones_with_milliseconds(dialect, kind):
    made = str(CreateTable(WORKERS).compile(dialect=dialect))
    assert f"last_heartbeat_at {kind}" in made


@pytest.mark.accepts("B-76", "B-77")
@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00.123Z", "2026-01-01 01:00:00.123+01:00", "2026-01-01 00:00:00.123"]
)
def test_a_moment_is_utc_however_it_is_written(text):
    bound = UtcTime().process_bind_param(text, mysql.dialect())
    assert bound.isoformat() == "2026-01-01T00:00:00.123000"
    aware = UtcTime().process_bind_param(text, postgresql.dialect())
    assert aware.isoformat() == "2026-01-01T00:00:00.123000+00:00"
    assert UtcTime().process_bind_param(text, sqlite.dialect()) == "2026-01-01T00:00:00.123Z"
    for value in (bound, aware):
        assert UtcTime().process_result_value(value, None) == "2026-01-01T00:00:00.123Z"


def test_no_moment_and_what_is_none_are_unknown():
    for value in (None, "soon", ""):
        assert UtcTime().process_bind_param(value, mysql.dialect()) is None
    assert UtcTime().process_result_value(None, None) is None


def test_only_keys_and_the_summary_have_a_length():
    made = str(CreateTable(EVENTS).compile(dialect=mysql.dialect()))
    assert "payload MEDIUMTEXT" in made
    lengths = {
        f"{table.name}.{column.name}": column.type.length
        for table in METADATA.sorted_tables
        for column in table.columns
        if getattr(column.type, "length", None)
    }
    assert lengths.pop("workers_t.status_summary") == 255
    assert set(lengths.values()) == {191}


def test_names_that_differ_by_a_capital_letter_are_different_in_mysql_too():
    made = str(CreateTable(WORKERS).compile(dialect=mysql.dialect()))
    assert "worker_id VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" in made


def test_the_definitions_execute_nothing():
    seen = []
    engine = create_mock_engine("sqlite://", lambda statement, *_: seen.append(statement))
    METADATA.create_all(engine, checkfirst=False)
    assert len(seen) >= len(METADATA.tables)
