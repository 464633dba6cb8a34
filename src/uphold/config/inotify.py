"""The kernel's news about files that are known by their paths.

`entries_of` says which folder entries decide what a path shows; links may be flipped anywhere
along the way (this is how Kubernetes replaces mounted files).
"""
# Links must be followed step by step, as text.
# ruff: noqa: PTH115, PTH118, PTH120

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from uphold.host import inotify

if TYPE_CHECKING:
    from collections.abc import Iterable

_INTEREST: Final = (
    inotify.ATTRIB
    | inotify.CLOSE_WRITE
    | inotify.MOVED_FROM
    | inotify.MOVED_TO
    | inotify.CREATE
    | inotify.DELETE
    | inotify.DELETE_SELF
    | inotify.MOVE_SELF
)
_MOST_LINKS: Final = 40

Entry = tuple[str, str]
"""A folder, and a name in it."""


class FolderNews:
    """An inotify descriptor that watches folders for entries of these names."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Watch; OSError where that cannot be done or would not tell everything."""
        self._watches = inotify.Watches()
        self._names: dict[int, set[str]] = {}
        try:
            for folder, names in _by_folder(entries).items():
                # Two paths may lead to one folder, and it has one watch.
                self._names.setdefault(self._watch(folder), set()).update(names)
        except OSError:
            self.close()
            raise

    @property
    def descriptor(self) -> int:
        """What becomes readable when there is news."""
        return self._watches.descriptor

    def concerns_us(self) -> bool:
        """Read what has come in, and tell whether any of it is about a watched entry."""
        return any(
            mask & inotify.FOLDER_ITSELF or name in self._names.get(watch, ())
            for watch, mask, name in self._watches.read()
        )

    def close(self) -> None:
        """Let go of the descriptor."""
        self._watches.close()

    def _watch(self, folder: str) -> int:
        if inotify.is_untold(folder):
            raise OSError(f"{folder} is on a network file system")
        return self._watches.add(folder, _INTEREST)


def entries_of(path: str) -> list[Entry]:
    """List every folder entry whose change can change what this absolute path shows."""
    found: list[Entry] = []
    here, links = "/", 0
    ahead = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    while ahead:
        part = ahead.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        entry = os.path.join(here, part)
        target = _link_target(entry)
        if target is None or links >= _MOST_LINKS:
            if not ahead:
                found.append((here, part))
            here = entry
            continue
        links += 1
        found.append((here, part))
        here = "/" if target.startswith("/") else here
        ahead += [part for part in reversed(target.split("/")) if part not in ("", ".")]
    return found


def _by_folder(entries: Iterable[Entry]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder, name in entries:
        found.setdefault(folder, set()).add(name)
    return found


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
