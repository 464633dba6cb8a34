"""Migrations of real databases: empty ones, ones with tables of others, and several at once."""

from __future__ import annotations

import sqlite3
import threading

import pytest
from sqlalchemy import inspect, select, text

from uphold.errors import StoreUnavailable
from uphold.recorder.connecting import Store
from uphold.recorder.migrating import migrate, pending
from uphold.recorder.schema import EVENTS, METADATA, MIGRATIONS, WORKERS

WALL = 1_767_225_600.0


@pytest.fixture(params=["mariadb", "postgresql", "sqlite"])
def store(request, tmp_path):
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/copy.db"
    else:
        url = request.getfixturevalue(request.param).fresh()
    with Store(url) as opened:
        yield opened


def run(store, *statements):
    with store.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def rows(store, statement):
    with store.begin() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def columns(store, table):
    with store.begin() as connection:
        return {each["name"] for each in inspect(connection).get_columns(table)}


def refusal(store):
    with pytest.raises(StoreUnavailable) as caught:
        migrate(store, WALL)
    assert caught.value.code == "UPH_STORE_SCHEMA"
    assert caught.value.remedy
    return caught.value.message


def test_an_empty_database_gets_every_table_once(store):
    planned = pending(store)
    assert "make table workers_t" in planned
    assert pending(store) == planned
    assert migrate(store, WALL) == planned
    assert pending(store) == migrate(store, WALL) == []
    with store.begin() as connection:
        found = inspect(connection)
        assert set(METADATA.tables) <= set(found.get_table_names())
        assert found.get_view_names() == ["events_v"]
        (step,) = connection.execute(select(MIGRATIONS)).mappings()
    assert dict(step) == {
        "version": 1,
        "name": "tables of the shared database",
        "applied_at": "2026-01-01T00:00:00.000Z",
        "additive": 1,
    }


def test_rows_go_in_and_come_out_as_they_were(store):
    migrate(store, WALL)
    event = {
        "id": "e1",
        "supervisor_id": "s",
        "seq": 2**40,
        "type": "worker.ready",
        "entity_type": "worker",
        "entity_id": "Zähler-😀" * 40,
        "timestamp": "2026-03-29T01:30:00.123Z",
        "severity": "info",
        "payload": '{"a": "' + "x" * 100_000 + '"}',
        "cause": None,
    }
    with store.begin() as connection:
        connection.execute(EVENTS.insert(), event)
        assert dict(connection.execute(select(EVENTS)).mappings().one()) == event
    assert rows(store, "SELECT event_type FROM events_v") == [("worker.ready",)]


def test_workers_that_differ_by_a_capital_letter_have_a_row_each(store):
    migrate(store, WALL)
    with store.begin() as connection:
        connection.execute(WORKERS.insert(), [{"worker_id": "api"}, {"worker_id": "API"}])
    assert rows(store, "SELECT count(*) FROM workers_t") == [(2,)]


@pytest.mark.accepts("B-66")
def test_tables_of_an_application_are_extended_and_keep_their_rows(store):
    run(
        store,
        "CREATE TABLE workers_t (worker_id VARCHAR(64) PRIMARY KEY, pid INTEGER NOT NULL,"
        " poll_seconds INTEGER, colour VARCHAR(10), weight INTEGER NOT NULL DEFAULT 3)",
        "CREATE TABLE jobs_t (job_id VARCHAR(64) NOT NULL, task_id VARCHAR(64), note TEXT)",
        "INSERT INTO workers_t (worker_id, pid, colour) VALUES ('old', 1, 'red')",
        "INSERT INTO jobs_t VALUES ('j', 't', 'kept')",
    )
    done = migrate(store, WALL)
    assert "add column workers_t.details" in done
    assert "add column jobs_t.last_error" in done
    assert "add unique index jobs_t_key on jobs_t (job_id)" in done
    assert "make table workers_t" not in done
    for name in ("workers_t", "jobs_t"):
        assert set(METADATA.tables[name].columns.keys()) <= columns(store, name)
    assert rows(store, "SELECT worker_id, colour, weight, details FROM workers_t") == [
        ("old", "red", 3, None)
    ]
    assert rows(store, "SELECT note, state FROM jobs_t") == [("kept", None)]
    with store.begin() as connection:
        new = {"worker_id": "new", "pid": 2, "last_heartbeat_at": "2026-01-01T00:00:00.000Z"}
        connection.execute(WORKERS.insert(), new)
    assert migrate(store, WALL) == []


def test_a_table_that_was_dropped_later_is_made_again(store):
    migrate(store, WALL)
    run(store, "DROP TABLE jobs_t")
    assert migrate(store, WALL) == ["make table jobs_t"]
    assert "job_id" in columns(store, "jobs_t")


def test_a_table_without_our_key_is_refused_by_name_and_nothing_is_touched(store):
    run(store, "CREATE TABLE workers_t (name VARCHAR(64) PRIMARY KEY)")
    message = refusal(store)
    assert "workers_t has no column worker_id" in message
    assert columns(store, "workers_t") == {"name"}
    with store.begin() as connection:
        assert not inspect(connection).has_table("jobs_t")


def test_a_column_of_others_that_must_be_filled_is_refused_by_name(store):
    run(store, "CREATE TABLE jobs_t (job_id VARCHAR(64) PRIMARY KEY, owner VARCHAR(9) NOT NULL)")
    assert "jobs_t.owner must not be empty" in refusal(store)


def test_a_column_that_counts_by_itself_demands_nothing(store):
    counting = {
        "mysql": "id BIGINT AUTO_INCREMENT PRIMARY KEY",
        "postgresql": "id BIGSERIAL PRIMARY KEY",
        "sqlite": "id INTEGER PRIMARY KEY NOT NULL",
    }[store.dialect]
    run(store, f"CREATE TABLE jobs_t ({counting}, job_id VARCHAR(64))")
    assert "add unique index jobs_t_key on jobs_t (job_id)" in migrate(store, WALL)
    run(store, "INSERT INTO jobs_t (job_id) VALUES ('a')")


def test_several_problems_are_told_together(store):
    run(
        store,
        "CREATE TABLE workers_t (id INTEGER)",
        "CREATE TABLE jobs_t (job_id VARCHAR(64) PRIMARY KEY, a INTEGER NOT NULL)",
    )
    message = refusal(store)
    assert "workers_t has no column worker_id" in message
    assert "jobs_t.a " in message


def test_a_view_in_the_place_of_a_table_is_refused(store):
    run(store, "CREATE TABLE t (worker_id INTEGER)", "CREATE VIEW workers_t AS SELECT * FROM t")
    assert "workers_t is a view" in refusal(store)


def test_keys_that_stand_twice_are_a_clear_error(store):
    run(
        store,
        "CREATE TABLE jobs_t (job_id VARCHAR(64))",
        "INSERT INTO jobs_t VALUES ('a'), ('a')",
    )
    message = refusal(store)
    assert "unique index jobs_t_key on jobs_t (job_id)" in message


@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
def test_a_column_of_another_kind_is_refused_by_name(kind, request):
    with Store(request.getfixturevalue(kind).fresh()) as store:
        run(
            store,
            "CREATE TABLE jobs_t (job_id BIGINT PRIMARY KEY, created_at INTEGER)",
            "CREATE TABLE workers_t (worker_id VARCHAR(64) PRIMARY KEY, pid VARCHAR(9))",
        )
        message = refusal(store)
    assert "jobs_t.job_id is BIGINT, which cannot hold text" in message
    assert "jobs_t.created_at is INTEGER, which cannot hold times" in message
    assert "workers_t.pid is VARCHAR(9), which cannot hold numbers" in message


def test_kinds_that_postgresql_does_not_convert_are_refused(postgresql):
    with Store(postgresql.fresh()) as store:
        run(
            store,
            "CREATE TYPE state AS ENUM ('queued')",
            "CREATE TABLE jobs_t (job_id UUID PRIMARY KEY, state state, last_error JSONB)",
        )
        message = refusal(store)
    for column in ("job_id", "state", "last_error"):
        assert f"jobs_t.{column} is " in message


def test_kinds_that_mariadb_converts_are_taken(mariadb):
    with Store(mariadb.fresh()) as store:
        run(
            store,
            "CREATE TABLE jobs_t (job_id CHAR(36) PRIMARY KEY, state ENUM('queued','running'),"
            " last_error JSON, created_at VARCHAR(30), updated_at TIMESTAMP)",
        )
        assert "add column jobs_t.label" in migrate(store, WALL)
        with store.begin() as connection:
            row = {"job_id": "a", "state": "queued", "last_error": "{}"}
            moment = "2026-01-01T00:00:00.000Z"
            times = {"created_at": moment, "updated_at": moment}
            connection.execute(METADATA.tables["jobs_t"].insert(), {**row, **times})


def test_a_text_column_as_key_is_indexed_as_far_as_mariadb_can(mariadb):
    with Store(mariadb.fresh()) as store:
        run(store, "CREATE TABLE jobs_t (job_id TEXT)")
        assert "add unique index jobs_t_key on jobs_t (job_id)" in migrate(store, WALL)
        assert migrate(store, WALL) == []


@pytest.mark.accepts("T13")
def test_several_migrations_at_once_do_it_once(store):
    address, results, gate = store.address, [], threading.Barrier(4)

    def attempt():
        with Store(address, patience=30) as mine:
            gate.wait(60)
            results.append(migrate(mine, WALL))

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert len(results) == 4
    assert sorted(map(bool, results)) == [False, False, False, True]
    assert rows(store, "SELECT count(*) FROM schema_migrations_t") == [(1,)]


def test_steps_of_a_newer_uphold_are_fine_if_they_only_added(store):
    migrate(store, WALL)
    run(store, "INSERT INTO schema_migrations_t VALUES (99, 'more', NULL, 1)")
    assert migrate(store, WALL) == []
    run(store, "INSERT INTO schema_migrations_t VALUES (100, 'other', NULL, 0)")
    with pytest.raises(StoreUnavailable) as caught:
        migrate(store, WALL)
    assert caught.value.code == "UPH_STORE_NEWER"


def test_somebody_elses_table_of_migrations_is_left_alone(store):
    run(
        store,
        "CREATE TABLE schema_migrations_t (version INTEGER PRIMARY KEY, name VARCHAR(50))",
        "INSERT INTO schema_migrations_t VALUES (1, 'create users')",
    )
    with pytest.raises(StoreUnavailable, match="create users"):
        migrate(store, WALL)


def test_a_user_who_may_only_read_cannot_migrate_and_is_told_so(server, url):
    database = url.rpartition("/")[2]
    reader = f"reader_{database}"
    if server.scheme == "mysql":
        server.run(f"CREATE USER '{reader}'@'127.0.0.1' IDENTIFIED BY 'canary-reader'")
        server.run(f"GRANT SELECT ON {database}.* TO '{reader}'@'127.0.0.1'")
    else:
        server.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'canary-reader'")
    address = server.url(database, user=reader, password="canary-reader")
    with Store(address) as store:
        assert "make table workers_t" in pending(store)
        with pytest.raises(StoreUnavailable) as caught:
            migrate(store, WALL)
    assert caught.value.code == "UPH_STORE_READ_ONLY"
    assert "CREATE" in caught.value.remedy
    assert "canary" not in f"{caught.value.message}{caught.value.remedy}"


def test_the_rights_that_the_papers_name_are_enough(server, url):
    database = url.rpartition("/")[2]
    user = f"writer_{database}"
    if server.scheme == "mysql":
        server.run(f"CREATE USER '{user}'@'127.0.0.1' IDENTIFIED BY 'canary-writer'")
        rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, CREATE VIEW"
        server.run(f"GRANT {rights} ON {database}.* TO '{user}'@'127.0.0.1'")
    else:
        server.run(f"CREATE ROLE {user} LOGIN PASSWORD 'canary-writer'")
        server.run(f"GRANT USAGE, CREATE ON SCHEMA public TO {user}", database)
    with Store(server.url(database, user=user, password="canary-writer")) as store:
        assert migrate(store, WALL)
        run(store, "INSERT INTO workers_t (worker_id) VALUES ('a')", "DELETE FROM workers_t")
        assert rows(store, "SELECT count(*) FROM events_v") == [(0,)]


def test_tables_are_made_in_the_first_schema_of_the_search_path(postgresql):
    url = postgresql.fresh()
    database = url.rpartition("/")[2]
    postgresql.run("CREATE SCHEMA records", database)
    postgresql.run("CREATE TABLE public.workers_t (id INTEGER)", database)
    postgresql.run(f"ALTER DATABASE {database} SET search_path = records, public")
    with Store(url) as store:
        assert "make table workers_t" in migrate(store, WALL)
        assert rows(store, "SELECT count(*) FROM records.workers_t") == [(0,)]
    postgresql.run(f"ALTER DATABASE {database} SET search_path = nowhere")
    with Store(url) as store:
        assert "search_path" in refusal(store)


def test_a_journal_is_not_taken_for_a_shared_database(tmp_path):
    path = tmp_path / "journal.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA application_id = {0x75706864}")
    connection.close()
    with Store(f"sqlite:///{path}") as store:
        assert "the journal of a supervisor" in refusal(store)
