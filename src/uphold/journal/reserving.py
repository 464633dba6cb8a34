"""Room on the disk: some is kept back for orders, and where a full disk kills, some is asked for.

Facts can wait in memory until there is room again. An order cannot, and on a full disk it may be
the one that stops whatever fills it. The file kept for it takes room only where there is plenty.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.host.files import is_kept_in_place
from uphold.host.memory import can_be_changed, shared_maps

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

    _ENOUGH: Final = SIZE // 4

    def __init__(self, journal: Path) -> None:
        self._index = journal.with_name(f"{journal.name}-shm")
        self._asked_for: bool | None = None
        self._maps: tuple[tuple[int, int], ...] = ()
        self._mapped = -1
        """How long the index was when it was looked for in memory."""

    def is_there(self) -> bool:
        """Tell whether what is open may be written to; always, where nobody need ask."""
        # In this order: what is written first makes the disk put away what was changed before.
        return not self._needed() or (self._takes_more() and self._takes_changes())

    def is_there_for(self, more: int = 0) -> bool:
        """Tell whether it may be opened, or closed with so many bytes to be moved."""
        return not self._needed() or (self._has(more) and self._takes_more())

    def forget(self) -> None:
        """Look for the index anew: it is mapped elsewhere when it is opened again."""
        self._mapped = -1

    def _needed(self) -> bool:
        if self._asked_for is None:
            self._asked_for = is_kept_in_place(self._index.parent)
        return self._asked_for

    def _takes_changes(self) -> bool:
        with suppress(OSError):  # somebody removed it; what is mapped stays
            size = self._index.stat().st_size
            if size != self._mapped:
                self._maps, self._mapped = shared_maps(str(self._index)), size
        return can_be_changed(self._maps)

    def _has(self, size: int) -> bool:
        if not size:
            return True
        disk = os.statvfs(self._index.parent)
        return disk.f_bavail * disk.f_frsize > size

    def _takes_more(self) -> bool:
        flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC  # it never has a name
        try:
            descriptor = os.open(self._index.parent, flags, 0o600)
            try:
                return os.pwrite(descriptor, bytes(self._ENOUGH), 0) == self._ENOUGH
            finally:
                os.close(descriptor)
        except OSError:
            return False
