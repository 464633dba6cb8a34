from __future__ import annotations

import os
import subprocess
import sys

import pytest

from uphold.host.proctable import (
    dying,
    ended,
    lives,
    parse_stat,
    pidfd_inode,
    read_nonce,
    read_proc,
    read_stat,
    stats_by_ps,
)
from uphold.testing.waiting import until

LINE = b"42 (a) b) (c) S 7 42 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 151097 15130624 2897"


def test_a_line_is_read_after_the_last_bracket():
    """A program may call itself anything, also `x) R 1 1`."""
    stat = parse_stat(LINE)
    assert (stat.pid, stat.state, stat.ppid, stat.session) == (42, "S", 7, 40)
    assert (stat.threads, stat.start_ticks) == (3, 151097)


def test_a_dead_leader_with_living_threads_is_not_dead():
    zombie = parse_stat(LINE)._replace(state="Z")
    assert not zombie.dead
    assert zombie._replace(threads=1).dead
    assert not parse_stat(LINE)._replace(threads=1).dead


def test_a_process_that_is_not_there_is_none():
    assert read_stat(2**22 + 1) is None
    assert read_nonce(2**22 + 1) is None
    assert not lives(2**22 + 1, 1)
    assert not lives(0, 0)
    assert not lives(-1, 0)


def test_running_out_of_descriptors_never_looks_like_absence():
    program = (
        "import resource\nfrom uphold.host.proctable import read_stat\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
        "read_stat(1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "Too many open files" in done.stderr


def test_a_process_lives_until_it_ends_even_if_nobody_reaps_it():
    child = subprocess.Popen(["sleep", "1000"])
    ticks = read_stat(child.pid).start_ticks
    pidfd = os.pidfd_open(child.pid)
    inode = pidfd_inode(pidfd)
    assert lives(child.pid, ticks)
    assert lives(child.pid, ticks, inode)
    assert not lives(child.pid, ticks + 1)
    assert not ended(pidfd)
    child.kill()
    until(lambda: ended(pidfd))
    assert read_stat(child.pid).dead
    assert not lives(child.pid, ticks, inode)
    child.wait()
    os.close(pidfd)


@pytest.mark.parametrize("before", [{}, {"A": "UPHOLD_NONCE=no"}, {"XUPHOLD_NONCE": "no"}])
def test_the_nonce_is_read_from_the_environment_and_nowhere_else(before):
    environment = {**before, "UPHOLD_NONCE": "yes", "Z": "last"}
    with subprocess.Popen(["sleep", "1000"], env=environment) as child:
        until(lambda: read_proc(f"/proc/{child.pid}/environ"))
        assert read_nonce(child.pid) == "yes"
        child.kill()
    with subprocess.Popen(["sleep", "1000"], env={**before, "B": "x"}) as child:
        until(lambda: read_proc(f"/proc/{child.pid}/environ"))
        assert read_nonce(child.pid) is None
        child.kill()


def test_a_long_environment_is_read_to_its_end():
    environment = {f"V{number}": "x" * 100_000 for number in range(5)} | {"UPHOLD_NONCE": "end"}
    with subprocess.Popen(["sleep", "1000"], env=environment) as child:
        until(lambda: read_nonce(child.pid) == "end")
        child.kill()


def test_ps_tells_the_same_where_there_is_no_proc():
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as child:
        until(lambda: os.getsid(child.pid) == child.pid)
        (stat,) = stats_by_ps(child.pid)
        assert (stat.pid, stat.ppid, stat.session) == (child.pid, os.getpid(), child.pid)
        assert not stat.dead
        assert child.pid in {each.pid for each in stats_by_ps()}
        assert abs(stat.start_ticks - os.stat(f"/proc/{child.pid}").st_mtime) < 5
        child.kill()
        until(lambda: stats_by_ps(child.pid)[0].dead)
    assert stats_by_ps(child.pid) == []


def test_a_process_is_dying_once_it_can_only_end():
    process = subprocess.Popen(["sleep", "60"])
    assert not dying(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert dying(process.pid)
    process.wait()
    assert dying(process.pid)  # nobody has that number: there is nothing to wait for
