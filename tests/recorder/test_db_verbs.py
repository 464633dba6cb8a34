"""`uphold db status` and `uphold db replay` as people type them, with and without a supervisor."""

from __future__ import annotations

import json

import pytest

from recorder.ledgers import Copy, Desk, assert_same, some, write
from servers import free_port
from uphold.cli.checkups.stores import copy_of
from uphold.cli.main import main
from uphold.cli.rendering import store_line
from uphold.core.specs import Settings, StoreSpec, SupervisorSpec
from uphold.recorder.reports import Report, write_report


@pytest.fixture
def uphold(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("UPHOLD_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".uphold").mkdir(mode=0o700)

    def run(url, *words):
        (tmp_path / "uphold.toml").write_text(f'[store]\nurl = "{url}"\n[workers]\n')
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        assert "canary" not in out + err
        return code, out, err

    return run


@pytest.fixture
def home(tmp_path, uphold):
    return tmp_path / ".uphold"


@pytest.mark.accepts("P18")
def test_status_tells_what_waits_and_what_is_there(uphold, home, url):
    write(home / "journal.db", some(1, 20))
    code, out, _ = uphold(url, "db", "status")
    assert code == 0
    assert "waiting   20 events, 20 audit, 20 jobs; behind by" in out
    assert "holds     0 events, 0 audit, 0 jobs" in out
    Desk(home, url).copy()
    code, out, _ = uphold(url, "db", "status", "--json")
    told = json.loads(out)
    assert told["held"] == {"events": 20, "audit": 20, "jobs": 20, "lost": 0, "set_aside": 0}
    assert told["spool"]["pending"] == {"events": 0, "audit": 0, "jobs": 0}
    assert told["error"] is None


@pytest.mark.accepts("B-85", "B-87")
def test_status_of_a_database_that_is_away_says_so_and_what_waits(uphold, home):
    write(home / "journal.db", some(1, 3))
    code, out, _ = uphold(f"mysql://u:canary-secret@127.0.0.1:{free_port()}/x", "db", "status")
    assert code == 1
    assert "waiting   3 events, 3 audit, 3 jobs" in out
    assert "[UPH_STORE_UNREACHABLE]" in out


@pytest.mark.accepts("P18")
def test_replay_copies_everything_again_and_makes_nothing_twice(uphold, home, server, url):
    write(home / "journal.db", some(1, 25))
    for _ in range(2):
        code, out, _ = uphold(url, "db", "replay")
        assert code == 0
        assert out.startswith("75 rows were copied to ")
        assert_same(Copy(server, url), home / "journal.db")
    code, out, _ = uphold(url, "db", "replay", "--from", "21", "--json")
    assert json.loads(out)["rows"] == 5 + 25 + 25
    assert_same(Copy(server, url), home / "journal.db")


def test_options_of_one_verb_are_refused_by_another(uphold, home, url):
    code, _, err = uphold(url, "db", "status", "--from", "3")
    assert code == 2
    assert "replay" in err


def report(**changes):
    values = {
        "state": "caught_up",
        "since": "2026-01-01T00:00:00.000Z",
        "at": "2026-01-01T00:00:00.000Z",
        "shown_url": "mysql://db/shop",
    }
    return Report(**(values | changes))


AWAY = {
    "state": "unreachable",
    "pending": 7,
    "lag_seconds": 90.0,
    "lost": 2,
    "last_error": {"code": "UPH_STORE_UNREACHABLE", "message": "nobody.", "remedy": "Look."},
}


def test_the_line_for_people_says_how_far_behind_and_why():
    assert store_line({"store": report().view()}) == ["store mysql://db/shop: caught up"]
    first, *more = store_line({"store": report(**AWAY).view()})
    assert first.startswith("store mysql://db/shop: unreachable, 7 rows wait, behind by 1m")
    assert first.endswith("2 events lost")
    assert more == ["  nobody. [UPH_STORE_UNREACHABLE]", "  → Look."]
    assert store_line({}) == []


def test_the_doctor_tells_of_the_copy(home):
    store = StoreSpec(url="mysql://u:canary-secret@db/shop")
    settings = Settings(supervisor=SupervisorSpec(name="x"), workers=(), store=store)
    (fresh,) = copy_of(str(home), settings)
    assert (fresh.level, "nothing has been copied yet" in fresh.detail) == ("ok", True)
    write_report(home / "spool", report(**AWAY))
    away, lost = copy_of(str(home), settings)
    assert (away.level, away.remedy) == ("warn", "Look.")
    assert "7 rows wait" in away.detail
    assert "2 events were lost" in lost.detail
    write_report(home / "spool", report())
    (well,) = copy_of(str(home), settings)
    assert well.level == "ok"
    assert list(copy_of(str(home), Settings(supervisor=settings.supervisor, workers=()))) == []
