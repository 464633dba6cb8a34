"""The recorder's life, on a clock of its own and with a supervisor that says what a test says."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest

from recorder.documents import document, worker
from recorder.ledgers import ME, event, some, write
from uphold.core.events import Note, Recorded
from uphold.ports.journals import Batch
from uphold.recorder import recording
from uphold.recorder.listening import NOTHING, News
from uphold.recorder.recording import ALONE, Link, Recorder, record_once
from uphold.recorder.reports import earlier, read_report
from uphold.recorder.speaking import Voice


class Time:
    """A clock that goes on when somebody waits."""

    def __init__(self):
        self.now = 1000.0

    def mono(self):
        return self.now

    def wall(self):
        return 1_770_301_900.0 + self.now

    def pause(self, seconds):
        self.now += seconds


class Supervisor:
    """Stands for the one at the other end: news by time, and all it was asked."""

    def __init__(self, clock):
        self.clock = clock
        self.connected = True
        self.met = 1
        self.gone_at = 0.0
        self.news = []
        self.asked = []
        self.document = document(worker("api"), supervisor_id=ME)

    @property
    def alone_for(self):
        return 0.0 if self.connected else self.clock.now - self.gone_at

    def goes(self):
        self.connected, self.gone_at = False, self.clock.now

    def comes_back(self):
        self.connected, self.met = True, self.met + 1

    def wait(self, seconds):
        if self.news:
            return self.news.pop(0)
        self.clock.now += min(seconds, 3600.0)
        return NOTHING

    def gather(self, seconds):
        self.clock.now += seconds
        return NOTHING

    def ask(self, method, params=None):
        self.asked.append((method, params))
        return self.document if method == "status" else {"ok": True}

    def close(self):
        self.connected = False

    def told(self):
        return [params for method, params in self.asked if method == "store"]


class World:
    """One home with a journal, a database that is a file, and a recorder between them."""

    def __init__(self, folder):
        self.folder = folder
        self.database = folder / "shared/copy.db"
        self.clock = Time()
        self.supervisor = Supervisor(self.clock)
        self.said = []
        self.url = f"sqlite:///{self.database}"
        self.recorder = self.made()

    def made(self):
        link = Link(self.folder, self.url, self.clock, self.said.append, patience=5.0)
        report = earlier(self.folder / "spool", f"sqlite:///{self.database}", self.clock.wall())
        voice = Voice(self.folder / "spool", self.supervisor, self.clock, report)
        return Recorder(self.folder / "journal.db", link, self.supervisor, self.clock, voice)

    def rows(self, statement):
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(statement).fetchall()

    def report(self):
        return read_report(self.folder / "spool")


@pytest.fixture
def world(tmp_path):
    write(tmp_path / "journal.db", some(1, 5))
    (tmp_path / "shared").mkdir()
    return World(tmp_path)


@pytest.mark.accepts("O-32", "P18")
def test_it_copies_what_there_is_and_says_so(world):
    world.recorder.turn()
    assert world.rows("SELECT count(*) FROM events_t") == [(5,)]
    assert world.supervisor.asked[0] == ("sync", None)
    (told,) = world.supervisor.told()
    assert (told["state"], told["pending"], told["copied"]["events"]) == ("caught_up", 0, 5)
    assert world.report() == told


def test_rows_of_workers_come_with_the_first_copy_and_with_news_of_them(world):
    world.recorder.turn()
    assert world.rows("SELECT worker_id FROM workers_t ORDER BY 1") == [
        ("api",),
        ("supervisor_orion",),
    ]
    assert world.rows("SELECT id, status FROM supervisors_t") == [(ME, "active")]
    world.supervisor.document = document(
        worker("api", state="backoff", health="unhealthy"), supervisor_id=ME
    )
    world.supervisor.news.append(News(1, frozenset({"api"}), False))
    world.recorder.turn()
    assert world.rows("SELECT state FROM workers_t WHERE worker_id = 'api'") == [("backoff",)]


@pytest.mark.accepts("B-87", "E-43", "P18")
def test_it_tries_again_ever_more_seldom_while_the_database_is_away(world):
    (world.folder / "shared").rmdir()
    tried = []
    for _ in range(400):
        before = len([1 for method, _ in world.supervisor.asked if method == "sync"])
        world.recorder.turn()
        if len([1 for method, _ in world.supervisor.asked if method == "sync"]) > before:
            tried.append(world.clock.now)
    pauses = [round(later - before) for before, later in pairwise(tried)]
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(pauses[7:]) == {60}
    assert world.report()["state"] == "refused"
    assert world.report()["pending"] == 15
    assert world.report()["lag_seconds"] > 0
    assert sum("UPH_STORE_NO_DATABASE" in line for line in world.said) == 1
    (world.folder / "shared").mkdir()
    while world.report()["state"] != "caught_up":
        world.recorder.turn()
    assert world.rows("SELECT count(*) FROM events_t") == [(5,)]
    assert world.report()["last_error"] is None


def test_news_while_the_database_is_away_wait_for_the_next_try(world):
    (world.folder / "shared").rmdir()
    world.recorder.turn()
    asked = len(world.supervisor.asked)
    for _ in range(50):
        world.supervisor.news.append(News(events=1))
        world.recorder.turn()
    assert len(world.supervisor.asked) == asked


@pytest.mark.accepts("B-85", "E-43")
def test_packages_that_are_missing_are_one_error_and_are_used_once_they_are_there(
    world, monkeypatch
):
    from uphold.errors import StoreUnavailable

    def missing(_dialect):
        raise StoreUnavailable(
            "it cannot be imported.", code="UPH_STORE_EXTRA_MISSING", remedy="pip install it."
        )

    with monkeypatch.context() as patched:
        patched.setattr(recording, "require_packages", missing)
        for _ in range(20):
            world.recorder.turn()
        assert world.report()["last_error"]["code"] == "UPH_STORE_EXTRA_MISSING"
        assert world.report()["state"] == "refused"
        assert len(world.said) == 1
    while world.report()["state"] != "caught_up":
        world.recorder.turn()
    assert world.rows("SELECT count(*) FROM audit_log_t") == [(5,)]


def test_a_new_supervisor_is_told_at_once_how_the_copy_stands(world):
    world.recorder.turn()
    world.supervisor.goes()
    world.recorder.turn()
    world.supervisor.comes_back()
    before = len(world.supervisor.told())
    world.supervisor.news.append(News(events=1))
    world.recorder.turn()
    assert len(world.supervisor.told()) == before + 1


def test_alone_it_copies_the_last_words_and_ends_after_a_while(world):
    world.recorder.turn()
    world.supervisor.goes()
    began = world.clock.now
    ended = Note(type="supervisor.stopped", entity_type="supervisor", entity_id="supervisor")
    last = Recorded(seq=6, id="abcdef01-6", at=1770301830.0, event=ended, cause=None)
    write(world.folder / "journal.db", Batch(events=[last]))
    assert world.recorder.run() == 0
    assert ALONE <= world.clock.now - began < 2 * ALONE
    assert world.rows("SELECT type FROM events_t ORDER BY seq DESC LIMIT 1") == [
        ("supervisor.stopped",)
    ]
    assert world.rows("SELECT status FROM supervisors_t") == [("terminated",)]


def test_once_copies_what_there_is_and_says_how_the_supervisor_ended(world):
    ended = Note(type="supervisor.stopped", entity_type="supervisor", entity_id="supervisor")
    last = Recorded(seq=6, id="abcdef01-6", at=1770301830.0, event=ended, cause=None)
    write(world.folder / "journal.db", Batch(events=[last]))
    assert record_once(str(world.folder), world.url, world.clock, 9.0) == 0
    assert world.rows("SELECT count(*) FROM events_t") == [(6,)]
    assert world.rows("SELECT id, status FROM supervisors_t") == [(ME, "terminated")]
    assert world.report()["state"] == "caught_up"


def test_once_fails_with_a_line_when_nobody_answers(world, capfd):
    (world.folder / "shared").rmdir()
    assert record_once(str(world.folder), world.url, world.clock, 9.0) == 1
    assert "UPH_STORE_NO_DATABASE" in capfd.readouterr().err
    assert world.report()["state"] == "refused"


def test_many_rows_are_told_of_while_they_are_copied(world, monkeypatch):
    from uphold.recorder import copying

    more = [event(n) for n in range(6, 5006)]
    write(world.folder / "journal.db", Batch(events=more, durable=True))
    world.recorder.turn()
    assert world.rows("SELECT count(*), max(seq) FROM events_t") == [(5005, 5005)]
    states = [told["state"] for told in world.supervisor.told()]
    assert states == ["copying", "caught_up"]
    assert world.supervisor.told()[0]["pending"] == 5005 - copying.AT_ONCE


def test_a_report_tells_where_the_last_one_stopped(world):
    world.recorder.turn()
    again = earlier(world.folder / "spool", f"sqlite:///{world.database}", 0.0)
    assert again.copied == {"events": 5, "audit": 5, "jobs": 5}
    other = earlier(world.folder / "spool", "mysql://other/db", 0.0)
    assert other.copied == {"events": 0, "audit": 0, "jobs": 0}


def test_its_file_is_for_nobody_else(world):
    world.recorder.turn()
    assert (world.folder / "spool/recorder.json").stat().st_mode & 0o077 == 0
    assert (world.folder / "spool").stat().st_mode & 0o077 == 0
    assert json.loads((world.folder / "spool/recorder.json").read_text())["lost"] == 0
