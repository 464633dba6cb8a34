from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from uphold.errors import StoreUnavailable
from uphold.journal.migrations import MIGRATIONS, Migration, migrate
from uphold.journal.reading import JournalReader
from uphold.journal.tables import TABLES
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, job, news, play, status


@pytest.fixture
def connection(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def applied(connection):
    return connection.execute("SELECT version, name, additive FROM schema_migrations_t").fetchall()


def test_each_step_runs_once_and_is_recorded(connection):
    for _ in range(3):
        migrate(connection, 1770301815.0)
    assert applied(connection) == [
        (1, "tables of the core", 0),
        (2, "changes of jobs are numbered", 1),
    ]
    at, _ = (row[0] for row in connection.execute("SELECT applied_at FROM schema_migrations_t"))
    assert at == "2026-02-05T14:30:15.000Z"


@pytest.mark.accepts("O-39")
def test_a_table_with_fewer_columns_is_extended_and_keeps_its_rows(connection, path, owner):
    connection.execute("CREATE TABLE workers_t (worker_id TEXT PRIMARY KEY, theirs TEXT)")
    connection.execute("INSERT INTO workers_t VALUES ('old', 'kept')")
    connection.execute("CREATE TABLE jobs_t (job_id TEXT PRIMARY KEY, state TEXT)")
    journal, rescued = open_journal(path, boot_id=BOOT, owner=owner, now=0.0)
    assert rescued is None
    assert set(columns(connection, "workers_t")) == {*TABLES["workers_t"], "theirs"}
    assert set(columns(connection, "jobs_t")) == {*TABLES["jobs_t"], "rev"}

    async def script():
        await journal.append(Batch(slots=[status()], jobs=[job()], events=[news(1)]))
        await journal.close()

    play(script)
    rows = connection.execute("SELECT worker_id, theirs FROM workers_t ORDER BY worker_id")
    assert rows.fetchall() == [("api", None), ("old", "kept"), ("supervisor_orion", None)]


def test_a_step_that_fails_leaves_nothing_behind(connection):
    def half(connection):
        connection.execute("CREATE TABLE half_t (a)")
        raise sqlite3.OperationalError("cut off")

    steps = (*MIGRATIONS, Migration(99, "half", True, half))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, 0.0, steps)
    assert columns(connection, "half_t") == []
    assert [version for version, *_ in applied(connection)] == [1, 2]


@pytest.mark.accepts("T22")
def test_a_journal_that_a_newer_version_only_added_to_is_used_as_it_is(written, opened, path):
    written(Batch(events=[news(1)]))
    with closing(sqlite3.connect(path, isolation_level=None)) as newer:

        def add(connection):
            connection.execute("ALTER TABLE events_t ADD COLUMN aura TEXT DEFAULT 'blue'")
            connection.execute("ALTER TABLE slots_t ADD COLUMN aura TEXT")
            connection.execute("CREATE TABLE auras_t (a)")

        migrate(newer, 0.0, (*MIGRATIONS, Migration(99, "auras", True, add)))

    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(2)], slots=[status()]))
        assert [event["seq"] for event in await journal.events()] == [1, 2]
        assert journal.recall().slots == {"api": status()}
        await journal.close()

    play(script)
    with closing(sqlite3.connect(path)) as newer:
        assert [version for version, *_ in applied(newer)] == [1, 2, 99]


@pytest.mark.accepts("T22")
def test_a_journal_that_a_newer_version_changed_is_refused_with_a_sentence(written, path, owner):
    written(Batch(events=[news(1)]))
    with closing(sqlite3.connect(path, isolation_level=None)) as newer:
        steps = (*MIGRATIONS, Migration(7, "turned round", False, lambda _: None))
        migrate(newer, 0.0, steps)
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable) as caught:
        open_journal(path, boot_id=BOOT, owner=owner, now=0.0)
    assert caught.value.code == "UPH_JOURNAL_NEWER"
    assert "step 7" in caught.value.message
    assert caught.value.remedy
    with pytest.raises(StoreUnavailable) as warned, JournalReader(path) as reader:
        reader.refuse_newer()
    assert (warned.value.code, warned.value.message) == (caught.value.code, caught.value.message)
    assert path.read_bytes() == before
    assert {file.name for file in path.parent.iterdir()} == {"journal.db", "reserve"}


def test_versions_rise_and_are_never_used_twice():
    versions = [step.version for step in MIGRATIONS]
    assert versions == sorted(set(versions))


def test_jobs_of_an_older_journal_are_numbered_in_the_order_they_changed(connection, opened):
    migrate(connection, 0.0, MIGRATIONS[:1])
    for name, at in (("b", "2026-02"), ("a", "2026-01"), ("c", "2026-02")):
        connection.execute(
            "INSERT INTO jobs_t (job_id, state, updated_at) VALUES (?, 'failed', ?)", (name, at)
        )
    opened()
    rows = connection.execute("SELECT job_id, rev FROM jobs_t ORDER BY rev")
    assert rows.fetchall() == [("a", 1), ("b", 2), ("c", 3)]


def test_every_change_of_a_job_gets_a_number_of_its_own_whoever_makes_it(connection):
    migrate(connection, 0.0)
    for name in "abc":
        connection.execute("INSERT INTO jobs_t (job_id, state) VALUES (?, 'running')", (name,))
    connection.execute("UPDATE jobs_t SET state = 'failed' WHERE job_id IN ('a', 'b')")
    rows = connection.execute("SELECT job_id, rev FROM jobs_t ORDER BY job_id")
    assert rows.fetchall() == [("a", 4), ("b", 5), ("c", 3)]
