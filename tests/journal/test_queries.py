from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from uphold.journal.queries import AUDIT, EVENTS, JOBS, UNRESTRICTED
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import news


def plan(path, question):
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {question}", UNRESTRICTED | {"limit": 1})
        return " ".join(row[3] for row in rows)


@pytest.mark.parametrize("newest_first", [False, True])
def test_events_of_a_worker_are_found_by_the_index_and_none_need_sorting(written, newest_first):
    path = written(Batch(events=[news(1)]))
    assert "events_by_entity" in plan(path, EVENTS[True, newest_first])
    assert "INTEGER PRIMARY KEY" in plan(path, EVENTS[False, newest_first])
    for question in (*EVENTS.values(), *AUDIT.values()):
        assert "TEMP B-TREE" not in plan(path, question)


def test_every_question_can_be_asked(written):
    path = written(Batch(events=[news(1)]))
    for question in (*EVENTS.values(), *AUDIT.values(), *JOBS.values()):
        assert plan(path, question)
