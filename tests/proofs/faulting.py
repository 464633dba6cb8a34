"""Choosing the one call of a supervisor that fails or is its last; see faulting.c."""

from __future__ import annotations

import ctypes
import mmap
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("faulting.c")
KINDS = ("kill", "EIO", "ENOSPC", "torn")
ALL_KINDS = (*KINDS, "alone")
"""In the order of the numbers in faulting.c; "alone" is for processes that somebody else started:
their calls only are counted, and whoever started them lives on."""


class _Page(ctypes.Structure):
    _fields_ = (
        ("at", ctypes.c_long),
        ("kind", ctypes.c_long),
        ("seen", ctypes.c_long),
        ("hit", ctypes.c_long),
        ("owner", ctypes.c_long),
        ("changing", ctypes.c_long),
        ("folder", ctypes.c_char * 1024),
        ("what", ctypes.c_char * 1024),
    )


class Faults:
    """The page shared with the process whose calls are counted."""

    def __init__(self, folder):
        self._library = folder / "faulting.so"
        self._name = folder / "faulting.page"
        compiler = shutil.which("gcc") or shutil.which("cc")
        assert compiler, "there is no C compiler (tools/provide.sh installs one)"
        subprocess.run(
            [compiler, "-O1", "-shared", "-fPIC", "-o", self._library, SOURCE, "-ldl"], check=True
        )
        self._name.write_bytes(bytes(mmap.PAGESIZE))
        with self._name.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), mmap.PAGESIZE)
        self._page = _Page.from_buffer(self._memory)

    @property
    def environ(self):
        """What makes a program listen to this page."""
        return {"LD_PRELOAD": str(self._library), "FAULTING_PAGE": str(self._name)}

    def arm(self, below, kind, at, *, changing=False):
        """Let the call number `at` of those below a folder fail; -1 only counts.

        `changing`: where a file is only opened to be read is passed over.
        """
        self._page.at = 0
        self._page.changing = changing
        self._page.kind = ALL_KINDS.index(kind)
        self._page.seen = self._page.hit = self._page.owner = 0
        self._page.folder = f"{below}/".encode()
        self._page.what = b""
        self._page.at = at

    def disarm(self):
        """End the counting: what was struck ("" for nothing) and how many calls there were."""
        self._page.at = 0
        return self._page.what.decode() if self._page.hit else "", self._page.seen

    @property
    def hit(self):
        return bool(self._page.hit)

    def close(self):
        del self._page
        self._memory.close()


def available():
    """Tell whether this machine can do it."""
    return bool(shutil.which("gcc") or shutil.which("cc"))
