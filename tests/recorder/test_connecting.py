"""One connection, and each way in which a database can fail us, on real servers."""

from __future__ import annotations

import socket
import threading

import pytest
from sqlalchemy import text

from servers import free_port
from uphold.errors import StoreUnavailable
from uphold.recorder.connecting import Store

CANARY = "canary"


@pytest.fixture(params=["mariadb", "postgresql", "sqlite"])
def any_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/copy.db"
    return request.getfixturevalue(request.param).fresh()


def ask(url, statement="SELECT 1", **options):
    with Store(url, **options) as store, store.begin() as connection:
        result = connection.execute(text(statement))
        return result.scalar() if result.returns_rows else None


def write_and(store, then):
    with store.begin() as connection:
        connection.execute(text("INSERT INTO kept VALUES (1)"))
        then(connection)


def failure(url, statement="SELECT 1", **options):
    with pytest.raises(StoreUnavailable) as caught:
        ask(url, statement, **options)
    found = caught.value
    assert found.remedy
    assert CANARY not in f"{found.message} {found.remedy} {found!r}"
    return found


def test_what_is_written_in_a_transaction_is_there_in_the_next(any_url):
    with Store(any_url) as store:
        with store.begin() as connection:
            connection.execute(text("CREATE TABLE kept (id INTEGER)"))
        with store.begin() as connection:
            connection.execute(text("INSERT INTO kept VALUES (1)"))
    assert ask(any_url, "SELECT count(*) FROM kept") == 1


def test_what_failed_halfway_leaves_nothing_and_the_next_works(any_url):
    with Store(any_url) as store:
        with store.begin() as connection:
            connection.execute(text("CREATE TABLE kept (id INTEGER)"))
        with pytest.raises(ZeroDivisionError):
            write_and(store, lambda _: 1 / 0)
        with pytest.raises(StoreUnavailable):
            write_and(store, lambda connection: connection.execute(text("SELECT * FROM nowhere")))
        with store.begin() as connection:
            assert connection.execute(text("SELECT count(*) FROM kept")).scalar() == 0


@pytest.mark.accepts("C-099", "B-76")
def test_every_session_is_utc_whatever_the_server_thinks(mariadb, postgresql):
    url = mariadb.fresh()
    mariadb.run("SET GLOBAL time_zone = '+05:00'")
    try:
        assert ask(url, "SELECT @@session.time_zone") == "+00:00"
        assert ask(url, "SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), NOW())") == 0
    finally:
        mariadb.run("SET GLOBAL time_zone = 'SYSTEM'")
    url = postgresql.fresh()
    database = url.rpartition("/")[2]
    postgresql.run(f"ALTER DATABASE {database} SET timezone = 'Asia/Karachi'")
    assert ask(url, "SHOW timezone") == "UTC"


def test_modes_of_a_server_that_change_what_statements_mean_do_not_reach_us(mariadb):
    before = mariadb.run("SELECT @@global.sql_mode")[0][0]
    mariadb.run("SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'")
    try:
        assert ask(mariadb.fresh(), 'SELECT "text"') == "text"
    finally:
        mariadb.run(f"SET GLOBAL sql_mode = '{before}'")


def test_a_wrong_password_is_said_to_be_one(server, url):
    database = url.rpartition("/")[2]
    found = failure(server.url(database, password="wrong-canary"))
    assert found.code == "UPH_STORE_DENIED"
    assert "'uphold'" in found.message
    assert "password" in found.remedy


def test_an_unknown_user_is_refused(server, url):
    database = url.rpartition("/")[2]
    assert failure(server.url(database, user="nobody")).code == "UPH_STORE_DENIED"


def test_a_database_that_is_not_there_is_named(server):
    found = failure(server.url("nowhere_at_all"))
    assert found.code == "UPH_STORE_NO_DATABASE"
    assert "'nowhere_at_all'" in found.message
    assert "CREATE DATABASE" in found.remedy


@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
def test_an_unknown_host_and_a_closed_port_are_unreachable(scheme):
    found = failure(f"{scheme}://u:canary-word@no-such-host.invalid/name")
    assert found.code == "UPH_STORE_UNREACHABLE"
    assert "no-such-host.invalid" in found.message
    closed = failure(f"{scheme}://u:canary-word@127.0.0.1:{free_port()}/name")
    assert closed.code == "UPH_STORE_UNREACHABLE"
    assert "refused" in closed.message.lower()


@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
def test_an_option_that_no_driver_knows_is_an_error_of_the_address(scheme):
    found = failure(f"{scheme}://u:canary-word@127.0.0.1:{free_port()}/n?no_such_option=canary")
    assert found.code == "UPH_STORE_ADDRESS"


@pytest.mark.accepts("B-87", "C-146")
@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
def test_somebody_who_accepts_and_never_answers_is_given_up(scheme):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        found = failure(f"{scheme}://u:canary-word@127.0.0.1:{port}/name", patience=0.5)
    assert found.code == "UPH_STORE_TIMEOUT"


@pytest.mark.accepts("B-87", "C-146")
def test_a_server_that_freezes_is_given_up_and_used_again_when_it_thaws(server, url):
    with Store(url, patience=4.0) as store:
        with store.begin() as connection:
            connection.execute(text("SELECT 1"))
        with server.frozen():
            with pytest.raises(StoreUnavailable) as caught, store.begin() as connection:
                connection.execute(text("SELECT 1"))
            assert caught.value.code == "UPH_STORE_TIMEOUT"
            assert failure(url, patience=1.0).code == "UPH_STORE_TIMEOUT"
    assert ask(url) == 1


@pytest.mark.accepts("B-87", "C-146")
def test_waiting_has_an_end_in_other_threads_too(server, url):
    seen = []
    with server.frozen():
        thread = threading.Thread(target=lambda: seen.append(failure(url, patience=0.5)))
        thread.start()
        thread.join(60)
    assert [each.code for each in seen] == ["UPH_STORE_TIMEOUT"]


@pytest.mark.accepts("C-146")
def test_a_statement_that_takes_too_long_is_cut(server, url):
    slow = "SELECT sleep(60)" if server.scheme == "mysql" else "SELECT pg_sleep(60)"
    found = failure(url, slow, patience=0.5)
    assert found.code == "UPH_STORE_TIMEOUT"
    assert ask(url) == 1


def test_a_lock_that_somebody_holds_does_not_hold_us(server, url):
    ask(url, "CREATE TABLE held (id INTEGER)")
    ask(url, "INSERT INTO held VALUES (1)")
    with Store(url) as holder, holder.begin() as connection:
        connection.execute(text("UPDATE held SET id = 2"))
        found = failure(url, "UPDATE held SET id = 3", patience=1.0)
    assert found.code == "UPH_STORE_TIMEOUT"


def test_a_server_that_was_restarted_is_found_again_without_an_error(server, url):
    with Store(url) as store:
        with store.begin() as connection:
            connection.execute(text("SELECT 1"))
        server.kill()
        server.start()
        with store.begin() as connection:
            assert connection.execute(text("SELECT 1")).scalar() == 1


def test_a_server_that_dies_in_a_transaction_is_unreachable(server, url):
    with Store(url) as store:
        with store.begin() as connection:
            connection.execute(text("CREATE TABLE kept (id INTEGER)"))
        try:
            with pytest.raises(StoreUnavailable) as caught:
                write_and(store, lambda _: server.kill())
        finally:
            if server.process is None:
                server.start()
        assert caught.value.code == "UPH_STORE_UNREACHABLE"
        with store.begin() as connection:
            assert connection.execute(text("SELECT 1")).scalar() == 1


def test_a_user_who_may_only_read_is_told_which_rights_are_missing(server, url):
    database = url.rpartition("/")[2]
    ask(url, "CREATE TABLE kept (id INTEGER)")
    reader = f"reader_{database}"
    if server.scheme == "mysql":
        server.run(f"CREATE USER '{reader}'@'127.0.0.1' IDENTIFIED BY 'canary-reader'")
        server.run(f"GRANT SELECT ON {database}.* TO '{reader}'@'127.0.0.1'")
    else:
        server.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'canary-reader'")
        server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}", database)
    address = server.url(database, user=reader, password="canary-reader")
    assert ask(address, "SELECT count(*) FROM kept") == 0
    for statement in ("INSERT INTO kept VALUES (1)", "CREATE TABLE other (id INTEGER)"):
        found = failure(address, statement)
        assert found.code == "UPH_STORE_READ_ONLY"
        assert "INSERT" in found.remedy


def test_a_table_that_is_not_there_or_other_than_thought_is_about_the_schema(any_url):
    found = failure(any_url, "SELECT * FROM nowhere_t")
    assert found.code == "UPH_STORE_SCHEMA"
    assert "nowhere_t" in found.message
    assert "uphold db migrate" in found.remedy


@pytest.mark.accepts("S43")
def test_values_of_a_statement_are_never_in_the_message(any_url):
    with Store(any_url) as store, pytest.raises(StoreUnavailable) as caught:
        with store.begin() as connection:
            connection.execute(text("INSERT INTO nowhere_t VALUES (:a)"), {"a": "canary-value"})
    assert "canary" not in caught.value.message


def test_a_file_in_no_folder_cannot_be_opened(tmp_path):
    found = failure(f"sqlite:///{tmp_path}/nowhere/copy.db")
    assert found.code == "UPH_STORE_NO_DATABASE"
    assert "folder" in found.remedy


def test_a_file_is_made_only_by_those_who_write(tmp_path):
    assert failure(f"sqlite:///{tmp_path}/copy.db", create=False).code == "UPH_STORE_NO_DATABASE"
    assert not (tmp_path / "copy.db").exists()
    assert ask(f"sqlite:///{tmp_path}/copy.db") == 1


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path):
    (tmp_path / "copy.db").write_text("no database\n" * 100)
    found = failure(f"sqlite:///{tmp_path}/copy.db", "SELECT * FROM sqlite_master")
    assert found.code == "UPH_STORE_NO_DATABASE"
