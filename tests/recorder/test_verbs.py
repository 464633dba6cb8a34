"""`uphold verify-db` and `uphold db` as people type them, on real databases."""

from __future__ import annotations

import json
import stat

import pytest

from servers import free_port
from uphold.cli.main import main


@pytest.fixture
def uphold(tmp_path, monkeypatch, capsys):
    """Run a command in a folder whose configuration names this database."""
    monkeypatch.delenv("UPHOLD_HOME", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(url, *words, tables=("jobs_t", "workers_t")):
        store = f'[store]\nurl = "{url}"\ncritical_tables = {json.dumps(tables)}\n' if url else ""
        path = tmp_path / "uphold.toml"
        path.write_text(f'[supervisor]\nname = "orion"\n{store}[workers]\n')
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        assert "canary" not in out + err
        return code, out, err

    return run


@pytest.fixture(params=["mariadb", "postgresql", "sqlite"])
def any_url(request):
    if request.param == "sqlite":
        return "sqlite:///copy.db"
    return request.getfixturevalue(request.param).fresh()


@pytest.mark.accepts("C-096", "C-097", "C-098", "C-099", "C-100", "C-101", "C-T29")
def test_a_fresh_database_is_migrated_and_verified(uphold, any_url, tmp_path):
    code, out, _ = uphold(any_url, "db", "migrate")
    assert code == 0
    assert "make table workers_t" in out
    assert uphold(any_url, "db", "migrate")[1].endswith("is up to date.\n")
    code, out, _ = uphold(any_url, "verify-db")
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["ok"] * 5
    assert lines[5] == "5 checks: 5 ok"
    (report,) = (tmp_path / ".uphold/reports").iterdir()
    assert lines[6] == f"report: {report}"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert json.loads(report.read_text())["ok"] is True


@pytest.mark.accepts("C-101", "B-67")
def test_what_is_not_ok_is_told_with_a_remedy_and_exit_code_1(uphold, any_url):
    uphold(any_url, "db", "migrate")
    code, out, _ = uphold(any_url, "verify-db", tables=("jobs_t", "segments_t"))
    assert code == 1
    assert "fail  table segments_t" in out
    assert "→ Create it" in out
    assert "5 checks: 4 ok, 1 fail" in out


@pytest.mark.accepts("C-103", "C-T31")
def test_the_label_and_the_folder_of_a_report_can_be_told(uphold, any_url, tmp_path):
    uphold(any_url, "db", "migrate")
    words = ("verify-db", "--json", "--label", "night shift", "--report", "there/reports")
    code, out, _ = uphold(any_url, *words)
    report = json.loads(out)
    assert (code, report["ok"], report["label"]) == (0, True, "night shift")
    assert report["report"].startswith(f"{tmp_path}/there/reports/db_verification_orion_")
    assert report["report"].endswith("_night_shift.json")
    assert not (tmp_path / ".uphold").exists()


@pytest.mark.parametrize("label", ["a/b", "x\n", "", "a" * 101, "ü"])
def test_a_label_that_is_none_is_refused_before_anything_happens(uphold, tmp_path, label):
    code, _, err = uphold(None, "verify-db", "--label", label)
    assert (code, "UPH_USAGE" in err) == (2, True)
    assert not (tmp_path / ".uphold").exists()


@pytest.mark.accepts("C-102", "C-T30")
def test_a_server_that_is_not_there_fails_in_one_sentence_each(uphold):
    url = f"mysql://u:canary-word@127.0.0.1:{free_port()}/name"
    code, out, _ = uphold(url, "verify-db")
    assert code == 1
    assert "fail  connection" in out
    assert out.count("skip") == 5  # four checks, and the count of them
    code, _, err = uphold(url, "db", "migrate")
    assert code == 1
    assert "[UPH_STORE_UNREACHABLE]" in err
    assert len(err.splitlines()) == 2


@pytest.mark.accepts("C-146")
def test_how_long_to_wait_can_be_told(uphold, server, url):
    with server.frozen():
        code, out, _ = uphold(url, "verify-db", "--timeout", "500ms")
        assert code == 1
        assert "did not answer in time" in out
        code, _, err = uphold(url, "db", "migrate", "--timeout", "500ms")
        assert (code, "[UPH_STORE_TIMEOUT]" in err) == (1, True)


@pytest.mark.parametrize("words", [("verify-db",), ("db", "url"), ("db", "migrate")])
def test_without_a_shared_database_that_is_said(uphold, words):
    code, _, err = uphold(None, *words)
    assert code == 6
    assert "no shared database is configured" in err
    assert "[store]" in err


@pytest.mark.accepts("S43")
def test_the_address_is_shown_without_its_password(uphold):
    url = "postgresql://orion:canary-word@db.example:5433/shop?sslmode=require&x=canary"
    assert uphold(url, "db", "url") == (0, "postgresql://db.example:5433/shop\n", "")
    assert json.loads(uphold(url, "db", "url", "--json")[1]) == {
        "schema": 1,
        "url": "postgresql://db.example:5433/shop",
        "dialect": "postgresql",
    }


def test_a_dry_run_lists_the_same_and_changes_nothing(uphold, server, url):
    _, planned, _ = uphold(url, "db", "migrate", "--dry-run", "--json")
    changes = json.loads(planned)["changes"]
    assert "make table workers_t" in changes
    _, done, _ = uphold(url, "db", "migrate", "--json")
    assert json.loads(done)["changes"] == changes


def test_an_option_of_another_verb_is_a_mistake(uphold):
    code, _, err = uphold("sqlite:///x.db", "db", "url", "--dry-run")
    assert code == 2
    assert "`uphold db migrate` does" in err


def test_a_report_that_cannot_be_kept_is_told_and_fails(uphold, tmp_path):
    (tmp_path / "taken").write_text("a file")
    uphold("sqlite:///copy.db", "db", "migrate")
    code, out, err = uphold("sqlite:///copy.db", "verify-db", "--report", "taken")
    assert code == 1
    assert "5 checks: 5 ok" in out
    assert "the report cannot be kept in taken" in err
