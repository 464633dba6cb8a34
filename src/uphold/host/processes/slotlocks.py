"""The lock of one slot: held by the worker itself, so it ends with the last of its processes.

A held lock proves life; a free one proves nothing (a worker may close all its descriptors).
The record inside names the last run, so it can be found again without the journal.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.statuses import Identity

if TYPE_CHECKING:
    from pathlib import Path

_SIZE: Final = 256
_FIRST_FREE: Final = 4
"""Descriptors handed to a worker lie above 0 to 3, which they are copied onto."""


class SlotRecord(NamedTuple):
    """The last run of a slot: the intent, and who it became once that is known."""

    generation: int
    nonce: str
    boot_id: str
    pid: int = 0
    start_ticks: int = 0
    inode: int = 0

    @property
    def identity(self) -> Identity | None:
        """Say which process it became; None if that was never written."""
        if not self.pid:
            return None
        return Identity(
            pid=self.pid,
            start_ticks=self.start_ticks,
            boot_id=self.boot_id,
            inode=self.inode,
            nonce=self.nonce,
        )


class SlotLock:
    """A slot lock that we hold until it is handed over or closed."""

    __slots__ = ("_writing", "descriptor", "path")

    def __init__(self, path: str | Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        """Read-only: the worker inherits it and must not write the record."""
        self._writing = -1

    @classmethod
    def take(cls, path: str | Path) -> SlotLock | None:
        """Take the lock on a fresh open; None if somebody holds it. Never waits."""
        while True:
            descriptor = _open(path, os.O_RDONLY | os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                    return cls(path, above_standard(descriptor))
            except BlockingIOError:
                os.close(descriptor)
                return None
            except FileNotFoundError:
                pass  # removed between open and lock: what was locked is nobody's any more
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)

    def read(self) -> SlotRecord | None:
        """Read the record of the last run."""
        return _parse(os.pread(self.descriptor, _SIZE, 0))

    def write(self, record: SlotRecord) -> None:
        """Replace the record in place, in one write, which needs no room on a full disk."""
        content = " ".join(map(str, record)).encode()
        assert len(content) < _SIZE, f"the record of a slot fits its room: {record}"
        assert content.count(b" ") == len(record) - 1, f"a nonce is one word: {record}"
        self._put(content)

    def clear(self) -> None:
        """Take an intent back that became no process."""
        self._put(b"")

    def close(self) -> None:
        """Let go of our copy; a worker that inherited it goes on holding the lock."""
        os.close(self.descriptor)
        if self._writing >= 0:
            os.close(self._writing)
            self._writing = -1

    def _put(self, content: bytes) -> None:
        if self._writing < 0:
            self._writing = _open(self.path, os.O_WRONLY)
        os.pwrite(self._writing, content.ljust(_SIZE - 1) + b"\n", 0)


def is_held(path: str | Path) -> bool:
    """Tell whether somebody holds the lock of a slot; what cannot be looked at counts as held."""
    try:
        descriptor = _open(path, os.O_RDONLY)
    except OSError as cause:
        return not isinstance(cause, FileNotFoundError)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def read_record(path: str | Path) -> SlotRecord | None:
    """Read the record of the last run without touching the lock; None if there is no good one."""
    try:
        descriptor = _open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _parse(os.pread(descriptor, _SIZE, 0))
    finally:
        os.close(descriptor)


def above_standard(descriptor: int) -> int:
    """Move a descriptor out of the range that a worker's own are copied onto."""
    if descriptor >= _FIRST_FREE:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    os.close(descriptor)
    return moved


def _open(path: str | Path, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)


def _parse(content: bytes) -> SlotRecord | None:
    try:
        generation, nonce, boot, pid, ticks, inode = content.decode("ascii").split()
        return SlotRecord(int(generation), nonce, boot, int(pid), int(ticks), int(inode))
    except ValueError:
        return None
