"""Verbs that ask the supervisor and print what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest


def test_why_is_one_paragraph(uphold, supervisor):
    supervisor.answers["why"] = {"schema": 1, "name": "api", "text": "It is held.\x1b[2J"}
    assert uphold("why", "api") == (0, "It is held.\\x1b[2J\n", "")
    assert uphold("why", "api", "--json").json["name"] == "api"
    assert uphold("-q", "why", "api").out == ""
    assert supervisor.asked("why") == {"name": "api"}


@pytest.mark.accepts("M-07")
def test_show_tells_everything_and_its_slots(uphold, supervisor, row):
    record = row(pid=os.getpid()) | {
        "config": {"command": ["sleep", "60"], "user": None, "shell": False},
        "enabled": True,
        "quarantined": False,
        "connected": True,
        "connection_info": [],
        "last_seen": "2026-01-01T00:00:00.000Z",
        "tool_count": 0,
        "desired_version": 4,
        "last_reconcile": None,
        "reconcile_count": 7,
    }
    answer = {"schema": 1, "worker": record, "slots": [row(pid=os.getpid()), row("api.2")]}
    supervisor.answers["show"] = answer
    lines = uphold("show", "api").out.splitlines()
    assert lines[0] == "api"
    for told in (
        "  enabled            yes",
        "  desired_version    4",
        "  last_reconcile     -",
        '    command          ["sleep", "60"]',
        "    shell            no",
        "  slot api",
        "  slot api.2",
        "    state            running (up since 12 s)",
    ):
        assert told in lines
    assert any(line.split()[0] == str(os.getpid()) for line in lines)
    assert uphold("show", "api", "--json").json["worker"]["reconcile_count"] == 7


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("words", [["why", "api"], ["show", "api"], ["plan"]])
def test_nobody_waits_longer_than_told_for_a_supervisor_that_is_silent(uphold, supervisor, words):
    result = uphold(*words, "--timeout", "100ms")
    assert (result.code, result.out) == (1, "")
    assert "[UPH_SUPERVISOR_SILENT]" in result.err
    assert "within 0.1" in result.err, "and not within the usual 10 s"
    assert "`uphold status` tells" in result.err


def test_status_that_got_no_answer_does_not_send_people_to_status(uphold, supervisor):
    result = uphold("status", "--timeout", "50ms")
    assert "[UPH_SUPERVISOR_SILENT]" in result.err
    assert "uphold status" not in result.err
    assert "uphold stop" in result.err


def test_a_supervisor_that_is_just_opening_its_socket_is_waited_for(uphold, own, late_supervisor):
    own()
    opening = late_supervisor(after=0.2)
    assert uphold("why", "api").out == "Because.\n"
    opening.join()


def test_following_the_runtime_log_goes_on_across_a_rotation(home):
    logs = home / "logs"
    logs.mkdir()
    log = logs / "runtime.log"
    log.write_text('{"message": "old"}\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "uphold", "logs", "-f", "-n", "1"],
        cwd=home.parent,
        stdout=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may have it ignored, and so would we.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().endswith("old\n")
        with log.open("a") as file:
            file.write('{"message": "new"}\n')
        assert process.stdout.readline().endswith("new\n")
        log.rename(logs / "runtime.log.1")
        log.write_text('{"message": "newest"}\n')
        assert process.stdout.readline().endswith("newest\n")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_heartbeat_carries_what_was_said_and_nothing_else(uphold, supervisor):
    supervisor.answers["beat"] = {"schema": 1, "worker": "probe", "nonce": "n"}
    assert uphold("beat", "probe", "--seq", "3", "--status", "busy", "--progress", "1.5") == (
        0,
        "",
        "",
    )
    said = {"worker": "probe", "seq": 3, "status": "busy", "progress": 1.5}
    assert supervisor.asked("beat") == said
    assert uphold("beat", "probe", "--json").json["nonce"] == "n"
    assert uphold("beat", "probe", "--seq", "-1").code == 2
