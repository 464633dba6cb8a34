"""Noticing that a configuration file, its `.env` or an env_file was edited.

Told by the kernel where it can tell, else by a look each second. A burst of writes counts once,
when it is over. What counts is the content: touching a file, or writing it back the same, is no
change; nor is what uphold itself wrote and then loaded.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from uphold.config.files import marks_on_disk
from uphold.config.inotify import FolderNews, entries_of
from uphold.host.threads import aside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from uphold.config.revisions import FileConfig
    from uphold.ports.clocks import Clock

QUIET: Final = 0.3
POLL: Final = 1.0
_LONGEST_BURST: Final = 10
"""After so many restless moments the file is read anyway; the next edit is seen like any other."""

Signature = tuple[tuple[int, int, int] | None, ...]


class ConfigWatch:
    """Tells when a configuration on the disk is no longer the one that was read.

    The listener is expected to call `config.reload()`; whether that succeeds does not matter.
    """

    def __init__(self, config: FileConfig, clock: Clock, *, told_by_kernel: bool = True) -> None:
        self._config = config
        self._clock = clock
        self._told_by_kernel = told_by_kernel
        self._news: FolderNews | None = None
        self._stirred = asyncio.Event()
        self._seen: Signature = ()

    async def changes(self) -> AsyncIterator[None]:
        """Yield once after each change, until cancelled."""
        told: Mapping[str, int | None] = self._config.marks
        try:
            while True:
                # First listen, then look: an edit in between is found by one or the other.
                self._listen()
                # Whoever did not reload is not told the same again.
                if marks_on_disk(self._config.marks) not in (self._config.marks, told):
                    await self._settled()
                    told = marks_on_disk(self._config.marks)
                    if told != self._config.marks:
                        yield
                else:
                    await self._something_stirred()
        finally:
            self._deafen()

    def _listen(self) -> None:
        self._deafen()
        self._seen = self._signature()
        if not self._told_by_kernel:
            return
        entries = [entry for path in self._config.marks for entry in entries_of(path)]
        try:
            self._news = FolderNews(entries)
        except OSError:
            return  # a folder is gone or cannot tell: the look each second finds it
        asyncio.get_running_loop().add_reader(self._news.descriptor, self._hear)

    def _deafen(self) -> None:
        if self._news is not None:
            asyncio.get_running_loop().remove_reader(self._news.descriptor)
            aside(self._news.close)  # the kernel takes 10 ms to let go of a watch
            self._news = None

    def _hear(self) -> None:
        if self._news is not None and self._news.concerns_us():
            self._stirred.set()

    async def _something_stirred(self) -> None:
        if self._news is not None:
            await self._stirred.wait()
        while self._news is None and self._signature() == self._seen:
            await self._clock.sleep(POLL)
        await self._settled()

    async def _settled(self) -> None:
        for _ in range(_LONGEST_BURST):
            self._stirred.clear()
            before = self._signature()
            await self._clock.sleep(QUIET)
            if not self._stirred.is_set() and self._signature() == before:
                return

    def _signature(self) -> Signature:
        return tuple(_look_at(path) for path in self._config.marks)


def _look_at(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - text is enough
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)
