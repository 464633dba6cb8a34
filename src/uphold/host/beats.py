"""Heartbeat files: read without being led astray, kept waiting or made to swallow too much.

The content is somebody else's business: `decode` is handed in.
"""

from __future__ import annotations

import asyncio
import os
import stat
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.notices import MISSING, UNANSWERED, Beat, FileBeat, Refused
from uphold.host.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Decode = Callable[[bytes], Beat | Refused]

LONGEST: Final = 1 << 16
PATIENCE: Final = 2.0
"""Seconds that reading one file may take."""
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Written(NamedTuple):
    """What a file held when it was read, and when it was last changed."""

    content: bytes
    modified: float


class BeatFiles:
    """Reads heartbeat files, each once at a time, and waits for none longer than a moment.

    A file system that hangs costs one sleeping thread for each of its files, and nobody else
    anything: the threads that others wait for are not used. On the share not even that: there
    its helper reads, which can be given up.
    """

    def __init__(
        self,
        elsewhere: Callable[[str], Awaitable[Written | Refused] | None] = lambda _path: None,
        *,
        read: Callable[[str], Written | Refused] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        """`elsewhere` has a file read by somebody else, or gives None; `read` blocks."""
        self._elsewhere = elsewhere
        self._blocking = read or read_file
        self._patience = patience
        self._reading: dict[str, tuple[asyncio.Task[Written | Refused], float]] = {}
        """By path: who is at it, and until when that is waited for."""

    async def read(self, path: str, decode: Decode) -> FileBeat | Refused:
        """Read one file; Refused says why it is not believed, `missing` included."""
        loop = asyncio.get_running_loop()
        if path not in self._reading:
            task = loop.create_task(self._read(path), name=f"reading {path}")
            self._reading[path] = task, loop.time() + self._patience
            task.add_done_callback(lambda _: self._reading.pop(path))
        task, until = self._reading[path]
        await asyncio.wait((task,), timeout=max(0.0, until - loop.time()))
        return understand(path, task.result(), decode) if task.done() else unanswered(path)

    async def _read(self, path: str) -> Written | Refused:
        try:
            return await (self._elsewhere(path) or in_thread(partial(self._blocking, path)))
        except RuntimeError as cause:  # no thread to be had
            return unreadable(path, str(cause))


def read_file(path: str) -> Written | Refused:
    """Read one file, if it is one and not too large. Blocks."""
    try:
        descriptor = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return missing(path)
    except OSError as cause:
        return unreadable(path, cause.strerror)  # a link gives ELOOP, a socket ENXIO
    try:
        return _read(path, descriptor)
    except OSError as cause:
        return unreadable(path, cause.strerror)
    finally:
        os.close(descriptor)


def understand(path: str, found: Written | Refused, decode: Decode) -> FileBeat | Refused:
    """Make a beat of what a file held."""
    if isinstance(found, Refused):
        return found
    beat = decode(found.content)
    if isinstance(beat, Refused):
        return Refused(beat.reason, f"the heartbeat file {path} is not believed: {beat.text}")
    return FileBeat(beat=beat, modified=found.modified)


def missing(path: str) -> Refused:
    """Say that there is no such file."""
    return Refused(MISSING, f"there is no heartbeat file {path}.")


def unanswered(path: str) -> Refused:
    """Say that nobody knows what the file holds; in the same words for as long as that lasts."""
    text = f"the heartbeat file {path} cannot be read: its file system does not answer."
    return Refused(UNANSWERED, text)


def unreadable(path: str, why: str | None) -> Refused:
    """Say why a file that is there is not read."""
    return Refused("unreadable", f"the heartbeat file {path} is not read: {why}.")


def _read(path: str, descriptor: int) -> Written | Refused:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return Refused("not-a-file", f"the heartbeat file {path} is not a regular file.")
    if status.st_size > LONGEST:
        return Refused("too-large", f"the heartbeat file {path} has more than {LONGEST} bytes.")
    content = b""
    while len(content) <= LONGEST and (part := os.read(descriptor, LONGEST + 1 - len(content))):
        content += part
    return Written(content, status.st_mtime)
