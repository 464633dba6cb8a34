"""The files of one log: their names, and the renames of a rotation.

`web.log` is the current one, `web.log.1` or `web.log.1.gz` the newest rotated one, and so on;
beside each lies an index (`web.log.idx`, `web.log.1.idx`). Everything happens relative to the
descriptor of the log folder. What is inside the files is not known here.

A rotation survives `kill -9` at any point because its steps leave signs:

1. The unfinished line at the end is copied to `.web.log.rest`.
2. The current file is cut after its last line end. This is the decision: before it the file
   does not end with a newline and the copy is thrown away, after it the copy is all there is.
3. Every file moves up one place into the first free one, then `.rest` becomes `web.log`.

`settle` looks for the signs and finishes or forgets. Nothing is appended while `.rest` exists.
"""

from __future__ import annotations

import errno
import os
import stat

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
WRITE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def log_name(fifo: str) -> str | None:
    """Name the log of a FIFO: `web.2.out` fills `web.2.log`, `web.err` fills `web.err.log`."""
    slot, dot, stream = fifo.rpartition(".")
    if not dot or not slot or slot.startswith(".") or "/" in fifo or len(fifo) > 128:
        return None
    return {"out": f"{slot}.log", "err": f"{slot}.err.log"}.get(stream)


class Chain:
    """The files of one log, current and rotated."""

    __slots__ = ("folder", "name")

    def __init__(self, folder: int, name: str) -> None:
        self.folder = folder
        """A descriptor of the log folder."""
        self.name = name

    def plain(self, place: int) -> str:
        """Name the readable file at a place; 0 is the current one."""
        return f"{self.name}.{place}" if place else self.name

    def packed(self, place: int) -> str:
        """Name the compressed file at a place."""
        return f"{self.plain(place)}.gz"

    def index(self, place: int) -> str:
        """Name the time index of the file at a place, compressed or not."""
        return f"{self.plain(place)}.idx"

    @property
    def rest(self) -> str:
        """The unfinished line that the next current file begins with."""
        return f".{self.name}.rest"

    @property
    def packing(self) -> str:
        """A compressed file that is not finished."""
        return f".{self.name}.gz"

    def open_current(self) -> int:
        """Open the current file for writing; what is there but no regular file is set aside."""
        self._is_file(self.name)
        return os.open(self.name, WRITE_FLAGS, 0o600, dir_fd=self.folder)

    def changed_at(self) -> int:
        """Tell when a name in the folder last came, went or was given to another file.

        In microseconds of the wall clock. Not the time of modification: whoever cleans up old
        files may set that back afterwards.
        """
        return os.fstat(self.folder).st_ctime_ns // 1000

    def means(self, name: str, descriptor: int) -> bool:
        """Tell whether a name still means the file that is open here."""
        try:
            found = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        here = os.fstat(descriptor)
        return found.st_ino == here.st_ino and found.st_dev == here.st_dev

    def settle(self, keep: int) -> None:
        """Finish or forget a rotation that somebody began and did not live to end."""
        if not self._is_file(self.rest):
            return
        there = self._is_file(self.name)
        if there and self._ends_within_a_line():
            self._remove(self.rest)
            return
        if there:
            self.shift(keep)
        self._rename(self.rest, self.name)

    def make_room(self, keep: int) -> None:
        """Remove what the next shift would push beyond the last place, so that space is there."""
        place = max(keep, 1)
        while self._occupied(place):
            if place > keep or self._first_gap(keep) is None:
                self.drop(place)
            place += 1

    def keep_rest(self, text: bytes) -> None:
        """Write the unfinished line aside, whole or not at all."""
        rest = os.open(self.rest, WRITE_FLAGS | os.O_TRUNC, 0o600, dir_fd=self.folder)
        try:
            if os.write(rest, text) != len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(rest)

    def shift(self, keep: int) -> None:
        """Move every file up one place, into the first free one; the current one becomes `.1`.

        Done again after it was interrupted it goes on where it stopped: what has moved left a
        gap behind, and nothing above a gap is touched.
        """
        self.make_room(keep)
        if keep == 0:
            self.drop(0)
            return
        for place in range((self._first_gap(keep) or keep) - 1, -1, -1):
            self._move(place, place + 1)

    def renew(self) -> None:
        """Let the unfinished line, if there is one, be the beginning of the current file."""
        if self._exists(self.rest):
            self._rename(self.rest, self.name)

    def first_plain(self, keep: int) -> int | None:
        """Find the newest rotated file that is not compressed."""
        for place in range(1, keep + 1):
            if self._exists(self.plain(place)):
                return place
        return None

    def place_of(self, inode: int, keep: int) -> int | None:
        """Find where a rotated file has moved to, if it is still kept."""
        for place in range(1, keep + 1):
            try:
                found = os.stat(self.plain(place), dir_fd=self.folder, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if found.st_ino == inode:
                return place
        return None

    def replace_by_packed(self, place: int) -> None:
        """Put the finished compressed file in place of the readable one."""
        self._rename(self.packing, self.packed(place))
        self._remove(self.plain(place))

    def drop_packing(self) -> None:
        """Remove a compressed file that nobody finishes."""
        self._remove(self.packing)

    def drop(self, place: int) -> None:
        """Remove what stands at a place, its index first."""
        self._remove(self.index(place))
        self._remove(self.packed(place))
        self._remove(self.plain(place))

    def _move(self, place: int, to: int) -> None:
        # The index goes first: then a file that has moved is known to have its index with it.
        try:  # noqa: SIM105 - contextlib is not worth its memory here
            self._rename(self.index(place), self.index(to))
        except FileNotFoundError:
            pass
        if self._exists(self.plain(place)):
            # Both forms are there after a crash while one replaced the other. Moved separately
            # they would count as two files with the same lines.
            if place:
                self._remove(self.packed(place))
            self._rename(self.plain(place), self.plain(to))
        elif place:
            self._rename(self.packed(place), self.packed(to))

    def _first_gap(self, keep: int) -> int | None:
        for place in range(1, keep + 1):
            if not self._occupied(place):
                return place
        return None

    def _occupied(self, place: int) -> bool:
        return self._exists(self.plain(place)) or self._exists(self.packed(place))

    def _ends_within_a_line(self) -> bool:
        current = os.open(self.name, READ_FLAGS, dir_fd=self.folder)
        try:
            size = os.lseek(current, 0, os.SEEK_END)
            return size > 0 and os.pread(current, 1, size - 1) != b"\n"
        finally:
            os.close(current)

    def _is_file(self, name: str) -> bool:
        """Tell whether a file is there; a link, a FIFO or whatever else is first set aside."""
        try:
            found = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if stat.S_ISREG(found.st_mode):
            return True
        self._rename(name, f"{name}.set-aside-{found.st_ino}")
        return False

    def _exists(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _rename(self, name: str, to: str) -> None:
        os.rename(name, to, src_dir_fd=self.folder, dst_dir_fd=self.folder)

    def _remove(self, name: str) -> None:
        try:  # noqa: SIM105 - contextlib is not worth its memory here
            os.unlink(name, dir_fd=self.folder)
        except FileNotFoundError:
            pass
