"""Reading what the pump wrote: the files of one log in order, their lines, their times.

A log is read while the pump goes on writing and rotating it, so its files are opened as one
consistent set: all of them, then a second look whether the names still mean the same files.
Nothing here writes, locks or waits.
"""

from __future__ import annotations

import os
import stat
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from uphold.pump.chains import READ_FLAGS, Chain
from uphold.pump.compressing import packed_inode
from uphold.pump.indexes import MOST, RECORD

LINE_CAP: Final = 8192
"""A longer line is shown in pieces of this size."""
_BLOCK: Final = 262_144
_TRIES: Final = 100
_GAPS: Final = 3
"""Free places in a row after which no file is looked for; an interrupted rotation leaves one."""
_LATEST: Final = 250_000_000_000_000_000
"""Microseconds; what claims to be later was not written by a pump."""
_FARTHEST: Final = 1 << 48
"""Bytes; no log is so large."""


class RawLine(NamedTuple):
    """A line, or a piece of a very long one, without its line end."""

    offset: int
    text: bytes
    end: int
    """Where the next one begins."""
    whole: bool
    """False for the last one while its end has not been written."""


class Times:
    """When the bytes of one file arrived. Records that make no sense are passed over."""

    __slots__ = ("_at", "_offsets", "_records")

    def __init__(self, records: bytes) -> None:
        self._records = records
        """Not looked at yet; for most files nobody asks."""
        self._offsets: list[int] = []
        self._at: list[float] = []

    def known(self) -> bool:
        """Tell whether any record says anything."""
        self._look()
        return bool(self._at)

    def at(self, offset: int) -> float | None:
        """Tell when the byte at this offset arrived; None if no record says."""
        self._look()
        if not self._at:
            return None
        return self._at[max(0, bisect_right(self._offsets, offset) - 1)]

    def first_since(self, moment: float) -> int | None:
        """Find the offset from which on something is as new as this; None if nothing is."""
        self._look()
        for offset, at in zip(self._offsets, self._at, strict=True):
            if at >= moment:
                return offset
        return None

    def _look(self) -> None:
        records, self._records = self._records, b""
        usable = records[: len(records) - len(records) % RECORD.size]
        for at, offset in RECORD.iter_unpack(usable):
            if not 0 < at < _LATEST or offset > _FARTHEST:
                continue
            if not self._offsets or offset >= self._offsets[-1]:
                self._offsets.append(offset)
                self._at.append(at / 1_000_000)


class Piece:
    """One file of a log, held open; what the name means later does not matter any more."""

    def __init__(self, fd: int, *, name: str, packed: bool, times: Times) -> None:
        self.fd = fd
        self.name = name
        self.packed = packed
        self.times = times
        found = os.fstat(fd)
        self.inode = found.st_ino
        """Which file the lines were written to; the compressed one remembers."""
        self.written = found.st_mtime_ns
        if packed:
            self.inode = packed_inode(os.pread(fd, 24, 0)) or found.st_ino

    def lines(self, begin: int = 0) -> Iterator[RawLine]:
        """Read the lines from an offset on, up to the present end.

        OSError or zlib.error if the file is damaged.
        """
        blocks = self._unpacked(begin) if self.packed else self._plain(begin)
        return split_lines(blocks, begin)

    def line_begin(self, offset: int) -> int:
        """Find where the first line that begins at or after an offset begins."""
        if offset <= 0:
            return 0
        for line in self.lines(offset - 1):
            return line.end
        return offset

    def last_lines(self, count: int) -> tuple[int, int]:
        """Find where the last so many lines begin, and how many there are (fewer if few)."""
        if self.packed:
            begins = [line.offset for line in self.lines()]
            return (begins[-count], count) if len(begins) >= count else (0, len(begins))
        end = size = self.size
        # A line end at the very end of the file closes a line and begins none.
        found = -1 if size and os.pread(self.fd, 1, size - 1) == b"\n" else 0
        while end:
            begin = max(0, end - _BLOCK)
            block = os.pread(self.fd, end - begin, begin)
            at = len(block)
            while (at := block.rfind(b"\n", 0, at)) >= 0:
                found += 1
                if found == count:
                    return begin + at + 1, count
            end = begin
        return 0, found + 1 if size else 0

    def unfinished(self) -> int:
        """Find where the line begins that has no end yet: the end of the file if there is none."""
        return self.size if ends_a_line(self) else self.last_lines(1)[0]

    @property
    def size(self) -> int:
        """Its present size (of the compressed form, if it is compressed)."""
        return os.fstat(self.fd).st_size

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.fd)

    def _plain(self, begin: int) -> Iterator[bytes]:
        while block := os.pread(self.fd, _BLOCK, begin):
            yield block
            begin += len(block)

    def _unpacked(self, begin: int) -> Iterator[bytes]:
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        source = 0
        while packed := os.pread(self.fd, 65536, source):
            source += len(packed)
            block = unpack.decompress(packed, _BLOCK)
            while block:
                if begin < len(block):
                    yield block[begin:]
                begin = max(0, begin - len(block))
                # More may be inside even if nothing is left of what was put in.
                block = unpack.decompress(unpack.unconsumed_tail, _BLOCK)
        if not unpack.eof:
            raise zlib.error("the compressed file ends too early")


def split_lines(blocks: Iterable[bytes], offset: int) -> Iterator[RawLine]:
    """Cut blocks into lines, and endless lines into pieces."""
    rest = b""
    for block in blocks:
        rest += block
        begin = 0
        while True:
            end = rest.find(b"\n", begin, begin + LINE_CAP + 1)
            if end >= 0:
                after = end + 1
            elif len(rest) - begin > LINE_CAP:
                end = after = begin + LINE_CAP
            else:
                break
            yield RawLine(offset + begin, rest[begin:end], offset + after, whole=True)
            begin = after
        offset += begin
        rest = rest[begin:]
    if rest:
        yield RawLine(offset, rest, offset + len(rest), whole=False)


def open_pieces(folder: int, name: str) -> list[Piece]:
    """Open every file of a log, oldest first, as they belong together at one moment."""
    chain = Chain(folder, name)
    for _ in range(_TRIES):
        names = _names(chain)
        pieces = _open_all(chain, names)
        if pieces is not None and _names(chain) == names:
            return pieces
        for piece in pieces or ():
            piece.close()
    raise OSError(f"the files of {name} change too fast to be read; try again")


def current_times(folder: int, name: str, *, newest: bool = False) -> Times:
    """Read the index of the current file, or only its newest records."""
    most = 64 * RECORD.size if newest else MOST
    return Times(_read_index(folder, Chain(folder, name).index(0), most))


def is_being_rotated(folder: int, name: str) -> bool:
    """Tell whether the pump is in the middle of a rotation of this log."""
    return _inode(folder, Chain(folder, name).rest) is not None


def current_inode(folder: int, name: str) -> int | None:
    """Tell which file the name means now."""
    return _inode(folder, name)


def _names(chain: Chain) -> list[tuple[str, int, int]]:
    """List the files that exist: name, inode and place, oldest first; -1 is the place of `.rest`.

    Where a file exists in both forms the readable one counts.
    """
    found: list[tuple[str, int, int]] = []
    place = missing = 0
    while missing < _GAPS:
        for name in (chain.plain(place), chain.packed(place)):
            inode = _inode(chain.folder, name)
            if inode is not None:
                found.insert(0, (name, inode, place))
                missing = 0
                break
        else:
            missing += 1
        place += 1
    rest = _inode(chain.folder, chain.rest)
    if rest is not None:
        found.append((chain.rest, rest, -1))
    return found


def _open_all(chain: Chain, names: list[tuple[str, int, int]]) -> list[Piece] | None:
    pieces: list[Piece] = []
    for name, inode, place in names:
        if place == -1 and pieces and names[-2][2] == 0 and not ends_a_line(pieces[-1]):
            # Copied aside but not yet cut off: its bytes are in the current file still.
            continue
        try:
            fd = os.open(name, READ_FLAGS | os.O_NONBLOCK, dir_fd=chain.folder)
        except FileNotFoundError:
            fd = -1
        if fd < 0 or os.fstat(fd).st_ino != inode:
            for piece in pieces:
                piece.close()
            if fd >= 0:
                os.close(fd)
            return None
        times = Times(b"" if place < 0 else _read_index(chain.folder, chain.index(place)))
        packed = place > 0 and name.endswith(".gz")
        pieces.append(Piece(fd, name=name, packed=packed, times=times))
    return pieces


def ends_a_line(piece: Piece) -> bool:
    """Tell whether nothing unfinished stands at the end of a readable file."""
    return piece.size == 0 or os.pread(piece.fd, 1, piece.size - 1) == b"\n"


def _inode(folder: int, name: str) -> int | None:
    """Tell which file a name means; None for what is no file: a link is not followed."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_ino if stat.S_ISREG(found.st_mode) else None


def _read_index(folder: int, name: str, newest: int = MOST) -> bytes:
    try:
        fd = os.open(name, READ_FLAGS | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return b""
    try:
        size = os.fstat(fd).st_size
        begin = max(0, size - size % RECORD.size - newest)
        return os.pread(fd, newest + RECORD.size, begin)
    except OSError:
        return b""
    finally:
        os.close(fd)
