"""The supervisor's own two logs: `runtime.log` for programs, `supervisor.log` for people.

Records are written at once, one line each; those of one moment go in one write, so that a
thousand workers cost little. A full disk costs records, which are counted, and nothing else.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from json.encoder import encode_basestring_ascii as _quoted
from pathlib import Path
from typing import Final, NamedTuple

from uphold.core.texts import printable
from uphold.core.times import utc_text
from uphold.host.files import write_all

MAX_SIZE: Final = 10_000_000
KEEP: Final = 5
_LONGEST_MESSAGE: Final = 8 * 1024
_LARGEST_WRITE: Final = 100
"""Records in one write: a rotation comes at most this many lines late."""
_WITHOUT_BLOCKING: Final = select.PIPE_BUF
"""A pipe that is ready takes this much without making the writer wait."""


class Level(IntEnum):
    """How much a record matters."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40
    CRITICAL = 50


_NAMES: Final = {level: level.name for level in Level}
"""An enum takes its time to tell a name."""


class Entry(NamedTuple):
    """One record to be."""

    level: Level
    message: str
    event: str | None = None
    worker: str | None = None
    task_id: str | None = None
    label: str | None = None
    at: float | None = None
    """When it happened; None is now."""


class Record(NamedTuple):
    """One record as it is written: the keys of a line in `runtime.log`, in their order."""

    timestamp: str
    level: str
    event: str | None
    message: str
    worker: str | None = None
    task_id: str | None = None
    label: str | None = None


_SHAPE: Final = "{" + ", ".join(f'"{key}": %s' for key in Record._fields) + "}\n"


class RotatingFile:
    """A file of lines that starts anew when it is full; the earlier ones are numbered."""

    def __init__(self, path: Path, *, max_size: int = MAX_SIZE, keep: int = KEEP) -> None:
        self._path = path.absolute()
        self._max_size = max_size
        self._keep = keep
        self._descriptor: int | None = None
        self._file: tuple[int, int] | None = None
        """Which file is open: its device and inode."""
        self._size = 0

    def write(self, lines: bytes) -> None:
        """Add whole lines, all or none; OSError if that cannot be had."""
        descriptor = self._ready(len(lines))
        try:
            write_all(descriptor, lines)
        except OSError:
            # A disk that fills up takes the beginning of them: no half record stays.
            with suppress(OSError):
                os.ftruncate(descriptor, self._size)
            raise
        self._size += len(lines)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _ready(self, length: int) -> int:
        if self._descriptor is not None and not self._is_as_we_left_it():
            # Somebody removed it, moved it away or emptied it: lines must not go where nobody
            # looks for them, nor a half record be cut off where the end no longer is.
            self.close()
        descriptor = self._descriptor if self._descriptor is not None else self._open()
        if self._size and self._size + length > self._max_size:
            self._rotate()
            descriptor = self._descriptor if self._descriptor is not None else self._open()
        return descriptor

    def _is_as_we_left_it(self) -> bool:
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return False
        return (found.st_dev, found.st_ino) == self._file and found.st_size == self._size

    def _open(self) -> int:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        # Whatever umask we were started with.
        with suppress(PermissionError):
            os.fchmod(descriptor, 0o600)
        found = os.fstat(descriptor)
        self._file = (found.st_dev, found.st_ino)
        self._size = found.st_size
        self._descriptor = descriptor
        return descriptor

    def _rotate(self) -> None:
        """Move every file one number up. If that is impossible, the current one just grows."""
        try:
            for number in range(self._keep - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._numbered(number).replace(self._numbered(number + 1))
            self._path.replace(self._numbered(1))
        except OSError:
            return
        self.close()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


class Logbook:
    """Writes both logs of the supervisor. Any thread may write; writing never raises."""

    def __init__(  # noqa: PLR0913 - settings, each with a name
        self,
        folder: str | Path,
        *,
        wall: Callable[[], float],
        scrub: Callable[[Sequence[str]], Sequence[str]] = list,
        level: Level = Level.INFO,
        echo: int | None = None,
        max_size: int = MAX_SIZE,
    ) -> None:
        """Write into `folder`; `scrub` takes secrets out, `echo` is a descriptor like stderr."""
        folder = Path(folder).absolute()
        self._runtime = RotatingFile(folder / "runtime.log", max_size=max_size)
        self._supervisor = RotatingFile(folder / "supervisor.log", max_size=max_size)
        self._wall = wall
        self._scrub = scrub
        self._level = level
        self._echo = echo
        self._lock = threading.Lock()
        self._lost = {self._runtime: 0, self._supervisor: 0}
        self.heard_by: Callable[[bytes], None] | None = None
        """Who else gets each line for people, if anybody does."""

    def write(  # noqa: PLR0913 - the fields of a record
        self,
        level: Level,
        message: str,
        *,
        event: str | None = None,
        worker: str | None = None,
        task_id: str | None = None,
        label: str | None = None,
    ) -> None:
        """Add one record to both logs."""
        self.write_all((Entry(level, message, event, worker, task_id, label),))

    def write_all(self, entries: Iterable[Entry]) -> None:
        """Add records to both logs, in their order."""
        kept = [entry for entry in entries if entry.level >= self._level]
        messages = self._scrub([entry.message for entry in kept])
        records = [self._record(*each) for each in zip(kept, messages, strict=True)]
        with self._lock:
            for start in range(0, len(records), _LARGEST_WRITE):
                some = records[start : start + _LARGEST_WRITE]
                self._add(self._runtime, some, _for_programs)
                for line in self._add(self._supervisor, some, _for_people):
                    self._repeat(line)
                    if self.heard_by is not None:
                        self.heard_by(line)

    def _record(self, entry: Entry, message: str) -> Record:
        return Record(
            timestamp=utc_text(self._wall() if entry.at is None else entry.at),
            level=_NAMES[entry.level],
            event=entry.event,
            message=message[:_LONGEST_MESSAGE],
            worker=entry.worker,
            task_id=entry.task_id,
            label=entry.label,
        )

    def debug(self, message: str, **fields: str | None) -> None:
        """Note something only a developer wants to know."""
        self.write(Level.DEBUG, message, **fields)

    def info(self, message: str, **fields: str | None) -> None:
        """Note that something happened as it should."""
        self.write(Level.INFO, message, **fields)

    def warning(self, message: str, **fields: str | None) -> None:
        """Note something a person should look at some time."""
        self.write(Level.WARNING, message, **fields)

    def error(self, message: str, **fields: str | None) -> None:
        """Note that something failed."""
        self.write(Level.ERROR, message, **fields)

    def critical(self, message: str, **fields: str | None) -> None:
        """Note that the supervisor itself is in trouble."""
        self.write(Level.CRITICAL, message, **fields)

    def close(self) -> None:
        """Let go of the files."""
        with self._lock:
            self._runtime.close()
            self._supervisor.close()

    def _add(
        self, file: RotatingFile, records: list[Record], shape: Callable[[Record], bytes]
    ) -> list[bytes]:
        lines = [shape(record) for record in records]
        try:
            if self._lost[file]:
                file.write(shape(_loss(records[0], self._lost[file])))
                self._lost[file] = 0
            file.write(b"".join(lines))
        except OSError:
            self._lost[file] += len(records)
        return lines

    def _repeat(self, line: bytes) -> None:
        """Show the line on stderr too, unless whoever reads that has stopped reading."""
        if self._echo is None:
            return
        if len(line) > _WITHOUT_BLOCKING:
            line = line[: _WITHOUT_BLOCKING - 4] + b"...\n"
        with suppress(OSError, ValueError):
            poll = select.poll()
            poll.register(self._echo, select.POLLOUT)
            if poll.poll(0):
                os.write(self._echo, line)


def _for_programs(record: Record) -> bytes:
    # By a template: every worker that ends has three, and encoders are made to know any value.
    # Only ASCII: nothing in it can move a cursor or hide, and half characters are no trouble.
    values = tuple("null" if value is None else _quoted(value) for value in record)
    return (_SHAPE % values).replace("\x7f", "\\u007f").encode("ascii")


def _for_people(record: Record) -> bytes:
    task = ""
    if record.task_id or record.label:
        parts = (record.task_id, record.label)
        task = f" [{' - '.join(part for part in parts if part)}]"
    text = f"[{record.timestamp}] [SUPERVISOR] [{record.level}]{task} {record.message}"
    return printable(text).encode() + b"\n"


def _loss(record: Record, lost: int) -> Record:
    what = "1 record was" if lost == 1 else f"{lost} records were"
    return Record(
        timestamp=record.timestamp,
        level=Level.WARNING.name,
        event="log.lost",
        message=f"{what} lost here: the disk did not take them.",
    )
