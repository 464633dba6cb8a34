from __future__ import annotations

import contextlib
import json
import os
import socket

import pytest

from uphold.cli.records import read_record
from uphold.control.client import Connection


@pytest.mark.accepts("R-06", "D-19", "D-33", "D-34")
def test_a_live_supervisor_answers_for_itself(uphold, supervisor, document, row):
    supervisor.answers["status"] = document(row("api"), row("web"))
    result = uphold("status")
    assert result.code == 0
    assert result.out.splitlines()[1].startswith("api")
    assert supervisor.asked("status") == {"names": [], "all": False}


@pytest.mark.accepts("D-36", "R-17")
def test_json_has_these_keys_in_this_order(uphold, supervisor, document, row):
    supervisor.answers["status"] = document(row())
    shown = uphold("status", "--json")
    assert shown.json == document(row())
    assert list(shown.json) == ["schema", "supervisor", "workers"]
    assert list(shown.json["workers"][0]) == list(row())


def test_usage_is_read_for_the_rows_that_are_printed(uphold, supervisor, document, row):
    supervisor.answers["status"] = document(row(pid=os.getpid()), row("gone", pid=None))
    mine, gone = uphold("status", "--json").json["workers"]
    assert mine["rss_bytes"] > 1_000_000
    assert mine["cpu_percent"] >= 0
    assert (gone["rss_bytes"], gone["cpu_percent"]) == (None, None)


def test_names_and_companions_are_asked_for(uphold, supervisor, document, row):
    supervisor.answers["status"] = document(row())
    uphold("status", "api", "--all")
    assert supervisor.asked("status") == {"names": ["api"], "all": True}


@pytest.mark.accepts("E-25")
def test_an_unknown_name_exits_with_5(uphold, supervisor):
    supervisor.fails("status", "UPH_WORKER_UNKNOWN", 5, "no worker is called 'apo'.")
    assert uphold("status", "apo").code == 5


@pytest.mark.accepts("E-25", "D-20")
def test_one_bad_worker_is_seen_in_the_exit_code_and_named(uphold, supervisor, document, row):
    bad = row("mailer", state="failed", health="unhealthy", why="exit code 3, 10 times")
    supervisor.answers["status"] = document(row(), bad, health="degraded")
    result = uphold("status")
    assert result.code == 150
    assert result.out.splitlines()[1].startswith("mailer  failed")
    assert "exit code 3, 10 times" in result.out


def test_quiet_leaves_only_the_exit_code(uphold, supervisor, document, row):
    supervisor.answers["status"] = document(row(state="starting"))
    assert uphold("status", "-q") == (151, "", "")


@pytest.mark.accepts("D-39", "E-25")
@pytest.mark.parametrize("watch", [(), ("--watch",)], ids=["once", "watched"])
def test_a_supervisor_that_does_not_answer_is_not_reported_as_running(uphold, supervisor, watch):
    """Silence: it lives, its socket takes the request, and nothing comes back."""
    result = uphold("status", "--timeout", "100ms", *watch)
    assert result.code == 4
    assert "[UPH_SUPERVISOR_SILENT]" in result.err


@pytest.mark.accepts("D-39", "E-25")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("status", 4),
        ("status --watch", 4),
        ("why api", 1),
        ("show api", 1),
        ("plan", 1),
        ("stop api", 1),
        ("reload", 1),
        ("update", 1),
        ("beat api", 1),
        ("events -f", 1),
    ],
)
def test_the_time_limit_counts_in_front_of_a_full_queue_too(uphold, home, own, words, code):
    """A supervisor that is stopped takes in nobody, and many wait."""
    own()
    with socket.socket(socket.AF_UNIX) as listening, contextlib.ExitStack() as before_us:
        listening.bind(str(home / "control.sock"))
        listening.listen(0)
        before_us.enter_context(Connection(str(home)))
        result = uphold(*words.split(), "--timeout", "100ms")
    assert result.code == code
    assert "did not accept a connection within 0.1 s. [UPH_SUPERVISOR_SILENT]" in result.err


def test_a_supervisor_without_a_socket_is_still_starting(uphold, own):
    own()
    result = uphold("status", "--json")
    assert result.code == 151
    supervisor = result.json["supervisor"]
    assert (supervisor["ownership"], supervisor["status"]) == ("running", "spawning")
    assert supervisor["pid"] == os.getpid()


@pytest.mark.accepts("R-12")
def test_a_failed_stop_is_told_until_the_next_start(uphold, supervisor, document):
    error = {"code": "UPH_SUPERVISOR_STOP_FAILED", "message": "still alive"}
    note = {"at": "2026-01-02T00:00:00.000Z", "failed": True, "error": error}
    (supervisor.home / "last_stop.json").write_text(json.dumps(note))
    supervisor.answers["status"] = document()
    assert uphold("status", "--json").json["supervisor"]["last_error"] == error
    supervisor.answers["status"] = document(started_at="2026-01-03T00:00:00.000Z")
    assert uphold("status", "--json").json["supervisor"]["last_error"] is None


def test_the_watch_ends_with_the_supervisor_and_tells_its_last_state(
    uphold, supervisor, document, row
):
    supervisor.answers["status"] = document(row())
    supervisor.answers["subscribe"] = {"seq": 7}
    supervisor.news = [{"seq": 8, "type": "worker.exited"}]
    result = uphold("status", "--watch")
    assert result.code == 0
    # Not a terminal: the same facts are printed once, however often they are drawn.
    assert result.out.count("NAME  STATE") == 1
    assert supervisor.asked("subscribe") == {"from_seq": None, "names": None}


def test_the_watch_knows_who_stands_only_in_the_file_as_a_look_does(uphold, home):
    (home.parent / "uphold.toml").write_text('[workers.off]\ncommand = "x"\nenabled = false\n')
    once, watched = uphold("status", "off"), uphold("status", "off", "--watch")
    assert (once.code, watched.code) == (3, 3)
    assert "disabled in the file" in watched.out
    assert uphold("status", "of", "--watch").code == 5


def test_what_is_no_record_reads_as_empty(tmp_path):
    (tmp_path / "list").write_text("[1]")
    (tmp_path / "torn").write_text('{"a": ')
    (tmp_path / "link").symlink_to("list")
    for name in ("list", "torn", "link", "missing"):
        assert read_record(str(tmp_path / name)) == {}


@pytest.mark.accepts("E-25")
def test_two_forms_of_one_answer_are_a_usage_error(uphold, supervisor, document, row):
    supervisor.answers["status"] = document(row())
    assert uphold("status", "--kv", "--json").code == 2
