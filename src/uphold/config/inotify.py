"""The kernel's news about folders, through libc: no thread, no extra library.

`entries_of` says which folder entries decide what a path shows; links may be flipped anywhere
along the way (this is how Kubernetes replaces mounted files).
"""
# Links must be followed step by step, as text.
# ruff: noqa: PTH115, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import ctypes
import os
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED = 0x2000, 0x4000, 0x8000
_ONLY_FOLDERS: Final = 0x01000000
_INTEREST: Final = (
    _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
_FOLDER_ITSELF: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _OVERFLOW | _IGNORED
_HEAD: Final = struct.Struct("iIII")
_MOST_LINKS: Final = 40
_UNTOLD: Final = ("nfs", "cifs", "smb", "9p", "fuse", "afs", "ceph", "gfs", "ocfs", "virtiofs")
"""File systems on which somebody else may write without this kernel knowing."""

Entry = tuple[str, str]
"""A folder, and a name in it."""


class FolderNews:
    """An inotify descriptor that watches folders for entries of these names."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Watch; OSError where that cannot be done or would not tell everything."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "inotify is not available")
        self._names: dict[int, set[str]] = {}
        try:
            for folder, names in _by_folder(entries).items():
                # Two paths may lead to one folder, and it has one watch.
                self._names.setdefault(self._watch(folder), set()).update(names)
        except OSError:
            self.close()
            raise

    def concerns_us(self) -> bool:
        """Read what has come in, and tell whether any of it is about a watched entry."""
        try:
            news = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return False
        at, ours = 0, False
        while at < len(news):
            watch, mask, _, length = _HEAD.unpack_from(news, at)
            begin = at + _HEAD.size
            name = os.fsdecode(news[begin : begin + length].rstrip(b"\0"))
            ours = ours or bool(mask & _FOLDER_ITSELF) or name in self._names.get(watch, ())
            at = begin + length
        return ours

    def close(self) -> None:
        """Let go of the descriptor."""
        os.close(self.descriptor)

    def _watch(self, folder: str) -> int:
        if is_untold(folder):
            raise OSError(f"{folder} is on a network file system")
        mask = ctypes.c_uint32(_INTEREST | _ONLY_FOLDERS)
        watch = int(self._libc.inotify_add_watch(self.descriptor, os.fsencode(folder), mask))
        if watch < 0:
            raise OSError(ctypes.get_errno(), f"cannot watch {folder}")
        return watch


def entries_of(path: str) -> list[Entry]:
    """List every folder entry whose change can change what this absolute path shows."""
    found: list[Entry] = []
    here, links = "/", 0
    ahead = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    while ahead:
        part = ahead.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        entry = os.path.join(here, part)
        target = _link_target(entry)
        if target is None or links >= _MOST_LINKS:
            if not ahead:
                found.append((here, part))
            here = entry
            continue
        links += 1
        found.append((here, part))
        here = "/" if target.startswith("/") else here
        ahead += [part for part in reversed(target.split("/")) if part not in ("", ".")]
    return found


def is_untold(folder: str) -> bool:
    """Tell whether a folder lies on a file system that others may change unnoticed."""
    try:
        device = os.stat(folder).st_dev
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            lines = mounts.readlines()
    except OSError:
        return False
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [line.split(" - ", 1)[1] for line in lines if line.split(" ", 3)[2] == number]
    return any(kind.startswith(_UNTOLD) for kind in kinds)


def _by_folder(entries: Iterable[Entry]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder, name in entries:
        found.setdefault(folder, set()).add(name)
    return found


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
