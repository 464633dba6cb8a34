"""Verification of real databases: healthy ones, and each way not to be."""

from __future__ import annotations

import json
import socket
import sys

import pytest
from sqlalchemy import text

from servers import free_port
from uphold.recorder import asking
from uphold.recorder.connecting import Store
from uphold.recorder.migrating import migrate
from uphold.recorder.verifying import report_name, verify, write_report
from uphold.testing.waiting import until

WALL = 1_767_225_600.0
TABLES = ("jobs_t", "workers_t")


def wall():
    return WALL


def report_on(url, tables=TABLES, **more):
    report = verify(url, tables=tables, supervisor="orion", wall=wall, **more)
    assert "canary" not in json.dumps(report)
    assert report["ok"] == all(check["result"] == "ok" for check in report["checks"])
    return report


def results(report):
    return {check["check"]: check["result"] for check in report["checks"]}


def check_of(report, name):
    (found,) = [check for check in report["checks"] if check["check"] == name]
    return found


def error_of(report, name):
    error = check_of(report, name)["error"]
    assert error["remedy"]
    return error


@pytest.fixture(params=["mariadb", "postgresql", "sqlite"])
def any_url(request, tmp_path):
    if request.param == "sqlite":
        return filled(f"sqlite:///{tmp_path}/copy.db")
    return filled(request.getfixturevalue(request.param).fresh())


def filled(url):
    with Store(url) as store:
        migrate(store, WALL)
        with store.begin() as connection:
            connection.execute(text("INSERT INTO jobs_t (job_id) VALUES ('a'), ('b')"))
    return url


@pytest.mark.accepts("C-096", "C-097", "C-098", "C-099", "C-101", "C-T29", "B-67")
def test_a_healthy_database_passes_every_check(any_url):
    report = report_on(any_url)
    assert report["ok"] is True
    assert results(report) == {
        "connection": "ok",
        "server": "ok",
        "table jobs_t": "ok",
        "table workers_t": "ok",
        "time zone": "ok",
    }
    assert check_of(report, "table jobs_t")["rows"] == 2
    assert check_of(report, "table workers_t")["rows"] == 0
    server = check_of(report, "server")
    assert server["database"] == any_url.rpartition("/")[2] or any_url.endswith(server["database"])
    assert server["server_time"].endswith("Z")
    assert report["timestamp"] == "2026-01-01T00:00:00.000Z"


@pytest.mark.accepts("C-096")
def test_the_connection_is_a_real_one_and_is_closed_again(server, url):
    name = url.rpartition("/")[2]  # others of this session may have theirs

    def connections():
        if server.scheme == "mysql":
            statement = f"SELECT count(*) FROM information_schema.processlist WHERE db = '{name}'"
        else:
            statement = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
        return server.run(statement)[0][0]

    assert report_on(url, tables=())["ok"]
    until(lambda: connections() == 0, within=30, what="the end of our connections")


@pytest.mark.accepts("C-098", "C-101", "B-67")
def test_a_missing_table_fails_alone(any_url):
    report = report_on(any_url, tables=("jobs_t", "segments_t", "workers_t"))
    assert report["ok"] is False
    assert [name for name, result in results(report).items() if result != "ok"] == [
        "table segments_t"
    ]
    error = error_of(report, "table segments_t")
    assert error["code"] == "UPH_STORE_SCHEMA"
    assert "critical_tables" in error["remedy"]


def test_a_missing_table_of_ours_is_made_by_a_migration(tmp_path):
    (tmp_path / "copy.db").touch()
    report = report_on(f"sqlite:///{tmp_path}/copy.db", tables=("jobs_t",))
    assert "uphold db migrate" in error_of(report, "table jobs_t")["remedy"]


@pytest.mark.accepts("C-099")
def test_another_zone_of_the_server_is_told_apart_from_the_sessions(mariadb, postgresql):
    url = mariadb.fresh()
    mariadb.run("SET GLOBAL time_zone = '+05:00'")
    try:
        zone = check_of(report_on(url, tables=()), "time zone")
    finally:
        mariadb.run("SET GLOBAL time_zone = 'SYSTEM'")
    assert (zone["result"], zone["session_time_zone"], zone["server_time_zone"]) == (
        "ok",
        "+00:00",
        "+05:00",
    )
    url = postgresql.fresh()
    postgresql.run(f"ALTER DATABASE {url.rpartition('/')[2]} SET timezone = 'Asia/Karachi'")
    report = report_on(url, tables=())
    zone = check_of(report, "time zone")
    assert (zone["session_time_zone"], zone["server_time_zone"]) == ("UTC", "Asia/Karachi")
    assert "do not ask for UTC" in zone["detail"]
    assert abs(check_of(report, "server")["ahead_seconds"]) > 0


@pytest.mark.accepts("C-099")
def test_a_session_that_is_not_utc_fails(server, url, monkeypatch):
    elsewhere = {"mysql": "'+05:00', 18000, 'SYSTEM'", "postgresql": "'Asia/Karachi', 18000, 'UTC'"}
    statements = {kind: f"SELECT {values}" for kind, values in elsewhere.items()}
    monkeypatch.setattr(asking, "_TIME_ZONE", statements)
    report = report_on(url, tables=())
    assert results(report) == {"connection": "ok", "server": "ok", "time zone": "fail"}
    assert error_of(report, "time zone")["code"] == "UPH_STORE_TIME_ZONE"


@pytest.mark.accepts("C-102", "C-T30", "B-87")
def test_a_server_that_is_down_is_a_result(server, url):
    server.kill()
    try:
        report = report_on(url)
    finally:
        server.start()
    assert results(report) == {
        "connection": "fail",
        "server": "skip",
        "table jobs_t": "skip",
        "table workers_t": "skip",
        "time zone": "skip",
    }
    assert error_of(report, "connection")["code"] == "UPH_STORE_UNREACHABLE"


@pytest.mark.accepts("C-102", "C-146", "B-87")
def test_a_server_that_is_frozen_is_a_result(server, url):
    with server.frozen():
        report = report_on(url, patience=0.5)
    assert error_of(report, "connection")["code"] == "UPH_STORE_TIMEOUT"
    assert set(results(report).values()) == {"fail", "skip"}


@pytest.mark.accepts("C-102", "B-87")
def test_a_server_that_goes_away_in_the_middle_ends_the_asking(any_url, monkeypatch):
    asked = []

    def rows(self, name):
        asked.append(name)
        raise asking.failure("UPH_STORE_TIMEOUT", self._address, "no answer within 1 s")

    monkeypatch.setattr(asking.Questions, "rows", rows)
    report = report_on(any_url)
    assert asked == list(TABLES)  # it answers other questions, so the next is asked
    assert results(report)["time zone"] == "ok"

    def gone(self):
        raise asking.failure("UPH_STORE_UNREACHABLE", self._address, "refused")

    def dying(self, name):
        monkeypatch.setattr(asking.Questions, "connection", gone)
        return rows(self, name)

    asked.clear()
    monkeypatch.setattr(asking.Questions, "rows", dying)
    report = report_on(any_url)
    assert asked == ["jobs_t"]
    assert results(report)["table workers_t"] == results(report)["time zone"] == "skip"


@pytest.mark.parametrize("kind", ["password", "database", "user"])
def test_who_is_refused_learns_why(server, url, kind):
    database = url.rpartition("/")[2]
    address, code = {
        "password": (server.url(database, password="canary-wrong"), "UPH_STORE_DENIED"),
        "user": (server.url(database, user="nobody"), "UPH_STORE_DENIED"),
        "database": (server.url("nowhere"), "UPH_STORE_NO_DATABASE"),
    }[kind]
    assert error_of(report_on(address), "connection")["code"] == code


@pytest.mark.parametrize("scheme", ["mysql", "postgresql"])
def test_nobody_there_and_no_such_host_are_results(scheme):
    closed = report_on(f"{scheme}://u:canary-word@127.0.0.1:{free_port()}/n")
    assert error_of(closed, "connection")["code"] == "UPH_STORE_UNREACHABLE"
    unknown = report_on(f"{scheme}://u:canary-word@no-such-host.invalid/n")
    assert error_of(unknown, "connection")["code"] == "UPH_STORE_UNREACHABLE"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        mute = report_on(f"{scheme}://u:canary-word@127.0.0.1:{port}/n", patience=0.5)
    assert error_of(mute, "connection")["code"] == "UPH_STORE_TIMEOUT"


def test_a_user_who_may_read_is_enough(server, url):
    database = filled(url).rpartition("/")[2]
    reader = f"reader_{database}"
    if server.scheme == "mysql":
        server.run(f"CREATE USER '{reader}'@'127.0.0.1' IDENTIFIED BY 'canary-reader'")
        server.run(f"GRANT SELECT ON {database}.jobs_t TO '{reader}'@'127.0.0.1'")
    else:
        server.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'canary-reader'")
        server.run(f"GRANT SELECT ON jobs_t TO {reader}", database)
    report = report_on(server.url(database, user=reader, password="canary-reader"))
    assert results(report)["table jobs_t"] == "ok"
    assert results(report)["table workers_t"] == "fail"
    assert error_of(report, "table workers_t")["code"] == "UPH_STORE_DENIED"


@pytest.mark.parametrize(
    "url", [None, "nonsense", "mysql://u:canary@host", "sqlite:////nowhere/at/all/x.db"]
)
def test_no_address_or_one_that_leads_nowhere_is_a_result(url):
    report = report_on(url)
    assert set(results(report).values()) == {"fail", "skip"}
    assert error_of(report, "connection")


def test_a_file_that_is_not_there_is_not_made(tmp_path):
    report = report_on(f"sqlite:///{tmp_path}/copy.db")
    assert error_of(report, "connection")["code"] == "UPH_STORE_NO_DATABASE"
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_a_result(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymysql", None)
    report = report_on("mysql://host/name")
    assert error_of(report, "connection")["code"] == "UPH_STORE_EXTRA_MISSING"


def test_a_mistake_of_ours_is_a_result_too(tmp_path, monkeypatch):
    def broken(self):
        raise ZeroDivisionError("oops")

    (tmp_path / "x.db").touch()
    monkeypatch.setattr(asking.Questions, "time_zone", broken)
    report = report_on(f"sqlite:///{tmp_path}/x.db", tables=())
    assert check_of(report, "time zone")["error"]["code"] == "UPH_INTERNAL"


@pytest.mark.accepts("S42")
@pytest.mark.parametrize("name", ["jobs_t; DROP TABLE jobs_t", 'x"', "x` -- ", "", "JOBS"])
def test_names_of_tables_never_become_statements(any_url, name):
    report = report_on(any_url, tables=(name, "jobs_t"))
    assert results(report)[f"table {name}"] == "fail"
    assert check_of(report, "table jobs_t")["rows"] == 2


@pytest.mark.accepts("C-100", "C-103", "C-T31")
def test_the_report_carries_the_label_in_its_name_too(tmp_path):
    report = report_on(None, label="night shift_2-a")
    assert report["label"] == "night shift_2-a"
    path = write_report(report, tmp_path)
    assert path.name == "db_verification_orion_20260101T000000000Z_night_shift_2-a.json"
    assert json.loads(path.read_text()) == report


def test_the_name_of_a_report_stays_in_its_folder():
    report = {"timestamp": "2026-01-01T00:00:00.000Z", "supervisor_id": "../a b/é", "label": None}
    name = report_name(report)
    assert "/" not in name
    assert name == "db_verification_.._a_b__20260101T000000000Z.json"


@pytest.mark.accepts("S43")
def test_other_known_secrets_stay_out_of_a_report():
    report = verify(
        "mysql://canary-user:canary-word@no-such-host.invalid/canary-name",
        tables=(),
        supervisor="orion",
        wall=wall,
        secrets=["canary-user", "canary-name"],
    )
    assert "canary" not in json.dumps(report)
