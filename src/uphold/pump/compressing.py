"""Compression of rotated files, one at a time, beside the moving of bytes.

A thread does the work (zlib lets go of the interpreter), at low priority, and dies with the
process: a child would live on and hold the pump's lock. Only the main thread renames, so a
rotation in the meantime is no race: the file is found again by its inode, or is gone.
A log is left alone until it has not been rotated for a second: in a flood files are pushed out
faster than they can be compressed.
"""

from __future__ import annotations

import _thread
import os
import struct
import zlib

from uphold.pump.chains import READ_FLAGS, WRITE_FLAGS
from uphold.pump.saying import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.pump.chains import Chain

CALM = 1.0
_CHUNK = 131_072
_NICENESS = 15
_TAG = b"UP"


class Compressor:
    """Compresses what was rotated, when things are calm."""

    __slots__ = ("_done", "_due", "_job", "_ring")

    def __init__(self, *, ring: Callable[[], None]) -> None:
        self._ring = ring
        """Wakes the main thread, which then calls `finish`."""
        self._due: dict[str, tuple[float, Chain, int]] = {}
        self._job: tuple[Chain, int, int] | None = None
        self._done: list[Exception | None] = []

    def want(self, chain: Chain, keep: int, now: float) -> None:
        """Compress the rotated files of this log once a second has passed without another call."""
        self._due[chain.name] = (now + CALM, chain, keep)

    def next_due(self) -> float | None:
        """Tell when `work` has something to do, on the monotonic clock."""
        if self._job is not None or not self._due:
            return None
        return min(due for due, _, _ in self._due.values())

    def work(self, now: float) -> None:
        """Begin with one file if one is due."""
        due = self.next_due()
        if due is None or due > now:
            return
        for name, (when, chain, keep) in list(self._due.items()):
            if when <= now:
                del self._due[name]
                if self._begin(chain, keep):
                    return

    def finish(self, now: float) -> None:
        """Put the result in place, if there is one; called after the bell rang."""
        if self._job is None or not self._done:
            return
        (chain, keep, inode), self._job = self._job, None
        problem = self._done.pop()
        try:
            place = chain.place_of(inode, keep)
            if problem is None and place is not None:
                chain.replace_by_packed(place)
                if chain.name not in self._due:
                    self._due[chain.name] = (now, chain, keep)
            else:
                chain.drop_packing()
        except OSError as trouble:
            problem = trouble
        if problem is not None:
            say(f"cannot compress an old file of {chain.name}: {problem}")

    def _begin(self, chain: Chain, keep: int) -> bool:
        try:
            place = chain.first_plain(keep)
            if place is None:
                return False
            source = os.open(chain.plain(place), READ_FLAGS | os.O_NONBLOCK, dir_fd=chain.folder)
        except OSError as problem:
            say(f"cannot compress an old file of {chain.name}: {problem}")
            return False
        self._job = (chain, keep, os.fstat(source).st_ino)
        try:
            _thread.start_new_thread(self._compress, (chain, source))
        except RuntimeError:
            # No thread to be had just now; the file stays readable until the next rotation.
            os.close(source)
            self._job = None
            return False
        return True

    def _compress(self, chain: Chain, source: int) -> None:
        try:
            os.setpriority(os.PRIO_PROCESS, _thread.get_native_id(), _NICENESS)
            target = os.open(chain.packing, WRITE_FLAGS | os.O_TRUNC, 0o600, dir_fd=chain.folder)
            try:
                pack(source, target)
                written = os.fstat(source).st_mtime_ns
                os.utime(target, ns=(written, written))
                # The readable file goes next; after a power cut one of the two must be whole.
                os.fsync(target)
            finally:
                os.close(target)
        except (OSError, MemoryError, zlib.error) as problem:
            self._done.append(problem)
        else:
            self._done.append(None)
        finally:
            os.close(source)
            self._ring()


def pack(source: int, target: int) -> None:
    """Write a file in gzip's format; its header remembers which inode the lines were in."""
    extra = _TAG + struct.pack("<HQ", 8, os.fstat(source).st_ino)
    _write(target, b"\x1f\x8b\x08\x04\0\0\0\0\0\x03" + struct.pack("<H", len(extra)) + extra)
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    checksum = size = 0
    while chunk := os.read(source, _CHUNK):
        checksum = zlib.crc32(chunk, checksum)
        size += len(chunk)
        _write(target, squeeze.compress(chunk))
    _write(target, squeeze.flush() + struct.pack("<II", checksum, size & 0xFFFFFFFF))


def packed_inode(head: bytes) -> int | None:
    """Read from the first 24 bytes of a compressed file which inode its lines were in."""
    if len(head) < 24 or head[:4] != b"\x1f\x8b\x08\x04" or head[12:14] != _TAG:
        return None
    return int(struct.unpack_from("<Q", head, 16)[0])


def _write(target: int, text: bytes) -> None:
    while text:
        text = text[os.write(target, text) :]
