"""Room kept back for orders: a file that is given up when the disk is full.

Facts can wait in memory until there is room again. An order cannot, and on a full disk it may be
the one that stops whatever fills it. The file takes room only where there is plenty.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

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
