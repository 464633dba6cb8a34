"""Reading the files a configuration is made of, and remembering what they held.

Only regular files of a sensible size are read; nothing here can block on a FIFO or fill the
memory. The marks tell later whether a file on the disk is still the one that was read.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

LARGEST: Final = 4 * 1024 * 1024
_MARK_OF_ORDER: Final = b"\xef\xbb\xbf"


class NotRead(Exception):  # noqa: N818 - says what happened, is never shown as an error itself
    """A file could not be read; the text says why, as the end of a sentence about it."""

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.missing = missing


class Shelf:
    """The files of one reading: their absolute paths, and a mark of what each one held."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        self.marks: dict[str, int | None] = {}

    def read(self, path: str) -> str:
        """Read a file as text, without a byte order mark."""
        self.marks[path] = None
        content = read_bytes(path)
        self.marks[path] = hash(content)
        try:
            return content.removeprefix(_MARK_OF_ORDER).decode()
        except UnicodeDecodeError as cause:
            line = content.count(b"\n", 0, cause.start) + 1
            raise NotRead(f"is not UTF-8 text (line {line})") from cause


def marks_on_disk(paths: Iterable[str]) -> dict[str, int | None]:
    """Mark what these files hold now, to be compared with the marks of a reading."""
    return {path: _mark(path) for path in paths}


def read_bytes(path: str) -> bytes:
    """Read a regular file of a sensible size, or say why not."""
    try:
        # Non-blocking: opening a FIFO that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as cause:
        raise NotRead("does not exist", missing=True) from cause
    except (OSError, ValueError) as cause:
        raise NotRead(f"cannot be read: {_reason(cause)}") from cause
    try:
        return _content(descriptor)
    except OSError as cause:
        raise NotRead(f"cannot be read: {_reason(cause)}") from cause
    finally:
        os.close(descriptor)


def as_recognised(path: str) -> str:
    """Name a file as the user would: short where it lies below the current folder."""
    try:
        here = os.getcwd()  # noqa: PTH109 - the command line uses this and never loads pathlib
    except OSError:
        return path
    below = f"{here}/"
    return path[len(below) :] if here != "/" and path.startswith(below) else path


def _content(descriptor: int) -> bytes:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise NotRead("is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise NotRead("is not a regular file")
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(descriptor, 1024 * 1024):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise NotRead(f"is larger than {LARGEST // 1024 // 1024} MiB")
    return b"".join(pieces)


def _mark(path: str) -> int | None:
    try:
        return hash(read_bytes(path))
    except NotRead:
        return None


def _reason(cause: Exception) -> str:
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
