"""What `uphold logs` reads and how it looks. Talks to no supervisor and writes nothing.

    view = LogView(home.logs, ["api", "web.2"])       workers or slots; None: every worker
    view.sources                                      what was found, empty: no log yet
    view.lines(Wanted(last=100, since=t, grep=grep_of("error|fail")))      → Iterator[Line]
    view.follow(Wanted(last=10), wait)                → Iterator[Line], until wait() is False
    view.close()                                      or use it as a context manager

    look = Look(width=view.width, timestamps=True, paint=paint)
    render(line, look)                                → str, safe for any terminal

Several logs come merged in the order of arrival. `last` counts per log and after the other
wishes. A line that is not finished is shown by `lines`, and by `follow` once it is finished; one
longer than 8 KiB comes in pieces. Everything is escaped, also into a pipe; colours that a worker
wrote are dropped. Who wants the very bytes reads the files.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import Final, NamedTuple, Self

from uphold.cli.arguments import usage_error
from uphold.cli.times import now
from uphold.core.names import is_companion, slot_index, worker_of
from uphold.core.texts import printable, utc_text
from uphold.pump.reading import (
    Piece,
    RawLine,
    Times,
    current_inode,
    current_times,
    is_being_rotated,
    open_pieces,
)

POLL: Final = 0.15
"""Seconds between two looks while following."""
_LONGEST_PATTERN: Final = 500
_A_LOT: Final = 262_144
"""Bytes; whoever is so far behind needs more than the newest times."""
_OURS: Final = frozenset({"runtime", "supervisor"})
"""Logs in the same folder that no worker wrote."""
_LOG: Final = re.compile(
    r"\.?(?P<slot>[^.]+(?:\.\d+)?)(?P<err>\.err)?\.log(?:\.rest|\.\d+(?:\.gz)?)?"
)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
_LOST: Final = b"[uphold: lines were rotated away before they could be shown]"


class Source(NamedTuple):
    """One log: a slot, and which of its streams."""

    slot: str
    stream: str = "out"
    """`err` only where the streams of a worker are kept apart."""

    @property
    def name(self) -> str:
        """The name of its current file."""
        return f"{self.slot}.log" if self.stream == "out" else f"{self.slot}.err.log"

    @property
    def label(self) -> str:
        """What stands before its lines."""
        return self.slot if self.stream == "out" else f"{self.slot}:err"


class Line(NamedTuple):
    """One line of output, as it was written."""

    source: Source
    at: float | None
    """When it arrived (wall time); None if that is not known."""
    text: bytes


class Wanted(NamedTuple):
    """Which lines are asked for; None: no such wish."""

    last: int | None = None
    since: float | None = None
    until: float | None = None
    grep: Callable[[bytes], bool] | None = None


EVERYTHING: Final = Wanted()


class Look(NamedTuple):
    """How lines are shown."""

    width: int = 0
    """Room for the prefix; 0: none is shown."""
    timestamps: bool = False
    paint: Callable[[str, str], str] | None = None
    """Colours a prefix: (slot, text) to text. None: no colour."""


def grep_of(pattern: str) -> Callable[[bytes], bool]:
    """Make a test from a regular expression; a usage error if it is none."""
    if len(pattern) > _LONGEST_PATTERN:
        raise usage_error(
            f"the pattern has {len(pattern)} characters; {_LONGEST_PATTERN} are allowed.",
            "Look for a shorter part of it.",
        )
    try:
        search = re.compile(pattern).search
    except (re.error, RecursionError, OverflowError) as problem:
        raise usage_error(
            f"'{printable(pattern)}' is no regular expression: {problem}.",
            "Put a backslash before characters that are meant literally.",
        ) from problem
    return lambda text: search(text.decode(errors="replace")) is not None


def render(line: Line, look: Look) -> str:
    """Write a line for people, without anything that a terminal would obey."""
    text = _COLOUR.sub("", line.text.removesuffix(b"\r").decode(errors="backslashreplace"))
    shown = "\t".join(printable(part) for part in text.split("\t"))
    if look.timestamps:
        shown = f"{utc_text(line.at) if line.at is not None else '-':<24} {shown}"
    if not look.width:
        return shown
    prefix = f"{line.source.label:<{look.width}} |"
    return f"{look.paint(line.source.slot, prefix) if look.paint else prefix} {shown}"


def find_sources(folder: int, names: Sequence[str] | None) -> list[Source]:
    """List the logs of these workers and slots, in order; companions only if they are named."""
    found = set()
    for name in os.listdir(folder):
        match = _LOG.fullmatch(name)
        if match is None or match["slot"] in _OURS:
            continue
        slot = match["slot"]
        worker = worker_of(slot)
        if (names is None and not is_companion(slot)) or (
            names is not None and (slot in names or worker in names)
        ):
            found.add(Source(slot, "err" if match["err"] else "out"))

    def order(source: Source) -> tuple[str, int, bool]:
        return worker_of(source.slot), slot_index(source.slot), source.stream == "err"

    return sorted(found, key=order)


class LogView:
    """The logs of some workers, read together."""

    def __init__(self, logs: Path, names: Sequence[str] | None = None) -> None:
        self._logs = logs
        self._names = names
        self._folder = -1
        found = self._find()
        self._tracks = {source: _Track(self._folder, source) for source in found}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sources(self) -> list[Source]:
        """The logs that were found."""
        return list(self._tracks)

    @property
    def width(self) -> int:
        """The room that the longest prefix needs."""
        return max((len(source.label) for source in self._tracks), default=0)

    def lines(self, wanted: Wanted = EVERYTHING) -> Iterator[Line]:
        """Read what is there, merged in the order of arrival."""
        return self._merged(wanted, unfinished=True)

    def follow(
        self, wanted: Wanted = EVERYTHING, wait: Callable[[], bool] | None = None
    ) -> Iterator[Line]:
        """Read what is there and then what comes, across rotations, each line once.

        `wait` is called when there is nothing new; following ends when it returns False.
        """
        wait = wait or _wait_a_little
        yield from self._merged(wanted, unfinished=False)
        looks = 0
        while wait():
            looks += 1
            if looks % 8 == 0:
                # A worker may have written its first line, or been given more slots.
                for source in self._find():
                    if source not in self._tracks:
                        self._tracks[source] = _Track(self._folder, source)
            # Merged, not sorted: the lines of one log stay in order whatever their times say.
            for line in merge(*[track.news() for track in self._tracks.values()], key=_arrival):
                if wanted.grep is None or wanted.grep(line.text):
                    yield line

    def close(self) -> None:
        """Let go of every file."""
        for track in self._tracks.values():
            track.close()
        if self._folder >= 0:
            os.close(self._folder)
        self._folder = -1

    def _find(self) -> list[Source]:
        if self._folder < 0:
            try:
                self._folder = os.open(self._logs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                return []
        return find_sources(self._folder, self._names)

    def _merged(self, wanted: Wanted, *, unfinished: bool) -> Iterator[Line]:
        parts = [track.history(wanted, unfinished=unfinished) for track in self._tracks.values()]
        return merge(*parts, key=_arrival)


class _Track:
    """Where the reader stands in one log."""

    def __init__(self, folder: int, source: Source) -> None:
        self._folder = folder
        self._source = source
        self._piece: Piece | None = None
        """The newest file, as far as is known."""
        self._next = 0
        """Where in it the next line begins."""

    def close(self) -> None:
        if self._piece is not None:
            self._piece.close()
        self._piece = None

    def history(self, wanted: Wanted, *, unfinished: bool) -> Iterator[Line]:
        """Read what is there; afterwards the track stands where it ended."""
        self.close()
        pieces = open_pieces(self._folder, self._source.name)
        begins = _begins(pieces, wanted)
        lines = self._read(pieces, begins, unfinished=unfinished)
        chosen = (line for line in lines if _is_wanted(line, wanted))
        yield from chosen if wanted.last is None else deque(chosen, maxlen=wanted.last)

    def news(self) -> list[Line]:
        """Read what has come since the last look."""
        if self._piece is None:
            return list(self._go_on(open_pieces(self._folder, self._source.name)))
        # First the name, then the bytes: then a file that is not the current one any more was
        # read to its end.
        inode = current_inode(self._folder, self._source.name)
        behind = self._piece.size - self._next
        if inode == self._piece.inode:
            if behind < 0 and not is_being_rotated(self._folder, self._source.name):
                # Somebody emptied it.
                self._next = 0
            newest = behind < _A_LOT
            return self._fresh(current_times(self._folder, self._source.name, newest=newest))
        return [] if inode is None else self._after_rotation(self._piece)

    def _fresh(self, times: Times) -> list[Line]:
        assert self._piece is not None
        lines = []
        for raw in self._piece.lines(self._next):
            if not raw.whole:
                break
            lines.append(self._line(times, raw, now()))
            self._next = raw.end
        return lines

    def _after_rotation(self, mine: Piece) -> list[Line]:
        """Read our file to its end and go on in those that came after it."""
        pieces = open_pieces(self._folder, self._source.name)
        place = next((i for i in reversed(range(len(pieces))) if pieces[i].inode == mine.inode), -1)
        if place == len(pieces) - 1:
            # The pump is between two renames; what comes next has no name yet.
            _close_all(pieces)
            return []
        # What was cut off the end of our file stands at the beginning of the next.
        skip = max(0, self._next - mine.size)
        times = pieces[place].times if place >= 0 else mine.times
        lines = [self._line(times, raw, now()) for raw in mine.lines(self._next)]
        if place < 0:
            newer = [piece for piece in pieces if piece.written >= mine.written]
            _close_all([piece for piece in pieces if piece not in newer])
            lines.append(Line(self._source, mine.written / 1e9, _LOST))
            pieces, skip = newer, 0
        else:
            _close_all(pieces[: place + 1])
            pieces = pieces[place + 1 :]
        mine.close()
        self._piece = None
        return lines + list(self._go_on(pieces, skip))

    def _go_on(self, pieces: list[Piece], skip: int = 0) -> Iterator[Line]:
        # What comes while we look may be there before its time is; then it is now.
        return self._read(pieces, [skip] + [0] * len(pieces), unfinished=False, moment=now())

    def _read(
        self,
        pieces: list[Piece],
        begins: Sequence[int | None],
        *,
        unfinished: bool,
        moment: float | None = None,
    ) -> Iterator[Line]:
        """Read files one after the other; the last one is kept for what comes."""
        for piece, begin in zip(pieces, begins, strict=False):
            newest = piece is pieces[-1]
            if newest:
                self._piece = piece
                self._next = piece.unfinished() if begin is None else begin
            try:
                for raw in piece.lines(begin) if begin is not None else ():
                    if raw.whole or unfinished or not newest:
                        yield self._line(piece.times, raw, moment)
                        if newest and raw.whole:
                            self._next = raw.end
            except (OSError, zlib.error) as problem:
                text = f"[uphold: the rest of {piece.name} cannot be read: {problem}]"
                yield Line(self._source, piece.written / 1e9, text.encode())
            if not newest:
                piece.close()

    def _line(self, times: Times, raw: RawLine, otherwise: float | None) -> Line:
        at = times.at(raw.offset)
        return Line(self._source, otherwise if at is None else at, raw.text)


def _begins(pieces: list[Piece], wanted: Wanted) -> list[int | None]:
    """Decide where to begin in each file; None: it has nothing that is wanted."""
    if wanted.since is not None:
        return [_begin_since(piece, wanted.since) for piece in pieces]
    if wanted.last is None or wanted.grep is not None or wanted.until is not None:
        return [0] * len(pieces)
    begins: list[int | None] = []
    missing = wanted.last
    for piece in reversed(pieces):
        begin: int | None = None
        if missing > 0:
            begin, found = _last_lines(piece, missing)
            missing -= found
        elif not begins:
            begin = piece.unfinished()
        begins.insert(0, begin)
    return begins


def _last_lines(piece: Piece, count: int) -> tuple[int, int]:
    try:
        return piece.last_lines(count)
    except (OSError, zlib.error):
        return 0, 0


def _begin_since(piece: Piece, since: float) -> int | None:
    if not piece.times.known():
        return 0 if piece.written >= since * 1e9 else None
    offset = piece.times.first_since(since)
    return None if offset is None else piece.line_begin(offset)


def _is_wanted(line: Line, wanted: Wanted) -> bool:
    if line.at is not None:
        if wanted.since is not None and line.at < wanted.since:
            return False
        if wanted.until is not None and line.at > wanted.until:
            return False
    return wanted.grep is None or wanted.grep(line.text)


def _arrival(line: Line) -> float:
    return line.at or 0.0


def _close_all(pieces: list[Piece]) -> None:
    for piece in pieces:
        piece.close()


def _wait_a_little() -> bool:
    time.sleep(POLL)
    return True
