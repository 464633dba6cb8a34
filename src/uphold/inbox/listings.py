"""Looking through an inbox: the oldest flags first, a few at a time (helper's side).

Whoever floods the folder costs time in proportion and no memory: of all names only the oldest
ones are kept, and a look that takes too long goes on where it stopped. Stands alone.
"""

from __future__ import annotations

import heapq
import os
import re
import time
from fnmatch import translate
from itertools import islice

from uphold.inbox.shelves import REASON, oddity, take_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Key = tuple[int, str]

MOST_LOOKED_AT = 20_000
"""Flags whose times are asked for in one look."""
MOST_NAMES = 500_000
"""Names, of whatever kind, that are read in one look."""
SMALL = 4096
"""Bytes of a flag that is read along with the listing, so that nobody need ask for each."""
LONGEST_LOOK = 3.0
"""Seconds, well within what a request may take."""


class Scan:
    """Looks through one folder again and again; what a look did not reach is next."""

    def __init__(self, pattern: str, trusted: frozenset[int] | None = None) -> None:
        self._trusted = trusted
        self._ours = re.compile(translate(pattern)).match
        self._entries: Any = None
        self._cut = False

    def flags(self, folder: int, after: Key | None, most: int) -> dict[str, Any]:
        """List the oldest flags after a certain one: name, time, size, and what is odd."""
        if self._entries is None:
            self._entries = os.scandir(folder)
        found = heapq.nsmallest(most + 1, self._keyed(after))
        if not self._cut:
            self.close()
        chosen = found[:most]
        entries = [
            {
                "name": key[1],
                "modified": key[0] / 1e9,
                "size": size,
                "odd": odd,
                "content": None if odd or size > SMALL else self._take(folder, key[1]),
            }
            for key, size, odd in chosen
        ]
        last = list(chosen[-1][0]) if len(found) > most else None
        return {"entries": entries, "last": last, "more": self._cut or last is not None}

    def _take(self, folder: int, name: str) -> dict[str, Any]:
        return take_if_there(folder, name, self._trusted)

    def close(self) -> None:
        """Begin anew next time."""
        if self._entries is not None:
            self._entries.close()
            self._entries = None

    def _keyed(self, after: Key | None) -> Iterator[tuple[Key, int, str]]:
        until = time.monotonic() + LONGEST_LOOK  # noqa: TID251 - a program of its own
        looked = 0
        for number, entry in enumerate(self._entries):
            if self.is_ours(entry.name):
                looked += 1
                if (key := _key(entry, after)) is not None:
                    yield key
            # The clock is asked now and then only: names alone are quick.
            late = (number % 64 == 0) and time.monotonic() > until  # noqa: TID251
            if late or looked >= MOST_LOOKED_AT or number >= MOST_NAMES:
                self._cut = True
                return
        self._cut = False

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
            if (key := _key(entry, None)) is not None and (wanted is None or wanted(name)):
                found.append((key[0][0] / 1e9, name, key[1]))
    found.sort(reverse=True)
    return [
        {"name": name, "modified": modified, "size": size} for modified, name, size in found[:most]
    ]


def _key(entry: os.DirEntry[str], after: Key | None) -> tuple[Key, int, str] | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # somebody else took it
    key = (status.st_mtime_ns, entry.name)
    if after is not None and key <= after:
        return None
    return key, status.st_size, oddity(status)
