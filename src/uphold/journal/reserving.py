"""Room on the disk: some is kept back for orders, and where a full disk kills, some is asked for.

Facts can wait in memory until there is room again. An order cannot, and on a full disk it may be
the one that stops whatever fills it. The file kept for it takes room only where there is plenty.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.host.files import is_kept_in_place

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "reserve"
SIZE: Final = 1024 * 1024
_PLENTY: Final = 16 * SIZE


class Reserve:
    """One file beside the journal. Nothing here ever fails: without it orders are only refused."""

    def __init__(self, journal: Path) -> None:
        self._path = journal.with_name(NAME)
        self._spent = True

    def renew(self) -> None:
        """Have the file again, if it was given up or never there, and the disk has plenty."""
        if self._spent:
            with suppress(OSError):
                self._spent = not self._make()

    def give_up(self) -> bool:
        """Let go of the room; False when there is none."""
        self._spent = True
        try:
            self._path.unlink()
        except OSError:
            return False
        return True

    def _make(self) -> bool:
        disk = os.statvfs(self._path.parent)
        if disk.f_bavail * disk.f_frsize < _PLENTY or not hasattr(os, "posix_fallocate"):
            return self._path.exists()
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            # Not by writing zeros: some disks keep no room for those.
            os.posix_fallocate(descriptor, 0, SIZE)
        finally:
            os.close(descriptor)
        return True


class Headroom:
    """Whether a disk takes anything, asked before SQLite is let near it.

    SQLite maps its index into memory. On btrfs that is full, or at its quota, a change there is no
    error that could be told: it is SIGBUS, the end of the supervisor. Other disks change in place.
    """

    _ENOUGH: Final = bytes(256 * 1024)

    def __init__(self, journal: Path) -> None:
        self._folder = journal.parent
        self._asked_for: bool | None = None
        self._descriptor = -1

    def is_there(self, for_more: int = 0) -> bool:
        """Tell whether there is room, for so many bytes more; always, where nobody need ask."""
        if self._asked_for is None:
            self._asked_for = is_kept_in_place(self._folder)
        return not self._asked_for or (self._has(for_more) and self._takes())

    def close(self) -> None:
        """Let go of the file that was written to for an answer."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _has(self, size: int) -> bool:
        if not size:
            return True
        disk = os.statvfs(self._folder)
        return disk.f_bavail * disk.f_frsize > size

    def _takes(self) -> bool:
        try:
            if self._descriptor < 0:
                flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC  # it never has a name
                self._descriptor = os.open(self._folder, flags, 0o600)
            taken = os.pwrite(self._descriptor, self._ENOUGH, 0)
        except OSError:
            taken = 0
        if taken:
            with suppress(OSError):  # what was taken for the answer is given back at once
                os.ftruncate(self._descriptor, 0)
        return taken == len(self._ENOUGH)
