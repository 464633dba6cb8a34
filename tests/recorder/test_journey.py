"""A supervisor with a shared database, as people run it: real daemon, real server, outages."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from journeys.site import Site, eventually
from servers import free_port

CANARY = "canary-Pa55-of-the-database"
WORKERS = """
[workers.steady]
command = ["sleep", "1000"]
[workers.crashing]
command = ["sh", "-c", "sleep 0.2; exit 1"]
max_restarts = 100000
backoff = { base = "100ms", max = "100ms" }
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Shop(Site):
    """A site whose configuration may name a database."""

    def declares(self, url=None):
        store = f'[store]\nurl = "{url}"\n' if url else ""
        self.write(f'[supervisor]\nname = "shop"\nheartbeat_every = "2s"\n{store}{WORKERS}')

    def store(self, **wanted):
        """Wait until the copy stands so."""

        def look():
            found = self.status().get("store") or {}
            return found if all(found.get(key) == value for key, value in wanted.items()) else None

        return eventually(look, 120.0, f"a store that is {wanted}")

    def companions(self):
        rows = self.run("status", "--all", "--json").json["workers"]
        return {row["slot"]: row for row in rows if row["slot"].startswith("@")}

    def events(self):
        return [line.split()[2] for line in self.ok("events", "-n", "100000").out.splitlines()]

    def assert_secret(self):
        """The password stands in no output, no log, no event and no command line."""
        for text in self.outputs:
            assert CANARY not in text
        for name in ("logs", "spool"):
            for path in (self.home / name).iterdir():
                assert CANARY not in path.read_text(errors="replace"), path
        for name in ("runtime.json", "lock"):
            assert CANARY not in (self.home / name).read_text(), name
        with closing(sqlite3.connect(self.home / "journal.db")) as journal:
            for table in ("events_t", "audit_log_t", "jobs_t", "workers_t"):
                for row in journal.execute(f"SELECT * FROM {table}"):
                    assert CANARY not in str(row), table


def command_lines():
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found.append(Path(f"/proc/{entry}/cmdline").read_bytes())
            except OSError:
                continue
    return found


@pytest.fixture
def shop(tmp_path):
    made = Shop(tmp_path)
    yield made
    made.close()


def assert_copied(shop, server, url):
    """Every audit row and event is there exactly once, in order, and the end of it all too."""
    database = url.rpartition("/")[2]
    with closing(sqlite3.connect(shop.home / "journal.db")) as journal:
        for table, order, columns in (
            ("events_t", "seq", "seq, id, type, payload"),
            ("audit_log_t", "rowid", "audit_id, action, details_json, hash"),
            ("jobs_t", "job_id", "job_id, state"),
        ):
            there = journal.execute(f"SELECT {columns} FROM {table} ORDER BY {order}").fetchall()
            other = "position" if order == "rowid" else order
            copied = server.run(f"SELECT {columns} FROM {table} ORDER BY {other}", database)
            assert [tuple(row) for row in copied] == there, table
    last = "SELECT type FROM events_t ORDER BY seq DESC LIMIT 1"
    assert [tuple(row) for row in server.run(last, database)] == [("supervisor.stopped",)]
    status = server.run("SELECT status FROM supervisors_t", database)
    assert [tuple(row) for row in status] == [("terminated",)]


@pytest.mark.accepts(
    "P10", "P18", "P14", "E-43", "O-32", "S02", "S43", "B-66", "B-85", "B-86", "B-87"
)
def test_a_server_that_was_away_gets_everything_once_and_nobody_shows_the_password(
    shop, server, url
):
    shop.declares(url)
    shop.ok("start")
    shop.store(state="caught_up")
    assert "@recorder" not in shop.ok("status", "steady").out
    assert "caught up" in shop.run("status", "--all").out
    server.kill()
    try:
        for _ in range(3):
            shop.ok("restart", "steady")
        away = shop.store(state="unreachable")
        assert away["last_error"]["code"] == "UPH_STORE_UNREACHABLE"
        shop.until("steady", state="running")
        shop.run("doctor")
        shop.run("db", "status")
        shop.run("show", "@recorder", "--json")
        assert any(b"uphold.recorder" in line for line in command_lines())
        assert not any(CANARY.encode() in line for line in command_lines())
    finally:
        server.start()
    shop.store(state="caught_up", last_error=None)
    told = [name for name in shop.events() if name.startswith("store.")]
    assert told == ["store.caught_up", "store.unreachable", "store.caught_up"]
    shop.ok("stop")
    assert shop.processes() == []
    assert_copied(shop, server, url)
    shop.assert_secret()


@pytest.mark.accepts("P18", "B-85")
def test_a_wrong_password_is_one_clear_error_and_a_reload_mends_it(shop, mariadb):
    url = mariadb.fresh()
    shop.declares(url.replace(CANARY, "wrong-" + CANARY))
    shop.ok("start")
    refused = shop.store(state="refused")
    assert refused["last_error"]["code"] == "UPH_STORE_DENIED"
    shop.until("steady", state="running")
    shop.declares(url)
    shop.ok("reload")
    shop.store(state="caught_up")
    shop.ok("stop")
    assert_copied(shop, mariadb, url)
    shop.assert_secret()


def test_a_reload_brings_and_takes_the_recorder_and_leaves_the_pump(shop, mariadb):
    shop.declares()
    shop.ok("start")
    pump = shop.companions()["@pump"]["pid"]
    assert set(shop.companions()) == {"@pump"}
    assert "store" not in shop.status()
    shop.declares(mariadb.fresh())
    shop.ok("reload")
    shop.store(state="caught_up")
    assert set(shop.companions()) == {"@pump", "@recorder"}
    shop.declares()
    shop.ok("reload")
    eventually(lambda: set(shop.companions()) == {"@pump"}, what="no recorder")
    assert shop.companions()["@pump"]["pid"] == pump


@pytest.mark.accepts("P18")
def test_a_recorder_outlives_a_killed_supervisor_and_is_adopted(shop, mariadb):
    url = mariadb.fresh()
    shop.declares(url)
    shop.ok("start")
    shop.store(state="caught_up")
    recorder = shop.companions()["@recorder"]["pid"]
    shop.kill_supervisor()
    shop.ok("start")
    assert shop.companions()["@recorder"]["pid"] == recorder
    shop.ok("restart", "steady")
    shop.store(state="caught_up")
    shop.ok("stop")
    assert shop.processes() == []
    assert_copied(shop, mariadb, url)


@pytest.mark.accepts("B-87")
def test_a_database_that_is_not_there_delays_neither_start_nor_stop(shop):
    shop.declares(f"postgresql://u:{CANARY}@127.0.0.1:{free_port()}/nothing")
    shop.ok("start")
    shop.store(state="unreachable")
    shop.ok("stop")
    assert shop.processes() == []
    shop.assert_secret()


@pytest.mark.accepts("B-87", "C-146")
def test_a_server_that_never_answers_does_not_keep_a_supervisor_from_ending(shop, server, url):
    shop.declares(url)
    shop.ok("start")
    shop.store(state="caught_up")
    with server.frozen():
        shop.ok("restart", "steady")
        shop.ok("stop")
        assert shop.processes() == []
    shop.ok("start")  # and what was not copied then is copied now
    shop.store(state="caught_up")
    shop.ok("stop")
    assert_copied(shop, server, url)
