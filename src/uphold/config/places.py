"""Where in a file a value stands, and the collection of what is wrong with it.

A place knows its path through tables and lists. Lines are only looked up for problems, so a
right file never pays for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.config.variables import Substituted
from uphold.core.names import nearest
from uphold.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Where = tuple[str | int, ...]
    LineOf = Callable[[Where], int]

UNREAD: Final = object()
"""Stands for a value that is wrong and has been reported already."""
LATER: Final = "comes with a later version of uphold; this one supervises plain processes"
_SHOWN: Final = 60
_SUGGESTIONS: Final = 20
"""Guessing what was meant is slow, and nobody reads more guesses than this."""
_COMPARISONS: Final = 4_000
"""Names that all guesses together may look at."""
MOST_PROBLEMS: Final = 100
"""Reading ends after so many: nobody reads more, and hostile files are full of them."""
AND_MORE: Final = f"reading ended after {MOST_PROBLEMS} problems; there may be more."


class Enough(Exception):  # noqa: N818 - no error of its own: the problems have been noted
    """So much is wrong that there is no use in reading on."""


class Report:
    """Collects everything wrong with one configuration."""

    __slots__ = ("_comparisons", "_elsewhere", "_guesses", "_here")

    def __init__(self) -> None:
        self._here: dict[tuple[Where, str], None] = {}
        self._elsewhere: dict[Problem, None] = {}
        self._guesses = _SUGGESTIONS
        self._comparisons = _COMPARISONS

    def wrong(self, where: Where, text: str) -> None:
        """Note a problem at a place in the configuration file; Enough if there are too many."""
        self._here[where, text if text.endswith(("?", ".")) else f"{text}."] = None
        self._stop_if_full()

    def wrong_in(self, at: str, text: str) -> None:
        """Note a problem in another file; Enough if there are too many."""
        self._elsewhere[Problem(at, text)] = None
        self._stop_if_full()

    def guess(self, text: str, known: Collection[str]) -> str:
        """Say which known name was probably meant, as the end of a sentence."""
        if self._guesses <= 0 or self._comparisons <= 0:
            return ""
        self._guesses -= 1
        self._comparisons -= len(known)
        meant = nearest(text, known)
        return f"; did you mean '{meant}'?" if meant else ""

    def problems(
        self, file: str, line_of: LineOf, faults: Iterable[tuple[int, str]] = ()
    ) -> list[Problem]:
        """List them, and faults of the writing, in the order of the file; other files last."""
        lines = [*faults, *((line_of(where), text) for where, text in self._here)]
        lines.sort(key=lambda pair: pair[0])
        found = [*(Problem(f"{file}:{line}", text) for line, text in lines), *self._elsewhere]
        return [*found, Problem(file, AND_MORE)] if self._is_full() else found

    def _is_full(self) -> bool:
        return len(self._here) + len(self._elsewhere) >= MOST_PROBLEMS

    def _stop_if_full(self) -> None:
        if self._is_full():
            raise Enough


class Place:
    """One value's place: the path to it, and whom it belongs to in messages."""

    __slots__ = ("depth", "owner", "report", "where")

    def __init__(self, report: Report, where: Where, owner: str, depth: int | None = None) -> None:
        self.report = report
        self.where = where
        self.owner = owner
        self.depth = len(where) if depth is None else depth
        """How much of the path the owner's name already says."""

    def inside(self, key: str | int) -> Place:
        """Tell the place of a part of this value."""
        return Place(self.report, (*self.where, key), self.owner, self.depth)

    def wrong(self, text: str) -> object:
        """Note what is wrong with the value here; the result stands for it from now on."""
        self.report.wrong(self.where, f"{self.owner}: {self._key()}{text}")
        return UNREAD

    def must(self, rule: str, value: object) -> object:
        """Note which rule the value here breaks."""
        return self.wrong(f"must be {rule}; it is {shown(value)}")

    def later(self, what: str = "") -> object:
        """Note that something is right and not yet there."""
        self.report.wrong(self.where, f"{self.owner}: '{self._key().strip()}'{what} {LATER}")
        return UNREAD

    def unknown(self, name: str, known: Collection[str], meant: str | None = None) -> None:
        """Note a key that nobody knows, and the one that was probably meant."""
        hint = f"; did you mean '{meant}'?" if meant else self.report.guess(name, known)
        key = self._key().strip()
        owner = f"{key} of {self.owner}" if key else self.owner
        self.report.wrong((*self.where, name), f"unknown key {shown(name)} in {owner}{hint}")

    def _key(self) -> str:
        text = path_text(self.where[self.depth :])
        return f"{text} " if text else ""


def path_text(where: Where) -> str:
    """Write a path through tables and lists: `stop.command[1]`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{clipped(part)}" for part in where)
    return "".join(parts).lstrip(".")


def shown(value: object) -> str:
    """Show a value in a message: short, on one line, and never what a variable held."""
    if isinstance(value, Substituted):
        return f"{clipped(value.written)!r} (after substitution)"
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _shown_number(value)
    if isinstance(value, str):
        return repr(clipped(value))
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else f"a {type(value).__name__}"


def clipped(text: str) -> str:
    """Cut text that is too long for a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _shown_number(value: float) -> str:
    try:
        return clipped(str(value))
    except ValueError:
        # Python refuses to write out integers of more than some thousand digits.
        return "a very large number"
