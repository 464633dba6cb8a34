"""Looking through an inbox: the oldest flags first, a few at a time (helper's side).

Whoever floods the folder costs time in proportion and little memory: names are read so many at a
time, and all of these are given before the next are read, so that none is looked at again and
again while others come first. Stands alone.
"""

from __future__ import annotations

import os
import re
import time
from fnmatch import translate
from itertools import islice

from uphold.inbox.shelves import LARGEST_FLAG, REASON, oddity, take_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from uphold.inbox.trusting import Trusted

MOST_LOOKED_AT = 20_000
"""Flags whose times are asked for in one look."""
MOST_NAMES = 500_000
"""Names, of whatever kind, that are read in one look."""
SMALL = 4096
"""Bytes of a flag that is read along with the listing, so that nobody need ask for each."""
LONGEST_LOOK = 3.0
"""Seconds, well within what a request may take: a share that is slow is used slowly."""
clock = time.monotonic  # noqa: TID251 - a program of its own


class Scan:
    """Looks through one folder again and again; what a look did not reach is next."""

    def __init__(self, pattern: str, trusted: Trusted | None = None) -> None:
        self._trusted = trusted
        self._ours = re.compile(translate(pattern)).match
        self._entries: Any = None
        """What is being read; None: the next look begins anew."""
        self._waiting: list[str] = []
        """Names that were read and not given yet, the oldest last."""

    def flags(self, folder: int, most: int) -> dict[str, Any]:
        """List the next flags, the oldest first: name, time, size, and what is odd."""
        until = clock() + LONGEST_LOOK
        try:
            if not self._waiting:
                self._read_on(folder, until)
            entries: list[dict[str, Any]] = []
            while self._waiting and len(entries) < most:
                if (entry := _entry(folder, self._waiting.pop(), self._trusted)) is not None:
                    entries.append(entry)
                if clock() > until:  # one at least: otherwise nothing would ever be given
                    break
        except OSError:
            self.close()
            raise
        return {"entries": entries, "more": bool(self._waiting) or self._entries is not None}

    def close(self) -> None:
        """Begin anew next time."""
        self._waiting.clear()
        self._stop_reading()

    def _stop_reading(self) -> None:
        if self._entries is not None:
            self._entries.close()
            self._entries = None

    def _read_on(self, folder: int, until: float) -> None:
        if self._entries is None:
            self._entries = os.scandir(folder)
        found: list[tuple[int, str]] = []
        for number, entry in enumerate(self._entries):
            if self.is_ours(entry.name) and (status := _status(entry)) is not None:
                found.append((status.st_mtime_ns, entry.name))
            if clock() > until or len(found) >= MOST_LOOKED_AT or number >= MOST_NAMES:
                break
        else:
            self._stop_reading()
        found.sort(reverse=True)
        self._waiting = [name for _, name in found]

    def is_ours(self, name: str) -> bool:
        """Tell whether a file of this name is a flag."""
        return not name.startswith(".") and self._ours(name) is not None


def names_in(
    folder: int, most: int, wanted: Callable[[str], bool] | None = None
) -> list[dict[str, Any]]:
    """List what lies in a folder, the newest first; hidden files and reasons are left out."""
    found: list[tuple[float, str, int]] = []
    with os.scandir(folder) as entries:
        for entry in islice(entries, MOST_NAMES):
            name = entry.name
            if name.startswith(".") or name.endswith(REASON) or len(found) >= MOST_LOOKED_AT:
                continue
            if (wanted is None or wanted(name)) and (status := _status(entry)) is not None:
                found.append((status.st_mtime_ns / 1e9, name, status.st_size))
    found.sort(reverse=True)
    return [
        {"name": name, "modified": modified, "size": size} for modified, name, size in found[:most]
    ]


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # somebody else took it


def _entry(folder: int, name: str, trusted: Trusted | None) -> dict[str, Any] | None:
    """Describe a flag as it is now, with what it holds if that is little; None if it is gone."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    large = SMALL < status.st_size <= LARGEST_FLAG
    return {
        "name": name,
        "modified": status.st_mtime_ns / 1e9,
        "size": status.st_size,
        "odd": oddity(status),
        "content": None if large else take_if_there(folder, name, trusted),
    }
