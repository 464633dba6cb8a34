"""Questions for people, printed and nothing else."""

from __future__ import annotations

import json
import sqlite3

import pytest

from uphold.journal.examples import examples


def test_all_questions_are_printed_as_a_script_that_runs(uphold, home):
    result = uphold("sql")
    assert result.code == 0
    assert result.out.startswith("-- for the journal")
    assert all(f"-- {each.name}: {each.says}\n" in result.out for each in examples("sqlite"))
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        sqlite3.connect(":memory:").executescript(result.out)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("dialect", ["sqlite", "mysql", "postgresql"])
def test_one_question_in_each_dialect(uphold, dialect):
    lines = uphold("sql", "status-page", "--dialect", dialect).out.splitlines()
    assert lines[0].startswith("-- status-page: ")
    assert lines[-1].endswith(";")


def test_programs_get_one_object_per_question(uphold):
    out = uphold("sql", "--json", "--dialect", "mysql").out
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["name"] for each in found] == [each.name for each in examples("mysql")]
    assert all(set(each) == {"name", "says", "dialect", "sql"} for each in found)


def test_a_question_that_is_not_known_names_the_nearest(uphold):
    result = uphold("sql", "failed-job")
    assert result.code == 2
    assert "uphold sql failed-jobs" in result.err
    assert "status-page" in uphold("sql", "zzz").err
