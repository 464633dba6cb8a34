"""The example questions of `uphold sql`, asked of real servers."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing

import pytest
from sqlalchemy import insert, text

import asking
from uphold.core.times import utc_text
from uphold.journal.examples import examples
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.recorder.connecting import Store
from uphold.recorder.migrating import migrate
from uphold.recorder.schema import METADATA

TABLES = ("supervisors_t", "workers_t", "jobs_t", "audit_log_t", "events_t")


@pytest.fixture
def lived(tmp_path):
    """A journal with a past."""
    path = tmp_path / "journal.db"

    async def live():
        owner = Owner(name="orion", hostname="h", pid=1, id=asking.OWNER_ID)
        journal, _ = open_journal(path, boot_id="b", owner=owner, now=time.time())
        await journal.append(asking.past())
        await journal.close()

    asyncio.run(live())
    return path


@pytest.fixture
def store(url, lived):
    """A shared database with the same rows, and with a supervisor that is heard of."""
    with Store(url) as opened:
        migrate(opened, time.time())
        with closing(sqlite3.connect(lived)) as journal, opened.begin() as connection:
            journal.row_factory = sqlite3.Row
            for name in TABLES:
                _copy(journal, connection, METADATA.tables[name])
            now = utc_text(time.time())
            lively = {"id": "other", "name": "lyra", "status": "active", "last_heartbeat": now}
            connection.execute(insert(METADATA.tables["supervisors_t"]), lively)
        yield opened


def _copy(journal, connection, table):
    found = [dict(row) for row in journal.execute(f"SELECT * FROM {table.name}")]
    known = set(table.columns.keys())
    rows = [{key: value for key, value in row.items() if key in known} for row in found]
    if "supervisor_id" in known:
        rows = [{"supervisor_id": asking.OWNER_ID, **row} for row in rows]
    connection.execute(insert(table), rows)


@pytest.mark.accepts("E-33")
def test_a_server_answers_every_question_as_the_journal_does(store):
    for example in examples(store.dialect):
        with store.begin() as connection:
            rows = connection.execute(text(example.asks.replace(":", r"\:"))).mappings()
            asking.check(example.name, [dict(row) for row in rows])
