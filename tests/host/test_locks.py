from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from uphold.errors import EXIT_ALREADY_RUNNING, AlreadyRunning, HostFailure
from uphold.host.homes import Home
from uphold.host.locks import HomeLock, Owner, Standing, read_owner
from uphold.host.proctable import boot_id, dying
from uphold.testing.waiting import until

SINCE = 1767225600.0
HOLD = """
import signal, sys
from uphold.host.homes import Home
from uphold.host.locks import HomeLock, Owner
lock = HomeLock.take(Home(sys.argv[1]), Owner.this_process("other", 1767225600.0, {"config": "x"}))
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


def owner(**extra):
    return Owner.this_process("an-id", SINCE, extra)


@contextmanager
def another_supervisor(home):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(home.path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"held\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def rewrite(home, **changes):
    """Change the record by hand, as whoever tampers with it would."""
    record = json.loads(home.lock.read_bytes())
    record.pop("check", None)
    home.lock.write_text(json.dumps(record | changes))


@pytest.mark.accepts("D-13")
def test_a_home_where_nobody_ever_ran_is_stopped(home):
    found = read_owner(home)
    assert (found.standing, found.owner) == (Standing.STOPPED, None)
    assert not home.lock.exists()


@pytest.mark.accepts("D-13", "R-06")
def test_an_owner_that_runs_is_named_with_everything(home):
    lock = HomeLock.take(home, owner(config="/etc/uphold.toml", version="1.2"))
    found = read_owner(home)
    assert found.standing is Standing.RUNNING
    assert found.owner == owner(config="/etc/uphold.toml", version="1.2")
    assert lock.intact()
    lock.release(SINCE + 60)


@pytest.mark.accepts("D-03", "D-13")
def test_the_record_has_its_keys_in_a_fixed_order(home):
    lock = HomeLock.take(home, owner(config="c", version="v"))
    keys = list(json.loads(home.lock.read_bytes()))
    assert keys[:6] == ["pid", "start_ticks", "boot_id", "host", "supervisor_id", "since"]
    assert [key for key in keys if key in {"config", "version"}] == ["config", "version"]
    assert home.lock.stat().st_mode & 0o777 == 0o600
    lock.release(SINCE)


@pytest.mark.accepts("D-13", "B-07")
def test_a_clean_end_is_recorded_before_the_lock_is_free(home):
    lock = HomeLock.take(home, owner())
    lock.release(SINCE + 60)
    found = read_owner(home)
    assert (found.standing, found.stopped_at) == (Standing.STOPPED, SINCE + 60)
    assert found.owner == owner()
    lock.release(SINCE + 99)
    assert read_owner(home).stopped_at == SINCE + 60
    again = HomeLock.take(home, owner(), retry=0)
    assert read_owner(home).standing is Standing.RUNNING
    again.release(SINCE)


@pytest.mark.accepts("P1", "D-05", "D-07", "D-09")
def test_a_second_start_is_refused_at_once_and_changes_nothing(home):
    with another_supervisor(home) as process:
        before = home.lock.read_bytes(), home.lock.stat()
        for _ in range(3):
            with pytest.raises(AlreadyRunning) as caught:
                HomeLock.take(home, owner(), retry=1000)
            assert caught.value.exit_code == EXIT_ALREADY_RUNNING
            for part in (f"pid {process.pid}", "2026-01-01T00:00:00.000Z", boot_id()):
                assert part in caught.value.message
        assert read_owner(home).standing is Standing.RUNNING
        after = home.lock.read_bytes(), home.lock.stat()
        assert before[0] == after[0]
        assert before[1].st_mtime_ns == after[1].st_mtime_ns


@pytest.mark.accepts("P1", "D-08", "B-03")
def test_a_killed_owner_leaves_a_stale_record_and_blocks_nobody(home):
    with another_supervisor(home) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        for _ in range(3):
            found = read_owner(home)
            assert (found.standing, found.owner.pid) == (Standing.STALE, process.pid)
        lock = HomeLock.take(home, owner(), retry=0)
        assert read_owner(home).owner.pid == os.getpid()
        lock.release(SINCE)


@pytest.mark.accepts("P1", "R-07")
def test_an_unreaped_owner_is_not_alive(home):
    with another_supervisor(home) as process:
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert read_owner(home).standing is Standing.STALE


DYING = """
import ctypes, os, sys, threading
from uphold.host.homes import Home
from uphold.host.locks import HomeLock, Owner
lock = HomeLock.take(Home(sys.argv[1]), Owner.this_process("other", 1767225600.0))
def last_thread():
    os.read(0, 1)
    os._exit(0)
threading.Thread(target=last_thread).start()
print("held", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # this thread alone
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are seen in /proc")
@pytest.mark.accepts("P1", "D-08")
def test_a_dying_owner_is_waited_for_and_sends_nobody_away(home):
    """After a kill the leader is dead while a thread still waits for the disk, lock in hand."""
    process = subprocess.Popen(
        [sys.executable, "-c", DYING, str(home.path)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
    )
    try:
        assert process.stdout.readline() == b"held\n"
        until(lambda: dying(process.pid))
        found = read_owner(home)
        assert (found.standing, found.keeps_out()) == (Standing.RUNNING, False)
        with pytest.raises(AlreadyRunning):  # its lock is never broken, however dead it looks
            HomeLock.take(home, owner(), retry=0.1)
        threading.Timer(0.1, process.stdin.close).start()
        lock = HomeLock.take(home, owner(), retry=60)
        assert process.wait() == 0
        lock.release(SINCE)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.accepts("P1")
def test_a_lock_that_a_dead_owner_still_holds_for_a_moment_is_waited_for(home):
    """A child caught between fork and exec keeps the lock of a supervisor that was killed."""
    HomeLock.take(home, owner()).release(SINCE)
    rewrite(home, pid=2**22 + 1, stopped_at=None)
    descriptor = os.open(home.lock, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    child = subprocess.Popen(["sleep", "0.2"], pass_fds=[descriptor])
    os.close(descriptor)
    lock = HomeLock.take(home, owner())
    assert child.wait() == 0
    lock.release(SINCE)


@pytest.mark.accepts("P1", "B-04", "B-05")
def test_a_held_lock_is_never_broken_however_stale_it_looks(home):
    HomeLock.take(home, owner()).release(SINCE)
    rewrite(home, pid=2**22 + 1, stopped_at=None)
    descriptor = os.open(home.lock, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    content = home.lock.read_bytes()
    with pytest.raises(AlreadyRunning, match="cannot be named") as caught:
        HomeLock.take(home, owner(), retry=0.1)
    assert f"pid {2**22 + 1}" in caught.value.message
    assert home.lock.read_bytes() == content
    os.close(descriptor)


@pytest.mark.accepts("D-10", "B-08", "P7")
@pytest.mark.parametrize("changes", [{"start_ticks": 1}, {"pidfd_inode": 1}])
def test_a_number_that_means_another_process_now_is_stale(home, changes):
    lock = HomeLock.take(home, owner())
    rewrite(home, **changes)
    assert read_owner(home).standing is Standing.STALE
    lock.release(SINCE)


def test_after_a_restart_of_the_machine_the_record_is_stale(home):
    HomeLock.take(home, owner()).release(SINCE)
    rewrite(home, boot_id="another", stopped_at=None)
    found = read_owner(home)
    assert found.standing is Standing.STALE
    assert "restarted" in found.reason


@pytest.mark.accepts("B-06")
def test_what_another_host_recorded_cannot_be_judged_from_here(home):
    lock = HomeLock.take(home, owner())
    rewrite(home, host="elsewhere", boot_id="another")
    found = read_owner(home)
    assert found.standing is Standing.CORRUPT
    assert "elsewhere" in found.reason
    rewrite(home, host="renamed", boot_id=boot_id())
    assert read_owner(home).standing is Standing.RUNNING, "the machine was only given a new name"
    lock.release(SINCE)


@pytest.mark.accepts("B-09")
@pytest.mark.parametrize(
    "content", [b"", b" " * 100, b"\0" * 1024, b"{", b"[]", b"7", b'{"pid": 1}']
)
def test_an_unreadable_record_is_corrupt_and_repaired_by_the_next_start(home, content):
    home.lock.write_bytes(content)
    assert read_owner(home).standing is Standing.CORRUPT
    lock = HomeLock.take(home, owner(), retry=0)
    assert read_owner(home).standing is Standing.RUNNING
    lock.release(SINCE)


def test_a_record_that_mixes_old_and_new_is_not_believed(home):
    lock = HomeLock.take(home, owner())
    content = home.lock.read_bytes()
    number = str(os.getpid()).encode()
    home.lock.write_bytes(content.replace(number, str(os.getpid() + 1).encode(), 1))
    assert read_owner(home).standing is Standing.CORRUPT
    lock.release(SINCE)


def test_the_record_of_another_home_that_was_copied_here_is_stale(home, tmp_path):
    lock = HomeLock.take(home, owner())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "lock").write_bytes(home.lock.read_bytes())
    assert read_owner(Home(copy)).standing is Standing.STALE
    lock.release(SINCE)


@pytest.mark.accepts("P1", "S04")
def test_removing_the_lock_file_makes_no_room_for_a_second_owner(home):
    with another_supervisor(home):
        home.lock.unlink()
        with pytest.raises(AlreadyRunning):
            HomeLock.take(home, owner(), retry=0.1)


@pytest.mark.accepts("S04")
def test_an_owner_notices_that_its_lock_file_was_swapped(home):
    lock = HomeLock.take(home, owner())
    home.lock.rename(home.path / "away")
    assert not lock.intact()
    home.lock.write_text("{}")
    assert not lock.intact()
    lock.release(SINCE)
    assert not lock.intact()


@pytest.mark.accepts("S03")
def test_a_link_planted_as_the_lock_is_not_followed(home):
    target = home.path / "precious"
    target.write_text("precious")
    home.lock.symlink_to(target)
    with pytest.raises(HostFailure, match="cannot open the lock"):
        HomeLock.take(home, owner())
    assert target.read_text() == "precious"
    assert read_owner(home).standing is Standing.CORRUPT


@pytest.mark.accepts("D-06", "P1")
def test_of_many_starts_at_once_exactly_one_wins(home):
    program = HOLD.replace("lock = ", "import time\nlock = ")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(home.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    try:
        until(lambda: sum(process.poll() is not None for process in started) == 5)
        (winner,) = [process for process in started if process.poll() is None]
        assert read_owner(home).owner.pid == winner.pid
        for process in started:
            if process is not winner:
                assert f"pid {winner.pid}" in process.stderr.read()
    finally:
        for process in started:
            process.kill()
            process.communicate()


@pytest.mark.accepts("R-02")
def test_readers_see_whole_records_and_never_disturb_a_start(home):
    """Readers do not take the lock: a start that comes while they look must succeed at once."""
    program = (
        "import sys\nfrom uphold.host.homes import Home\nfrom uphold.host.locks import read_owner\n"
        "seen = set()\n"
        "print('reading', flush=True)\n"
        "while not (Home(sys.argv[1]).path / 'enough').exists():\n"
        "    seen.add(str(read_owner(Home(sys.argv[1])).standing))\n"
        "print(sorted(seen))"
    )
    HomeLock.take(home, owner()).release(SINCE)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(home.path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for reader in readers:
        assert reader.stdout.readline() == "reading\n"
    for turn in range(300):
        lock = HomeLock.take(home, owner(config="c" * (turn % 50)), retry=0)
        lock.release(SINCE + turn)
    (home.path / "enough").touch()
    for reader in readers:
        out, _ = reader.communicate()
        assert out.strip() in {"['running', 'stopped']", "['running']", "['stopped']"}


def test_nothing_of_the_lock_is_inherited_by_programs_we_start(home):
    lock = HomeLock.take(home, owner())
    child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    lock.release(SINCE)
    HomeLock.take(home, owner(), retry=0).release(SINCE)
    child.kill()
    child.wait()


def test_a_removed_lock_file_is_put_back_and_ownership_never_lapses(home):
    owner = Owner.this_process("id", 1.0)
    lock = HomeLock.take(home, owner)
    assert not lock.restore()
    home.lock.unlink()
    assert not lock.intact()
    with pytest.raises(AlreadyRunning):
        HomeLock.take(home, owner, retry=0.0)
    assert lock.restore()
    assert lock.intact()
    assert read_owner(home).standing is Standing.RUNNING
    lock.release(2.0)
    assert read_owner(home).standing is Standing.STOPPED
