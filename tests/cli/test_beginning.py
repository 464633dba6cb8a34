"""Starting a supervisor: what is handed to it, and what its answer becomes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from uphold.cli.beginning import tell_started
from uphold.cli.places import Place

_READY = """
import json, os, sys
words = sys.argv
home = words[words.index("--home") + 1]
ready = int(words[words.index("--ready-fd") + 1])
open_ones = sorted(int(name) for name in os.listdir("/proc/self/fd"))
with open(home + "/seen.json", "w") as file:
    json.dump({
        "words": words[1:], "session": os.getsid(0) == os.getpid(), "fds": open_ones,
        "ready": ready, "output": os.readlink("/proc/self/fd/1"),
        "errors": os.readlink("/proc/self/fd/2"), "input": os.readlink("/proc/self/fd/0"),
    }, file)
os.write(ready, json.dumps(%s).encode() + b"\\n")
"""


@pytest.mark.accepts("D-01", "D-04")
def test_start_hands_over_the_place_and_waits_for_one_line(uphold, home, program):
    home.rmdir()
    program(_READY % {"ready": True, "pid": 4242})
    stray, other = os.pipe()
    os.set_inheritable(stray, True)
    result = uphold("start")
    os.close(stray)
    os.close(other)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"supervisor running (pid 4242), home {home}\n"
    seen = json.loads((home / "seen.json").read_text())
    config = str(home.parent / "uphold.toml")
    assert seen["words"] == [
        *("-I", "-m", "uphold.daemon", "--home", str(home), "--config", config),
        *("--ready-fd", str(seen["ready"])),
    ]
    assert seen["session"] is True
    assert seen["output"] == seen["errors"] == str(home / "logs" / "daemon.out")
    assert seen["input"] == "/dev/null"
    assert (home.stat().st_mode & 0o777, (home / "logs").stat().st_mode & 0o777) == (0o700, 0o700)
    # Besides the listing itself, only 0, 1, 2 and the pipe.
    assert len(seen["fds"]) == 5


def test_what_the_supervisor_reports_instead_is_passed_on(uphold, program, home):
    problems = [{"at": "uphold.toml:1", "text": "unknown key 'worker'."}]
    error = {
        "code": "UPH_CONFIG_INVALID",
        "message": "1 problem",
        "remedy": "",
        "exit_code": 6,
        "problems": problems,
    }
    program(_READY % {"error": error})
    result = uphold("start")
    assert result.code == 6
    assert "uphold.toml:1: unknown key 'worker'." in result.err


@pytest.mark.accepts("B-72", "D-39")
def test_a_supervisor_that_dies_at_once_is_reported_with_its_last_words(uphold, program, home):
    program("import sys\nsys.exit('no more memory')\n")
    result = uphold("start")
    assert result.code == 1
    assert "ended before it was ready (exit code 1)" in result.err
    assert "no more memory" in result.err
    assert "[UPH_SUPERVISOR_START_FAILED]" in result.err


@pytest.mark.accepts("P14", "T10")
def test_a_home_that_cannot_be_written_is_refused_in_a_sentence(uphold, program, home):
    program(_READY % {"ready": True, "pid": 4242})
    (home / "logs/daemon.out").mkdir(parents=True)  # as on a read-only disk: it cannot be opened
    result = uphold("start")
    assert result.code == 1
    assert "[UPH_HOME_UNWRITABLE]" in result.err


def test_a_start_that_takes_too_long_is_not_called_a_success(uphold, program, home):
    program("import os, sys\nos.read(0, 1)\nimport signal\nsignal.alarm(5)\nsignal.pause()\n")
    result = uphold("start", "--timeout", "200ms")
    assert result.code == 1
    assert "[UPH_SUPERVISOR_START_TIMEOUT]" in result.err


@pytest.mark.accepts("D-05", "D-09", "P1", "E-25")
def test_a_second_start_names_the_owner_and_touches_nothing(uphold, home, own):
    owner = own()
    before = {path.name: path.stat().st_mtime_ns for path in home.iterdir()}
    for verb in ("start", "run"):
        result = uphold(verb)
        assert result.code == 100
        for told in (str(owner.pid), "2026-01-01T00:00:00.000Z", owner.boot_id):
            assert told in result.err
    assert {path.name: path.stat().st_mtime_ns for path in home.iterdir()} == before


@pytest.mark.accepts("E-25")
@pytest.mark.parametrize("verb", ["start", "run", "restart"])
def test_without_a_file_nothing_is_started_or_stopped(uphold, home, verb):
    (home.parent / "uphold.toml").unlink()
    result = uphold(verb)
    assert result.code == 6
    assert list(home.iterdir()) == []


@pytest.mark.accepts("D-31")
def test_restart_with_nothing_running_starts(uphold, home, program):
    program(_READY % {"ready": True, "pid": 4242})
    result = uphold("restart")
    assert result.code == 0
    assert result.out.endswith(f"supervisor running (pid 4242), home {home}\n")


def test_not_waiting_returns_at_once(uphold, home, program):
    program("import signal\nsignal.alarm(5)\nsignal.pause()\n")
    result = uphold("start", "--no-wait", "--json")
    assert result.code == 0
    assert result.json["results"][0]["state"] == "starting"
    os.kill(result.json["pid"], 9)
    os.waitpid(result.json["pid"], 0)


_RUN = """
import sys
sys.executable = %r
from uphold.cli.main import main
sys.exit(main(%r))
"""

_FOREGROUND = """
import json, os, signal, sys, socket
words = sys.argv
home = words[words.index("--home") + 1]
signals = []
signal.signal(signal.SIGTERM, lambda *_: signals.append("TERM"))
signal.signal(signal.SIGINT, lambda *_: signals.append("INT"))
os.write(int(words[words.index("--ready-fd") + 1]), b'{"ready": true, "pid": 1}\\n')
with open(home + "/logs/api.log", "w") as file:
    file.write("hello from api\\n")
assert "--foreground" in words
while not signals:
    signal.pause()
os.write(2, repr((signals, os.getpgid(0) == os.getpid())).encode())
os._exit(7)
"""


@pytest.mark.accepts("D-24")
def test_run_shows_output_hands_the_signal_on_once_and_ends_as_the_supervisor_ends(home, program):
    stand_in = program(_FOREGROUND)
    process = subprocess.Popen(
        [sys._base_executable, "-c", _RUN % (str(stand_in), ["run"])],
        cwd=home.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert process.stdout.readline().startswith("supervisor running")
        assert process.stdout.readline() == "api | hello from api\n"
        process.terminate()
        assert process.stderr.read() == "(['TERM'], True)"
        assert process.wait() == 7
    finally:
        process.kill()
        process.communicate()


def test_the_home_must_be_ours_alone(uphold, home, program):
    program(_READY % {"ready": True, "pid": 1})
    home.chmod(0o777)
    result = uphold("start")
    assert result.code == 1
    assert "[UPH_HOME_UNSAFE]" in result.err
    assert not Path(home, "seen.json").exists()


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        (["bad"], "1 worker failed and stays down: bad."),
        (["bad", "worse"], "2 failed and stay down: bad, worse."),
    ],
)
def test_who_stays_down_after_a_start_is_named(capsys, failed, told):
    args = SimpleNamespace(json=False, quiet=False)
    tell_started(args, Place("/srv/x", None), {"pid": 7, "ready": True, "failed": failed})
    assert told in capsys.readouterr().err
