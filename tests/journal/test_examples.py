"""The example questions, asked of a real journal; the servers are asked in tests/recorder."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import asking
from uphold.journal.examples import DIALECTS, examples

NAMES = [each.name for each in examples("sqlite")]


def test_every_dialect_knows_the_same_questions_each_with_a_sentence():
    for dialect in DIALECTS:
        known = examples(dialect)
        assert [each.name for each in known] == NAMES
        assert all(each.says.endswith(".") and "\n" not in each.says for each in known)
        assert all(";" not in each.asks for each in known)


@pytest.mark.parametrize("name", NAMES)
def test_the_journal_answers(written, name):
    path = written(asking.past())
    (example,) = [each for each in examples("sqlite") if each.name == name]
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        asking.check(name, [dict(row) for row in connection.execute(example.asks)])
