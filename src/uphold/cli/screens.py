"""What is known about the terminal: whether there is one, its width, whether it has colour."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, TextIO

_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}


class Screen:
    """Where text goes. Without a terminal nothing is cut and nothing is coloured."""

    # No NamedTuple here or wherever `status` comes along: each costs 0.4 ms to make.
    __slots__ = ("colour", "height", "terminal", "width")

    def __init__(
        self,
        *,
        terminal: bool = False,
        colour: bool = False,
        width: int | None = None,
        height: int | None = None,
    ) -> None:
        self.terminal = terminal
        self.colour = colour
        self.width = width
        self.height = height

    def paint(self, text: str, colour: str | None) -> str:
        """Colour a text, if that means anything here."""
        if not self.colour or colour is None or not text:
            return text
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"

    def cut(self, line: str) -> str:
        """Shorten a line to the width of the terminal."""
        if self.width is None or len(line) <= self.width:
            return line
        return f"{line[: max(0, self.width - 1)]}…"


def screen_of(stream: TextIO | None = None) -> Screen:
    """Look at a stream (standard output unless told otherwise)."""
    stream = sys.stdout if stream is None else stream
    try:
        size = os.get_terminal_size(stream.fileno()) if stream.isatty() else None
    except (OSError, ValueError):
        size = None
    if size is None:
        return Screen()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    # A terminal that does not know its size says 0; then nothing is cut.
    return Screen(
        terminal=True, colour=not plain, width=size.columns or None, height=size.lines or None
    )
