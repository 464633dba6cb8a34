"""Stopping a supervisor, with real processes that obey, refuse, or hang."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from uphold.cli import ending
from uphold.host.proctable import read_stat
from uphold.journal.migrations import MIGRATIONS, Migration, migrate

_SUPERVISOR = """
import json, os, signal, socket, sys
from uphold.host.homes import Home
from uphold.host.locks import HomeLock, Owner

home, manners = sys.argv[1], sys.argv[2]
if "deaf" in manners:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
owner = Owner.this_process("5e9a", 1767225600.0, {"config": home + "/../uphold.toml"})
lock = HomeLock.take(Home(home), owner)
listening = socket.socket(socket.AF_UNIX)
os.chdir(home)
if "mute" not in manners:
    listening.bind("control.sock")
    listening.listen()
print("up", flush=True)
if "mute" in manners:
    while True:
        signal.pause()
while True:
    connection, _ = listening.accept()
    stream = connection.makefile("rwb")
    request = json.loads(stream.readline())
    if request["method"] == "ping":
        stream.write(json.dumps({"id": request["id"], "result": {}}).encode() + b"\\n")
        stream.flush()
        continue
    if "dying" in manners:
        os._exit(9)
    with open("asked.json", "w") as file:
        json.dump(request, file)
    if "silent" in manners:
        continue
    answer = {"result": {"accepted": True, "job_id": "job_1", "grace": 0.05}}
    if "refusing" in manners:
        answer = {"error": {"code": "UPH_SUPERVISOR_STOPPING", "message": "x", "exit_code": 4}}
    stream.write(json.dumps({"id": request["id"], **answer}).encode() + b"\\n")
    stream.flush()
    if "stubborn" not in manners:
        lock.release(1767225700.0)
        os._exit(0)
"""


@pytest.fixture
def begin(home: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a program that owns the home and behaves as told."""
    started: list[subprocess.Popen[str]] = []

    def start(manners: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", _SUPERVISOR, str(home), manners],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps with short waits."""
    monkeypatch.setattr(ending, "MARGIN", 0.2)
    monkeypatch.setattr(ending, "DEFAULT_GRACE", 0.1)


_STOPS_LEFT_OVERS = """
import json, pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--home") + 1], "words.json").write_text(json.dumps(sys.argv))
print(json.dumps({"results": [{"name": "api", "ok": %s, "state": "stopped", "error": None}]}))
sys.exit(%s)
"""


@pytest.mark.accepts("C-116", "D-12", "P27")
def test_nothing_to_stop_is_a_success_and_says_so(uphold, home):
    for _ in range(2):
        result = uphold("stop")
        assert result == (0, "nothing to stop: no supervisor is running.\n", "")


@pytest.mark.accepts("D-11", "R-10", "R-13")
def test_a_supervisor_that_obeys_is_stopped_without_force(uphold, home, begin):
    process = begin()
    result = uphold("stop", "--reason", "night", "--label", "l 1")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"supervisor {process.pid} stopped; nothing of it is left.\n"
    assert process.wait() == 0
    asked = json.loads((home / "asked.json").read_text())
    assert asked["method"] == "shutdown"
    assert asked["params"]["keep_workers"] is False
    assert (asked["params"]["reason"], asked["params"]["label"]) == ("night", "l 1")
    assert not (home / "last_stop.json").exists()


@pytest.mark.accepts("R-10", "R-13", "R-14")
def test_one_that_promises_and_stays_gets_term_and_that_is_told(
    uphold, home, begin, hurried, program
):
    process = begin("stubborn")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    result = uphold("stop", "--json")
    assert result.code == 0
    assert result.json["forced"] == "SIGTERM"
    assert process.wait() == -signal.SIGTERM
    note = json.loads((home / "last_stop.json").read_text())
    assert (note["pid"], note["forced"], note["failed"]) == (process.pid, "SIGTERM", False)


@pytest.mark.accepts("P14", "T10")
def test_a_stop_that_cannot_be_noted_is_a_stop_all_the_same(uphold, home, begin, hurried, program):
    process = begin("stubborn")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    (home / "last_stop.json").mkdir()  # as on a full disk: no note can be written
    result = uphold("stop")
    assert result.code == 0
    assert "this could not be noted in" in result.err
    assert process.wait() == -signal.SIGTERM
    assert not list(home.glob(".last_stop.json.*"))


@pytest.mark.accepts("R-10", "R-11", "R-13", "R-14")
def test_one_that_ignores_term_is_killed_and_its_workers_are_stopped(
    uphold, home, begin, hurried, program
):
    process = begin("stubborn deaf")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    result = uphold("stop")
    assert result.code == 0
    assert process.wait() == -signal.SIGKILL
    assert "SIGKILL was needed" in result.err
    assert "the recorded workers were stopped from here" in result.err
    assert result.out.splitlines() == [
        f"supervisor {process.pid} stopped by SIGKILL; nothing of it is left.",
        "api: stopped",
    ]
    words = json.loads((home / "words.json").read_text())
    assert words[1:7] == ["-I", "-m", "uphold.daemon", "--home", str(home), "--stop-left-overs"]
    assert words[7::2] == ["--author", "--label", "--reason"], "whoever asked is handed over"


def test_one_that_cannot_be_asked_gets_term_at_once(uphold, begin, hurried, program):
    process = begin("mute")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    result = uphold("stop")
    assert (result.code, process.wait()) == (0, -signal.SIGTERM)
    assert "could not be asked" in result.err


def test_keeping_workers_never_sends_term(uphold, home, begin, hurried):
    """TERM may mean that workers end too; a kill disturbs nobody."""
    process = begin("mute")
    result = uphold("stop", "--keep-workers")
    assert (result.code, process.wait()) == (0, -signal.SIGKILL)
    assert "its workers run on" in result.out
    assert not (home / "words.json").exists()


@pytest.mark.accepts("E-09")
def test_a_dead_supervisors_workers_are_stopped_by_a_helper(uphold, home, begin, program):
    process = begin()
    process.kill()
    process.wait()
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    result = uphold("stop")
    assert result.code == 0
    assert "its workers were stopped without it" in result.out
    assert (home / "words.json").exists()


def test_a_supervisor_that_is_just_dying_leaves_nothing_behind_either(uphold, home, begin, program):
    """It takes the request and dies of something else: what it left is found all the same."""
    process = begin("dying")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    result = uphold("stop")
    assert result.code == 0
    assert result.out.splitlines()[1:] == ["api: stopped"]
    assert (home / "words.json").exists()
    assert process.wait() == 9


def test_a_stop_that_somebody_else_began_is_waited_for(uphold, begin):
    process = begin("refusing")
    result = uphold("stop", "--json")
    assert (result.code, process.wait()) == (0, 0)
    assert result.json["forced"] is None


def test_workers_that_survive_the_helper_make_the_stop_fail(uphold, begin, program):
    process = begin()
    process.kill()
    process.wait()
    program(_STOPS_LEFT_OVERS % ("False", "1"))
    result = uphold("stop")
    assert result.code == 1


@pytest.mark.accepts("R-11", "R-12")
def test_what_survives_a_kill_is_named_and_nothing_is_tidied_away(
    uphold, home, begin, hurried, monkeypatch
):
    """A process stuck in the kernel cannot be made here, so the signals are lost instead."""
    process = begin("stubborn")
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    lock = (home / "lock").read_bytes()
    result = uphold("stop")
    assert result.code == 1
    assert f"supervisor {process.pid} is still alive after SIGKILL" in result.err
    assert "[UPH_SUPERVISOR_STOP_FAILED]" in result.err
    assert (home / "lock").read_bytes() == lock
    assert process.poll() is None
    note = json.loads((home / "last_stop.json").read_text())
    assert note["failed"] is True
    assert note["error"]["code"] == "UPH_SUPERVISOR_STOP_FAILED"


@pytest.mark.accepts("D-10", "P7")
def test_a_process_that_only_has_the_number_is_never_touched(uphold, home, sleeper, program):
    other = sleeper()
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    record = {
        "pid": other.pid,
        "start_ticks": 1,
        "boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "host": __import__("socket").gethostname(),
        "supervisor_id": "5e9a",
        "since": "2026-01-01T00:00:00.000Z",
    }
    (home / "lock").write_text(json.dumps(record))
    assert uphold("stop").code == 0
    assert other.poll() is None
    stat = read_stat(other.pid)
    assert stat is not None
    assert not stat.dead


@pytest.mark.parametrize("garbage", ["garbage\n", "", '{"pid": 1}'])
def test_with_an_unreadable_lock_whoever_answers_is_asked_to_stop(uphold, home, begin, garbage):
    process = begin()
    (home / "lock").write_text(garbage)
    result = uphold("stop")
    assert result == (0, f"supervisor {process.pid} stopped; nothing of it is left.\n", "")
    assert process.wait() == 0


def test_with_an_unreadable_lock_and_nobody_who_answers_the_helper_looks(uphold, home, program):
    (home / "lock").write_text("garbage\n")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    assert uphold("stop").code == 0
    assert (home / "words.json").exists()


@pytest.mark.accepts("E-20", "P27")
@pytest.mark.parametrize("manners", ["stubborn", "stubborn deaf"])
def test_not_waiting_returns_the_job_as_soon_as_it_is_accepted(uphold, home, begin, manners):
    process = begin(manners)
    result = uphold("stop", "--no-wait", "--label", "l 1")
    assert (result.code, result.err) == (0, "")
    told = f"supervisor {process.pid} is stopping, accepted as job_1; see `uphold status`.\n"
    assert result.out == told
    answer = uphold("stop", "--no-wait", "--json").json
    assert answer["job_id"] == "job_1"
    assert answer["results"][0]["state"] == "stopping"
    assert process.poll() is None, "nobody uses force on what nobody waits for"
    assert not (home / "last_stop.json").exists()


def test_not_waiting_for_a_stop_that_somebody_else_began_is_fine(uphold, begin):
    process = begin("refusing stubborn")
    result = uphold("stop", "--no-wait")
    assert result == (0, f"supervisor {process.pid} is stopping; see `uphold status`.\n", "")


def test_what_could_not_be_asked_is_an_error_if_nobody_waits(uphold, begin, monkeypatch):
    monkeypatch.setattr(ending, "TO_ANSWER", 0.05)
    process = begin("silent")
    result = uphold("stop", "--no-wait", "--timeout", "50ms")
    assert (result.code, result.out) == (1, "")
    assert "[UPH_SUPERVISOR_SILENT]" in result.err
    assert process.poll() is None


@pytest.mark.accepts("P4", "E-25")
def test_a_timeout_ends_the_waiting_and_nobodys_life(uphold, home, begin):
    process = begin("stubborn")
    for words in (["stop"], ["stop", "--keep-workers"]):
        result = uphold(*words, "--timeout", "100ms")
        assert (result.code, result.out) == (1, "")
        assert "job_1 has not come true within 0.1 s; it goes on. [UPH_ORDER_TIMEOUT]" in result.err
        assert process.poll() is None
    assert not (home / "last_stop.json").exists()


@pytest.mark.accepts("P4")
def test_a_timeout_over_before_it_was_asked_leaves_it_alone(uphold, begin, monkeypatch):
    monkeypatch.setattr(ending, "TO_ANSWER", 0.05)
    process = begin("silent")
    result = uphold("stop", "--timeout", "50ms")
    assert result.code == 1
    assert f"supervisor {process.pid} has not stopped within 0.05 s. [UPH_ORDER" in result.err
    assert process.poll() is None


def test_a_long_timeout_does_not_put_force_off(uphold, begin, hurried, program):
    process = begin("stubborn deaf")
    program(_STOPS_LEFT_OVERS % ("True", "0"))
    result = uphold("stop", "--timeout", "60")
    assert (result.code, process.wait()) == (0, -signal.SIGKILL)


_STARTS_TOO = """
import json, os, sys
words = sys.argv
if "--stop-left-overs" in words:
    print(json.dumps({"results": []}))
else:
    ready = json.dumps({"ready": True, "pid": 4242}).encode() + b"\\n"
    os.write(int(words[words.index("--ready-fd") + 1]), ready)
"""


@pytest.mark.parametrize("words", [["--no-wait"], ["--timeout", "100ms"]])
def test_a_restart_sees_the_end_before_it_starts_whatever_else_is_not_waited_for(
    uphold, begin, hurried, program, words
):
    process = begin("stubborn")
    program(_STARTS_TOO)
    result = uphold("restart", *words)
    assert process.wait() == -signal.SIGTERM
    assert f"supervisor {process.pid} stopped by SIGTERM" in result.out
    assert "UPH_ORDER_TIMEOUT" not in result.err
    if "--no-wait" in words:
        assert (result.code, "supervisor starting" in result.out) == (0, True)


@pytest.mark.accepts("P12", "E-25")
@pytest.mark.parametrize("words", [["restart"], ["restart", "--keep-workers"]])
def test_a_restart_finds_a_wrong_file_before_anything_is_stopped(uphold, home, begin, words):
    process = begin()
    (home.parent / "uphold.toml").write_text("[workers.api]\ncomand = 'x'\n")
    result = uphold(*words)
    assert (result.code, result.out) == (6, "")
    assert "uphold.toml:2" in result.err
    assert "[UPH_CONFIG_INVALID]" in result.err
    assert process.poll() is None
    assert not (home / "asked.json").exists(), "nobody was asked to stop"


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("words", [["restart"], ["restart", "--keep-workers"]])
def test_a_restart_finds_what_a_start_would_refuse_before_anything_is_stopped(
    uphold, home, begin, words
):
    process = begin()

    def refused(exit_code: int, code: str) -> None:
        result = uphold(*words)
        assert (result.code, result.out) == (exit_code, "")
        assert f"[{code}]" in result.err
        assert process.poll() is None
        assert not (home / "asked.json").exists(), "nobody was asked to stop"

    home.chmod(0o770)
    refused(1, "UPH_HOME_UNSAFE")
    home.chmod(0o700)
    (home / "slots").symlink_to(home.parent)
    refused(1, "UPH_HOME_UNSAFE")
    (home / "slots").unlink()
    (home / "logs" / "daemon.out").unlink(missing_ok=True)
    (home / "logs" / "daemon.out").mkdir(parents=True)
    refused(1, "UPH_HOME_UNWRITABLE")
    (home / "logs" / "daemon.out").rmdir()
    with closing(sqlite3.connect(home / "journal.db", isolation_level=None)) as newer:
        migrate(newer, 0.0, (*MIGRATIONS, Migration(99, "turned round", False, lambda _: None)))
    refused(1, "UPH_JOURNAL_NEWER")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter what belongs to others")
def test_a_restart_by_root_leaves_the_home_of_another_user_alone(uphold, home, begin):
    process = begin()
    os.chown(home, 65534, 65534)
    result = uphold("restart")
    assert (result.code, result.out) == (4, "")
    assert "[UPH_HOME_UNSAFE]" in result.err
    assert process.poll() is None
    assert not (home / "asked.json").exists()
