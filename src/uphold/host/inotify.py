"""The kernel's news about folders, through libc: no thread, no extra library.

Helpers of a share import this too, so nothing else of uphold is, nor what would make them large.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO = 0x4, 0x8, 0x40, 0x80
CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x100, 0x200, 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
FOLDER_ITSELF = DELETE_SELF | MOVE_SELF | UNMOUNT | OVERFLOW | IGNORED
"""What happens to the folder, or to the news of it, and not to one entry."""
_ONLY_FOLDERS = 0x01000000
_HEAD = struct.Struct("iIII")
_MOST = 65536
_UNTOLD = (
    *("nfs", "cifs", "smb", "9p", "fuse", "afs", "ceph", "gfs", "ocfs", "virtiofs", "lustre"),
    *("beegfs", "gpfs", "orangefs", "coda", "vboxsf", "vmhgfs", "prl_fs"),
)
"""File systems on which somebody else may write without this kernel knowing."""

News = tuple[int, int, str]
"""Which watch, what happened, and the name of the entry; empty if it is the folder itself."""


class Watches:
    """One inotify descriptor, and the folders it watches."""

    def __init__(self) -> None:
        """OSError where there is no inotify, or no more of it for this user."""
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (AttributeError, TypeError) as cause:
            raise OSError(errno.ENOSYS, "inotify is not available") from cause
        if self.descriptor < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"inotify is not available ({os.strerror(number)})")

    def add(self, folder: str, interest: int) -> int:
        """Watch a folder; one that is watched already has one watch only, and its number."""
        mask = ctypes.c_uint32(interest | _ONLY_FOLDERS)
        watch = int(self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), mask))
        if watch < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot watch {folder} ({os.strerror(number)})")
        return watch

    def remove(self, watch: int) -> None:
        """Watch a folder no more; one that is gone is not missed."""
        self._libc.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> list[News]:
        """Give what has come in, as much as one reading holds; nothing if there is nothing."""
        try:
            news = os.read(self.descriptor, _MOST)
        except BlockingIOError:
            return []
        found: list[News] = []
        at = 0
        while at < len(news):
            watch, mask, _, length = _HEAD.unpack_from(news, at)
            begin = at + _HEAD.size
            at = begin + length
            found.append((watch, mask, os.fsdecode(news[begin:at].rstrip(b"\0"))))
        return found

    def close(self) -> None:
        """Let go of the descriptor, and so of every watch."""
        os.close(self.descriptor)


def is_untold(folder: str | int) -> bool:
    """Tell whether a folder lies on a file system that others may change unnoticed."""
    try:
        device = os.stat(folder).st_dev  # noqa: PTH116 - it may be a descriptor
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:  # noqa: PTH123
            lines = mounts.readlines()
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [line.split(" - ", 1)[1] for line in lines if line.split(" ", 3)[2] == number]
    return any(kind.startswith(_UNTOLD) for kind in kinds)
