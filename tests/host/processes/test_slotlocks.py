from __future__ import annotations

import os
import subprocess

import pytest

from uphold.host.processes.slotlocks import (
    SlotLock,
    SlotRecord,
    above_standard,
    is_held,
    read_record,
)

INTENT = SlotRecord(7, "n" * 32, "b" * 36)
FACT = INTENT._replace(pid=4_194_304, start_ticks=2**40, inode=2**63)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "web.lock"


def test_a_lock_is_taken_once_and_free_when_closed(path):
    assert not is_held(path)
    lock = SlotLock.take(path)
    assert SlotLock.take(path) is None
    assert is_held(path)
    lock.close()
    assert not is_held(path)
    SlotLock.take(path).close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.accepts("P5")
def test_the_lock_is_held_by_whoever_inherited_it(path):
    lock = SlotLock.take(path)
    child = subprocess.Popen(["sleep", "1000"], pass_fds=[lock.descriptor])
    lock.close()
    assert SlotLock.take(path) is None
    assert is_held(path)
    child.kill()
    child.wait()
    assert not is_held(path)


@pytest.mark.accepts("P2")
def test_the_record_is_replaced_in_place_and_read_without_the_lock(path):
    lock = SlotLock.take(path)
    assert read_record(path) is None
    lock.write(INTENT)
    assert read_record(path) == lock.read() == INTENT
    assert INTENT.identity is None
    assert path.stat().st_size == 256
    lock.write(FACT)
    assert read_record(path) == FACT
    assert FACT.identity.pid == FACT.pid
    assert path.stat().st_size == 256
    lock.close()


@pytest.mark.accepts("S25")
def test_whoever_inherits_the_lock_cannot_write_the_record(path):
    lock = SlotLock.take(path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pwrite(lock.descriptor, b"forged", 0)
    lock.close()


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 256, b"1 n b 1 2", b"one n b 1 2 3", b"1 n b 1 2 x", b"\xff" * 20]
)
def test_a_damaged_record_is_no_record(path, content):
    path.write_bytes(content)
    assert read_record(path) is None


def test_a_missing_record_is_no_record(path):
    assert read_record(path) is None


@pytest.mark.accepts("S04")
def test_a_lock_file_that_was_replaced_is_locked_anew(path):
    old = SlotLock.take(path)
    path.unlink()
    new = SlotLock.take(path)
    assert new is not None
    assert is_held(path)
    old.close()
    assert is_held(path)
    new.close()


@pytest.mark.accepts("S03")
def test_a_planted_link_is_neither_followed_nor_taken_for_free(path, tmp_path):
    (tmp_path / "target").touch()
    path.symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        SlotLock.take(path)
    assert is_held(path), "what cannot be looked at is not proved free"


def test_descriptors_for_a_worker_lie_above_its_own():
    low = os.dup2(os.open("/dev/null", os.O_RDONLY), 3) if not fd_open(3) else None
    if low is not None:
        moved = above_standard(low)
        assert moved > 3
        assert not fd_open(3)
        os.close(moved)
    high = os.open("/dev/null", os.O_RDONLY)
    assert above_standard(high) == high or high <= 3
    os.close(high)


def fd_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
