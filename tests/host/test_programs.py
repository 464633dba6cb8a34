from __future__ import annotations

import asyncio
import os
import sys

import pytest

from uphold.errors import HostFailure
from uphold.host.programs import run_to_its_end
from uphold.host.timing import PlainClock
from uphold.testing.waiting import until


def run(command, output, limit=60.0):
    return asyncio.run(run_to_its_end(tuple(command), {"WORD": "hello"}, output, limit))


def test_its_exit_code_and_its_output_are_had(tmp_path):
    output = tmp_path / "log"
    output.write_text("before\n")
    assert run(["/bin/sh", "-c", "echo $WORD; echo oh >&2; exit 3"], output) == 3
    assert output.read_text() == "before\nhello\noh\n"


def test_one_that_takes_too_long_is_killed_with_all_it_started(tmp_path):
    told = tmp_path / "pids"
    script = f"sleep 1000 & echo $! $$ > {told}; wait"
    assert run(["/bin/sh", "-c", script], tmp_path / "log", limit=1.0) is None
    for pid in map(int, told.read_text().split()):
        until(lambda pid=pid: not is_alive(pid), within=30)


def test_what_cannot_be_started_is_said(tmp_path):
    with pytest.raises(HostFailure):
        run(["/no/such/program"], tmp_path / "log")


def test_nothing_is_left_to_be_reaped(tmp_path):
    told = tmp_path / "log"
    run([sys.executable, "-I", "-S", "-c", "import os; print(os.getpid())"], told)
    with pytest.raises(ChildProcessError):
        os.waitpid(int(told.read_text()), os.WNOHANG)


def test_a_plain_clock_goes_on():
    clock = PlainClock()
    before = clock.mono()
    clock.pause(0.001)
    assert clock.mono() > before
    assert clock.wall() > 1_700_000_000


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
