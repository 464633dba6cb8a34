"""Once a second what was written goes to the disk itself, so a power cut costs that second.

A thread does it, because a sync may take long; the main thread only hands over names. Files
are opened by name, so a file that was rotated out in the meantime costs nothing.
"""

from __future__ import annotations

import _thread
import os

from uphold.pump.chains import READ_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.pump.logfiles import LogFile

EVERY = 1.0


class Syncer:
    """Brings logs to the disk, all that changed, once a second while something changes."""

    __slots__ = ("_busy", "_changed", "_due", "_ring")

    def __init__(self, *, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._changed: set[LogFile] = set()
        self._due = 0.0
        self._busy = False

    def changed(self, log: LogFile, now: float) -> None:
        """Remember that this log has bytes that may not be on the disk yet."""
        if not self._changed and self._due <= now:
            self._due = now + EVERY
        self._changed.add(log)

    def next_due(self) -> float | None:
        """Tell when `work` has something to do, on the monotonic clock."""
        return self._due if self._changed and not self._busy else None

    def work(self, now: float) -> None:
        """Hand over what changed, if a second has passed and the last round is over."""
        if self._busy or not self._changed or self._due > now:
            return
        names = []
        for log in self._changed:
            log.write_times()
            names += self._names(log)
        self._changed.clear()
        self._due = now + EVERY
        self._busy = True
        try:
            _thread.start_new_thread(self._sync, (names,))
        except RuntimeError:
            # No thread to be had just now; the kernel writes it out a little later.
            self._busy = False

    @staticmethod
    def _names(log: LogFile) -> list[tuple[int, str]]:
        rotations, log.rotations = log.rotations, 0
        if rotations > log.settings.keep:
            # A flood: all that is still kept was written within this second.
            return []
        # One place more than it was rotated: it may be rotated again before its turn.
        last = min(rotations + 1, log.settings.keep) if rotations else 0
        return [(log.chain.folder, log.chain.plain(place)) for place in range(last + 1)]

    def _sync(self, names: list[tuple[int, str]]) -> None:
        for folder, name in names:
            try:
                log = os.open(name, READ_FLAGS | os.O_NONBLOCK, dir_fd=folder)
            except OSError:
                continue
            try:
                os.fdatasync(log)
            except OSError:
                pass
            finally:
                os.close(log)
        self._busy = False
        self._ring()
