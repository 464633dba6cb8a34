"""A wall clock that a proof can set for one program, and for nobody else; see shifting.c."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("shifting.c")
_OFFSET = struct.Struct("q")


class Shift:
    """The offset that programs started with `environ` add to their wall clock."""

    def __init__(self, folder):
        self._library = folder / "shifting.so"
        self._name = folder / "shifting.page"
        compiler = shutil.which("gcc") or shutil.which("cc")
        assert compiler, "there is no C compiler (tools/provide.sh installs one)"
        subprocess.run(
            [compiler, "-O1", "-shared", "-fPIC", "-o", self._library, SOURCE, "-ldl"], check=True
        )
        self._name.write_bytes(bytes(mmap.PAGESIZE))
        with self._name.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), mmap.PAGESIZE)

    @property
    def environ(self):
        """What makes a program go by this clock."""
        return {"LD_PRELOAD": str(self._library), "SHIFTING_PAGE": str(self._name)}

    @property
    def seconds(self):
        return _OFFSET.unpack_from(self._memory)[0] / 1e9

    def set(self, seconds):
        """Set the clock: so many seconds before or after the true time."""
        _OFFSET.pack_into(self._memory, 0, round(seconds * 1e9))

    def close(self):
        self._memory.close()


def command_under(shift, *words, **how):
    """Run a command that goes by this clock; None is the true one."""
    return subprocess.run(
        [*map(str, words)],
        env={**os.environ, **(shift.environ if shift else {})},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **how,
    )
