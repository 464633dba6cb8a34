"""The current file of one log: takes bytes out of a FIFO, and is rotated when it is full.

Bytes go from the FIFO to the file inside the kernel (`splice`), so a kill has no moment in which
they are nowhere. Where the file system cannot do that they are read and written instead; then
at most one chunk (64 KiB) is in memory, and only there, between the two calls.
Every OSError that leaves here is about the file; BlockingIOError says that the FIFO is empty.
After an error the file is closed, and the next use opens and settles it again.
"""

from __future__ import annotations

import errno
import os
import select

from uphold.pump.indexes import Index, limit_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from uphold.pump.chains import Chain
    from uphold.pump.settings import LogSettings

CHUNK = 65536
"""What a FIFO holds, and how far back the end of the last line is looked for."""
_HALF = CHUNK // 2
_ALIGNED, _STRIDE = 65_536, 262_144
"""In a flood each splice ends at a multiple of the one, after at most the other: the page cache
then gets few large pieces, which costs less than taking all that a FIFO happens to hold."""
_splice, _AT_ONCE = os.splice, os.SPLICE_F_NONBLOCK
_seek, _END = os.lseek, os.SEEK_END
_LOOK_EVERY = 1_000_000
"""Microseconds after which names are looked at again: people remove logs and move them away."""
_CALM = 4_000_000
"""Microseconds; a folder that changed longer ago cannot change again without a later time. Some
file systems count in steps of two seconds."""


class LogFile:
    """Where the output of one slot goes now."""

    __slots__ = (
        "_checked",
        "_copying",
        "_fd",
        "_folder_time",
        "_held",
        "_index",
        "_size",
        "chain",
        "rotations",
        "settings",
    )

    def __init__(self, chain: Chain, settings: LogSettings, *, copying: bool = False) -> None:
        self.chain = chain
        self.settings = settings
        self.rotations = 0
        """How often it was rotated since somebody set this to 0."""
        self._copying = copying
        self._held = b""
        self._index = Index(chain, 0)
        self._fd = -1
        self._size = 0
        self._checked = 0
        self._folder_time = 0
        """The folder's time when all names were found to be right; 0 if that may not last."""

    def take(self, fifo: int, most: int, now: int) -> int:
        """Move up to so many bytes out of the FIFO; 0 means that nobody will write to it again.

        `now` is the wall time in microseconds, for the index. If something was moved before an
        error came, that is told first; the next call meets the error again.

        Before bytes are moved it is asked where the file ends, each time: somebody may have
        emptied it, and what is then written at the old place hides that behind a hole. The call
        is the cheapest there is, and puts the place of writing at the end besides.
        """
        moved = 0
        try:
            while moved < most:
                room = self.settings.max_size - self._size
                if room <= 0 and not self._held and not _has_output(fifo):
                    break
                if (
                    self._fd < 0
                    or room <= 0
                    or self._held
                    or not 0 <= now - self._checked < _LOOK_EVERY
                    or _seek(self._fd, 0, _END) != self._size
                ):
                    room = self._make_ready(now)
                self._index.note(now, self._size)
                wanted = min(most - moved, room)
                count = self._move(fifo, wanted)
                moved += count
                if count < wanted and not (self._copying and count >= _HALF):
                    break
        except BlockingIOError:
            if not moved:
                raise
        except OSError:
            self.close()
            if not moved:
                raise
        return moved

    def mark_dropped(self, count: int, now: int) -> None:
        """Say in the log, on a line of its own, how much of the output is missing here."""
        self._make_ready(now)
        self._index.note(now, self._size)
        try:
            within = self._size > 0 and os.pread(self._fd, 1, self._size - 1) != b"\n"
            text = b"%s[uphold: %d bytes dropped]\n" % (b"\n" if within else b"", count)
            self._write_whole(text)
        except OSError:
            self.close()
            raise

    @property
    def held(self) -> int:
        """How much was read and could not be written yet (only without `splice`)."""
        return len(self._held)

    def give_up_held(self) -> int:
        """Throw away what was read and could not be written; tell how much that was."""
        count, self._held = len(self._held), b""
        return count

    def write_times(self) -> None:
        """Let the index have the times that were only noted so far."""
        self._index.flush()

    def settle(self) -> None:
        """Finish a rotation that was interrupted; nothing is created."""
        self.chain.settle(self.settings.keep)

    def close(self) -> None:
        """Let go of the files."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._index.close()

    def _make_ready(self, now: int) -> int:
        """Open, check, rotate as needed; tell how many bytes still fit."""
        if self._fd >= 0:
            self._look(now)
        if self._fd < 0:
            self._open(now)
        if self._held:
            self._write_held()
        if self._size >= self.settings.max_size:
            self._rotate(now)
        return self.settings.max_size - self._size

    def _open(self, now: int, arrived: int = 0) -> None:
        """Open the current file at its end; `arrived` is the time of what is in it, if known."""
        self.settle()
        self._fd = self.chain.open_current()
        self._size = _seek(self._fd, 0, _END)
        self._checked = now
        self._open_index(arrived)

    def _open_index(self, arrived: int) -> None:
        self._index = Index(self.chain, limit_for(self.settings.max_size))
        self._index.open(self._size, arrived or os.fstat(self._fd).st_mtime_ns // 1000)

    def _look(self, now: int) -> None:
        """Notice what was removed, moved away, replaced or emptied behind our back.

        Names are looked up only if the folder has changed since: a thousand logs go through here
        every second.
        """
        self._checked = now
        if _seek(self._fd, 0, _END) != self._size:
            self.close()
            return
        changed = self.chain.changed_at()
        if changed == self._folder_time:
            return
        self._folder_time = 0
        if not self.chain.means(self.chain.plain(0), self._fd):
            self.close()
        elif not self._index.is_there():
            arrived = self._index.last
            self._index.close()
            self._open_index(arrived)
        elif now - changed > _CALM:
            self._folder_time = changed

    def _move(self, fifo: int, most: int) -> int:
        """Splice until so much is moved or the FIFO is as good as empty.

        That it is, once it gave less than half of what it can hold: asking again would cost a
        call only to hear so. The loop is this tight because a flood goes through it.
        """
        if self._copying:
            return self._copy(fifo, most)
        moved, log, begin = 0, self._fd, self._size
        try:
            while moved < most:
                aligned = _STRIDE - (begin + moved) % _ALIGNED
                count = _splice(fifo, log, min(most - moved, aligned), None, None, _AT_ONCE)
                moved += count
                # In a flood nearly all time passes here, so it would be here that it is emptied.
                if count < _HALF or _seek(log, 0, _END) != begin + moved:
                    break
        except OSError as problem:
            if moved:
                return moved
            if problem.errno not in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}:
                raise
            self._copying = True
            return self._copy(fifo, most)
        finally:
            self._size += moved
        return moved

    def _copy(self, fifo: int, most: int) -> int:
        self._held = os.read(fifo, min(most, CHUNK))
        taken = len(self._held)
        self._write_held()
        return taken

    def _write_held(self) -> None:
        while self._held:
            try:
                written = os.write(self._fd, self._held)
            except OSError:
                self.close()
                raise
            self._held = self._held[written:]
            self._size += written

    def _write_whole(self, text: bytes) -> None:
        if os.write(self._fd, text) != len(text):
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += len(text)

    def _rotate(self, now: int) -> None:
        keep = self.settings.keep
        arrived = self._index.last
        try:
            self.chain.make_room(keep)
            cut = self._line_end()
            if cut < self._size:
                self.chain.keep_rest(os.pread(self._fd, self._size - cut, cut))
                os.ftruncate(self._fd, cut)
        finally:
            self.close()
        self.chain.shift(keep)
        self.chain.renew()
        self.rotations += 1
        self._open(now, arrived)

    def _line_end(self) -> int:
        """Find where the last whole line ends; without one in reach, the end of the file."""
        begin = max(0, self._size - CHUNK)
        line_end = os.pread(self._fd, self._size - begin, begin).rfind(b"\n")
        return self._size if line_end < 0 else begin + line_end + 1


def _has_output(fifo: int) -> bool:
    """Tell whether something waits in a FIFO, False if nothing ever will; else BlockingIOError.

    For a file that is full: it is not rotated for nothing, which would push the oldest out.
    """
    looking = select.poll()
    looking.register(fifo, select.POLLIN)
    for _, event in looking.poll(0):
        return bool(event & select.POLLIN)
    raise BlockingIOError
