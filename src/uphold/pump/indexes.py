"""The time index of a log: when the bytes from an offset on arrived.

Records of 16 bytes, little-endian: wall time in microseconds, offset. Where two name the same
offset the later one is true. Records are at least 10 ms apart. One is written *before* the bytes
it speaks of; only in a log that goes on and on those of a second are written together, so even
after a kill nothing seems older than it is by more than that. An index that reaches its limit is
thinned until half is left, evenly in time; so it is never larger than the limit. Nothing depends
on it but the times shown, hence a record that cannot be written is left out without complaint.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from uphold.pump.chains import Chain

RECORD = struct.Struct("<QQ")
GAP = 10_000
"""Microseconds between two records of one log, at first."""
HOLD = 1_000_000
"""Microseconds; a log that goes on and on has its records written so often, not one by one."""
BURST = 4 * HOLD
"""How far ahead of that rhythm the writing may run after a silence."""
_MOST_NOTED = 128 * RECORD.size
LEAST, MOST, SHARE = 4096, 1_048_576, 8
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def limit_for(max_size: int) -> int:
    """Tell how many bytes the index of a log of this size may have."""
    return min(MOST, max(LEAST, max_size // SHARE))


def thinned(records: bytes, gap: int, limit: int) -> tuple[bytes, int]:
    """Leave out records, evenly in time, until at most half the limit is used.

    Returns what is left and the gap between records that this took.
    """
    while len(records) > limit // 2:
        gap *= 2
        kept = []
        last = -gap
        for at, offset in RECORD.iter_unpack(records):
            # Both ways: the wall clock may have been set back.
            if abs(at - last) >= gap:
                kept.append(RECORD.pack(at, offset))
                last = at
        records = b"".join(kept)
    return records, gap


class Index:
    """Writes the index of the current file of one log."""

    __slots__ = ("_chain", "_fd", "_gap", "_last", "_limit", "_most", "_noted", "_paid", "_size")

    def __init__(self, chain: Chain, limit: int) -> None:
        self._chain = chain
        self._limit = limit
        self._most = min(_MOST_NOTED, limit // 2)  # so much fits after thinning
        self._gap = GAP
        self._last = 0
        self._paid = 0
        """Until when the writes so far would have sufficed, one each HOLD."""
        self._noted = b""
        self._size = 0
        self._fd = -1

    @property
    def last(self) -> int:
        """When the newest bytes that a record speaks of arrived; 0 if not known."""
        return self._last

    def open(self, log_size: int, log_time: int) -> None:
        """Open it for a log of this size, last written at this time (both as found)."""
        try:
            name = self._chain.index(0)
            self._fd = os.open(name, _FLAGS, 0o600, dir_fd=self._chain.folder)
            size = os.lseek(self._fd, 0, os.SEEK_END)
            self._size = size - size % RECORD.size
            if self._size != size:
                os.ftruncate(self._fd, self._size)
            if self._size and self._read_last() > log_size:
                # It speaks of another file: somebody emptied or replaced the log.
                os.ftruncate(self._fd, 0)
                self._size = 0
        except OSError:
            self.close()
            return
        if self._size == 0 and log_size:
            self._noted = RECORD.pack(log_time, 0)
            self._last = log_time
            self.flush()

    def is_there(self) -> bool:
        """Tell whether it is open and can be found under its name, where readers look for it."""
        try:
            return self._fd >= 0 and self._chain.means(self._chain.index(0), self._fd)
        except OSError:
            return False

    def note(self, now: int, offset: int) -> None:
        """Record that what follows this offset arrives now, unless that was said just now."""
        if 0 <= now - self._last < self._gap or self._fd < 0:
            return
        self._noted += RECORD.pack(now, offset)
        self._last = now
        ahead = self._paid - now
        # Too far ahead is possible only if the clock was set back.
        if not BURST <= ahead <= BURST + HOLD or len(self._noted) >= self._most:
            self.flush()

    def flush(self) -> None:
        """Write what was only noted so far; what cannot be written is left out."""
        noted, self._noted = self._noted, b""
        if not noted or self._fd < 0:
            return
        ahead = self._paid - self._last
        self._paid = self._last + HOLD + (min(ahead, BURST) if 0 < ahead <= BURST + HOLD else 0)
        try:
            if self._size + len(noted) > self._limit:
                self._thin()
            if os.write(self._fd, noted) == len(noted):
                self._size += len(noted)
            else:
                os.ftruncate(self._fd, self._size)
        except OSError:
            return

    def close(self) -> None:
        """Let go of the file."""
        self.flush()
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _read_last(self) -> int:
        self._last, offset = RECORD.unpack(
            os.pread(self._fd, RECORD.size, self._size - RECORD.size)
        )
        return int(offset)

    def _thin(self) -> None:
        records = os.pread(self._fd, self._size, 0)
        left, self._gap = thinned(records, self._gap, self._limit)
        # Through another file: a reader has the old index or the new one, never half of one.
        name, temporary = self._chain.index(0), f".{self._chain.index(0)}"
        folder = self._chain.folder
        fresh = os.open(temporary, _FLAGS | os.O_TRUNC, 0o600, dir_fd=folder)
        try:
            if os.write(fresh, left) == len(left):
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                fresh, self._fd = self._fd, fresh
                self._size = len(left)
            else:
                os.unlink(temporary, dir_fd=folder)
        finally:
            os.close(fresh)
