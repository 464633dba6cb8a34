from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from uphold.host.processes import linux
from uphold.host.proctable import read_stat
from uphold.testing.waiting import until


@pytest.fixture
def sleeper():
    child = subprocess.Popen(
        ["sleep", "1000"], start_new_session=True, env={"UPHOLD_NONCE": "mine"}
    )
    process = linux.hold_child(child.pid, "mine")
    yield process
    child.kill()
    child.wait()
    process.close()


def test_a_child_is_identified_by_more_than_its_number(sleeper):
    identity = sleeper.identity
    assert identity.start_ticks == read_stat(identity.pid).start_ticks
    assert identity.inode or not linux.containment().sure_identity
    assert sleeper.child
    assert sleeper.alive()


@pytest.mark.accepts("P7")
def test_only_the_very_same_process_is_found_again(sleeper):
    identity = sleeper.identity
    found = linux.find(identity)
    assert found.identity == identity
    found.close()
    for other in (
        replace(identity, boot_id="other"),
        replace(identity, start_ticks=identity.start_ticks + 1),
        replace(identity, inode=identity.inode + 1),
        replace(identity, pid=2**22 + 1),
    ):
        assert linux.find(other) is None


@pytest.mark.accepts("P7", "B-08")
def test_without_a_telling_inode_the_nonce_must_agree(sleeper):
    bare = replace(sleeper.identity, inode=0)
    found = until(lambda: linux.find(bare))
    found.close()
    assert linux.find(replace(bare, nonce="theirs")) is None


def test_how_a_child_ended_is_known_once_and_exactly():
    for command, ending in (("exit 7", (7, None)), ("kill -9 $$", (None, 9))):
        child = subprocess.Popen(["sh", "-c", command])
        process = linux.hold_child(child.pid, "n")
        assert until(process.reap) == ending
        assert not process.alive()
        child.returncode = 0
        process.close()
        process.close()


def test_how_a_stranger_ended_is_known_after_its_parent_let_go():
    if not linux.containment().exits_of_adopted:
        return
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sh', '-c', 'read line; exit 5'], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.readline()\nchild.stdin.close()\nsys.stdin.readline()\nchild.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        process = linux.hold_sighted(pid, read_stat(pid).start_ticks, "n")
        assert not process.child
        print(file=parent.stdin, flush=True)
        until(lambda: not process.alive())
        assert process.reap() is None, "nobody has let go of it yet"
        print(file=parent.stdin, flush=True)
        assert until(process.reap) == (5, None)
        process.close()


def test_an_exit_somebody_else_waited_for_is_still_known():
    child = subprocess.Popen(["sh", "-c", "exit 3"])
    process = linux.hold_child(child.pid, "n")
    child.wait()
    ending = process.reap()
    assert ending == ((3, None) if linux.containment().exits_of_adopted else None)
    process.close()


def test_signals_reach_the_process_or_say_that_it_is_gone(sleeper):
    assert sleeper.send(signal.SIGTERM)
    assert until(sleeper.reap) == (None, signal.SIGTERM)
    assert not sleeper.send(signal.SIGTERM)


@pytest.mark.accepts("P7")
def test_the_group_is_reached_also_after_its_leader_is_gone():
    child = subprocess.Popen(
        ["sh", "-c", "sleep 1000 & echo $!"], start_new_session=True, stdout=subprocess.PIPE
    )
    process = linux.hold_child(child.pid, "n")
    left = int(child.stdout.readline())
    assert until(process.reap) == (0, None)
    child.returncode = 0
    stat = read_stat(left)
    assert process.send_group(signal.SIGKILL)
    until(lambda: (read_stat(left) or stat._replace(state="X", threads=1)).dead)
    process.close()
    child.stdout.close()


def test_a_process_that_is_not_what_was_seen_is_not_held(sleeper):
    pid, ticks = sleeper.identity.pid, sleeper.identity.start_ticks
    held = linux.hold_sighted(pid, ticks, "mine")
    assert held.identity == sleeper.identity
    held.close()
    assert linux.hold_sighted(pid, ticks + 1, "mine") is None
    assert linux.hold_sighted(2**22 + 1, ticks, "mine") is None


def test_what_holds_here_is_said():
    holds = linux.containment()
    assert (holds.level, holds.means) == ("B", "session, sub-reaper and nonce scan")
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    assert holds.exits_of_adopted == (release >= (6, 15))
    assert holds.sure_identity == (release >= (6, 9))
