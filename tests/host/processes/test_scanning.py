from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from uphold.core.statuses import Identity
from uphold.host.processes.scanning import (
    Scanner,
    Sighted,
    Snapshot,
    lock_holders,
    take_snapshot,
)
from uphold.host.proctable import pidfd_inode
from uphold.testing.waiting import until


def sighted(pid, *, ppid=1, session=None, ticks=100, nonce=None):
    return Sighted(pid, ppid, pid if session is None else session, ticks, nonce)


def main(pid, ticks=100):
    return Identity(pid=pid, start_ticks=ticks, boot_id="b", inode=0, nonce="n")


def pids(processes):
    return [process.pid for process in processes]


def test_a_slot_is_found_by_nonce_by_session_and_by_descent():
    snapshot = Snapshot(
        [
            sighted(10, nonce="n"),
            sighted(11, session=10),
            sighted(12, ppid=11, ticks=101),
            sighted(13, ppid=12, ticks=102, nonce="other"),
            sighted(14, nonce="n", ticks=103),
            sighted(20),
            sighted(21, nonce="m"),
        ]
    )
    assert pids(snapshot.members({"n"}, main(10))) == [10, 11, 12, 13, 14]
    assert pids(snapshot.members({"n"}, None)) == [10, 14]
    assert pids(snapshot.members({"m"}, None)) == [21]
    assert snapshot.members(set(), None) == []


@pytest.mark.accepts("P7")
def test_a_session_whose_number_was_used_again_is_nobodys():
    again = Snapshot([sighted(10, ticks=999), sighted(11, session=10)])
    assert again.members(set(), main(10)) == []
    leaderless = Snapshot([sighted(11, session=10)])
    assert pids(leaderless.members(set(), main(10))) == [11]


@pytest.mark.accepts("P7", "T08")
def test_a_session_whose_number_was_used_again_within_one_clock_tick_is_nobodys():
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as child:
        pidfd = os.pidfd_open(child.pid)
        inode = pidfd_inode(pidfd)
        os.close(pidfd)
        snapshot = Snapshot([sighted(child.pid), sighted(11, session=child.pid)])
        itself = replace(main(child.pid), inode=inode)
        assert pids(snapshot.members(set(), itself)) == [11, child.pid]
        if inode:
            assert snapshot.members(set(), replace(itself, inode=inode + 1)) == []
        child.kill()
        child.wait()
        assert pids(snapshot.members(set(), itself)) == [11, child.pid]


def test_the_supervisor_is_never_part_of_a_slot():
    snapshot = Snapshot([sighted(os.getpid(), nonce="n"), sighted(10, ppid=os.getpid())])
    assert snapshot.members({"n"}, None) == []


def test_the_main_process_is_the_oldest_session_leader_of_its_run():
    snapshot = Snapshot(
        [
            sighted(30, ticks=300, nonce="n"),
            sighted(40, ticks=200, nonce="n"),
            sighted(20, ticks=100, session=7, nonce="n"),
        ]
    )
    assert snapshot.leader("n").pid == 40
    assert snapshot.leader("m") is None


def test_a_look_sees_what_lives_and_not_what_is_dead():
    with subprocess.Popen(["sleep", "1000"], env={"UPHOLD_NONCE": "scan-me"}) as child:
        found = until(lambda: take_snapshot().members({"scan-me"}, None))
        assert pids(found) == [child.pid]
        assert found[0].ppid == os.getpid()
        child.kill()
        until(lambda: not take_snapshot().members({"scan-me"}, None))


def test_whoever_asks_before_a_look_begins_shares_it():
    async def scene():
        scanner = Scanner()
        snapshots = await asyncio.gather(*(scanner.look() for _ in range(50)))
        assert scanner.looks == 1
        assert len(set(map(id, snapshots))) == 1
        first = asyncio.create_task(scanner.look())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second, third = await asyncio.gather(scanner.look(), scanner.look())
        assert second is third
        assert await first is not second, "it began before they asked"
        assert scanner.looks == 3

    asyncio.run(scene())


def test_one_who_gives_up_waiting_disturbs_nobody():
    async def scene():
        scanner = Scanner()
        tasks = [asyncio.create_task(scanner.look()) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert isinstance(await tasks[1], Snapshot)
        assert isinstance(await tasks[2], Snapshot)

    asyncio.run(scene())


@pytest.mark.accepts("S27")
def test_a_lock_is_held_by_whoever_holds_it_and_not_by_whoever_has_the_file_open(tmp_path):
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    other = os.open(path, os.O_RDONLY)
    holder = subprocess.Popen(["sleep", "1000"], pass_fds=[descriptor])
    reader = subprocess.Popen(["sleep", "1000"], pass_fds=[other])
    os.close(descriptor)
    os.close(other)
    assert lock_holders(path) == [holder.pid]
    for process in (holder, reader):
        process.kill()
        process.wait()
    assert lock_holders(path) == []
    assert lock_holders(tmp_path / "missing") == []


FORKER = """
import fcntl, os, sys
from uphold.host.processes.scanning import lock_holders
lock = os.open(sys.argv[1], os.O_RDONLY | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.read(reader, 1)
    os.execlp("sleep", "sleep", "1000")
before = lock_holders(sys.argv[1])
os.write(writer, b"1")
while not (after := lock_holders(sys.argv[1])): pass
os.kill(child, 9)
print(before == [], after == [child])
"""


@pytest.mark.accepts("P5", "P7")
def test_a_child_of_ours_that_does_not_run_its_program_yet_holds_nothing(tmp_path):
    """It has copies of the locks of other slots, and would be ended as a left-over of theirs."""
    command = [sys.executable, "-c", FORKER, str(tmp_path / "lock")]
    assert subprocess.check_output(command, text=True).split() == ["True", "True"]
