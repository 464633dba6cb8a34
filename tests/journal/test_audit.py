from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from uphold.core.texts import utc_text
from uphold.journal.audit import BEGINNING, chained, verify
from uphold.journal.pruning import DAY, Keep
from uphold.journal.reading import JournalReader
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import entry, play

COLUMNS = (
    "audit_id actor action target_type target_id label created_at details_json prev_hash hash"
).split()


@pytest.fixture
def audited(written):
    return written(*(Batch(audit=[entry(n), entry(n + 10)], durable=True) for n in range(5)))


def tamper(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as hand:
        hand.execute("DROP TRIGGER audit_stays")
        hand.execute("DROP TRIGGER audit_grows")
        for statement in statements:
            hand.execute(statement)


def problems(path):
    with JournalReader(path) as reader:
        return verify(reader)


@pytest.mark.accepts("S44", "P10")
def test_an_untouched_chain_has_no_problems_and_begins_at_the_beginning(audited):
    assert problems(audited) == []
    with JournalReader(audited) as reader:
        rows = reader.audit()
    assert rows[0]["prev_hash"] == BEGINNING
    for before, after in pairwise(rows):
        assert after["prev_hash"] == before["hash"]


@pytest.mark.accepts("S44")
@pytest.mark.parametrize("column", COLUMNS)
def test_a_changed_value_in_any_column_is_found_and_the_row_is_named(audited, column):
    tamper(audited, f"UPDATE audit_log_t SET {column} = {column} || 'x' WHERE rowid = 4")
    found = problems(audited)
    assert found
    assert any("audit row 4" in problem.at or "audit row 5" in problem.at for problem in found)


@pytest.mark.accepts("S44")
@pytest.mark.parametrize("rowid", range(1, 11))
def test_a_dropped_row_is_found_wherever_it_stood(audited, rowid):
    tamper(audited, f"DELETE FROM audit_log_t WHERE rowid = {rowid}")
    assert problems(audited)


@pytest.mark.accepts("S44")
def test_a_cut_off_end_is_found(audited):
    tamper(audited, "DELETE FROM audit_log_t WHERE rowid > 6")
    (problem,) = problems(audited)
    assert "10 rows were written and 6 are there" in problem.text


@pytest.mark.accepts("S44")
def test_exchanged_rows_are_found(audited):
    tamper(
        audited,
        "UPDATE audit_log_t SET rowid = 99 WHERE rowid = 3",
        "UPDATE audit_log_t SET rowid = 3 WHERE rowid = 4",
        "UPDATE audit_log_t SET rowid = 4 WHERE rowid = 99",
    )
    assert {problem.at for problem in problems(audited)} >= {"audit row 3 (audit-11)"}


@pytest.mark.accepts("S44")
def test_a_label_that_becomes_null_is_found(audited):
    tamper(audited, "UPDATE audit_log_t SET label = NULL WHERE rowid = 2")
    assert problems(audited)


@pytest.mark.accepts("S44")
def test_an_added_row_is_found(audited):
    tamper(
        audited,
        "INSERT INTO audit_log_t SELECT 'forged', actor, action, target_type, target_id, label,"
        " created_at, details_json, hash, hash FROM audit_log_t WHERE rowid = 10",
    )
    assert problems(audited)


@pytest.mark.accepts("S44")
def test_a_last_row_that_was_written_anew_with_a_fitting_hash_is_found(audited):
    with JournalReader(audited) as reader:
        last = list(reader.audit_rows())[-1]
    content = ("audit-14", "somebody else", *tuple(last)[2:8])
    digest = chained(content, last["prev_hash"])
    tamper(
        audited,
        f"UPDATE audit_log_t SET actor = 'somebody else', hash = '{digest}' WHERE rowid = 10",
    )
    (problem,) = problems(audited)
    assert "the last row is not the last one that was written" in problem.text


@pytest.mark.accepts("S44")
@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM audit_log_t", "UPDATE audit_log_t SET actor = 'nobody' WHERE rowid = 1"],
)
def test_the_log_itself_refuses_to_be_changed(audited, statement):
    with (
        closing(sqlite3.connect(audited)) as hand,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        hand.execute(statement)
    assert problems(audited) == []


def test_the_chain_goes_on_over_runs_and_survives_pruning(written, opened, path):
    written(*(Batch(audit=[entry(n)], durable=True) for n in range(6)))
    keep = Keep(audit_age=100 * DAY)

    async def script():
        journal = opened(keep=keep)
        await journal.append(Batch(audit=[entry(100 * 86400)], durable=True))
        assert await journal.prune(1770301815.0 + 3 + 100 * DAY) == 3
        await journal.append(Batch(audit=[entry(100 * 86400 + 1)], durable=True))
        await journal.close()

    play(script)
    assert problems(path) == []
    with JournalReader(path) as reader:
        assert reader.audit()[0]["created_at"] == utc_text(1770301818.0)
    tamper(path, "DELETE FROM audit_log_t WHERE rowid = (SELECT min(rowid) FROM audit_log_t)")
    assert problems(path)


@pytest.mark.accepts("S44")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log_t SET actor = 'eve' WHERE rowid = 5",
        "DELETE FROM audit_log_t WHERE rowid = 5",
        "DELETE FROM audit_log_t WHERE rowid = 4",
        "DELETE FROM audit_log_t WHERE rowid <= 5",
        "DELETE FROM audit_log_t WHERE rowid >= 6",
        "DELETE FROM audit_log_t",
        "UPDATE audit_log_t SET rowid = 99 WHERE rowid = 5",
        "INSERT INTO audit_log_t SELECT 'forged', actor, action, target_type, target_id, label,"
        " created_at, details_json, prev_hash, hash FROM audit_log_t WHERE rowid = 5",
        "INSERT INTO audit_log_t (rowid, audit_id, prev_hash, hash) VALUES (1, 'forged', 'a', 'b')",
    ],
)
def test_after_pruning_every_change_is_found_too(written, opened, path, statement):
    written(*(Batch(audit=[entry(n)], durable=True) for n in range(7)))

    async def script():
        journal = opened(keep=Keep(audit_age=100 * DAY))
        assert await journal.prune(1770301815.0 + 3 + 100 * DAY) == 3
        await journal.close()

    play(script)
    assert problems(path) == []
    tamper(path, statement)
    assert problems(path)


def test_checking_while_the_supervisor_writes_raises_no_false_alarm(opened, path):
    async def script():
        journal = opened()
        await journal.append(Batch(audit=[entry(0)], durable=True))
        done = asyncio.Event()

        async def write():
            for number in range(1, 150):
                await journal.append(Batch(audit=[entry(number)], durable=True))
            done.set()

        async def check():
            while not done.is_set():
                assert await asyncio.to_thread(problems, path) == []

        await asyncio.gather(write(), check())
        await journal.close()

    play(script)


def test_an_empty_audit_is_whole(written):
    assert problems(written(Batch())) == []
