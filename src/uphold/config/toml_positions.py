"""On which line each part of a TOML text stands.

The standard parser does not tell. This scan follows keys, tables and lists of a text that the
parser has found right, only as far as there are problems to be placed. Should the two ever
disagree, a line is a little off; nothing fails.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.patterns import pattern

if TYPE_CHECKING:
    from uphold.config.places import Where

_BLANK: Final = pattern(r"(?:[ \t\r\n]+|#[^\n]*)*+")
_SPACE: Final = pattern(r"[ \t]*")
_PART: Final = pattern(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'""")
_STRING: Final = pattern(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*+'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'""",
    re.DOTALL,
)
_SCALAR: Final = pattern(r"[^,\]}\n#]*")
# Most of what people write; reading it at once makes large files several times cheaper.
_PLAIN_HEADER: Final = pattern(r"\[([A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)*+)\]")
_PLAIN_PAIR: Final = pattern(
    r"""([A-Za-z0-9_-]++)[ \t]*+=[ \t]*+(?:'[^'\n]*+'(?!')|"[^"\\\n]*+"(?!")|[^\s'"\[\]{}#,]++)"""
    r"[ \t\r]*+(?=[\n#])"
)


def find_positions(text: str) -> dict[Where, int]:
    """Tell the line on which each key, table and list item begins."""
    positions = Positions(text)
    while positions.read_on():
        pass
    return {where: positions.line_at(at) for where, at in positions.found.items()}


class Positions:
    """One walk through the text; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Where, int] = {}
        self.counts: dict[Where, int] = {}
        """How many tables each list of tables has so far."""
        self._table: Where = ()

    def line_of(self, where: Where) -> int | None:
        """Tell on which line this begins; None if it is written nowhere."""
        while where not in self.found:
            if not self.read_on():
                return None
        return self.line_at(self.found[where])

    def line_at(self, at: int) -> int:
        """Tell the line of a position in the text."""
        return self.text.count("\n", 0, at) + 1

    def read_on(self) -> bool:
        """Walk on by one header or one key and its value; False at the end."""
        before = self.at
        if self._skip(_BLANK) >= len(self.text):
            return False
        try:
            if self.text.startswith("[", self.at):
                self._table = self._header()
            else:
                self._pair(self._table)
        except RecursionError:
            # What was placed until then is still right, the rest falls back to what holds it.
            self.at = len(self.text)
        return self.at > before

    def _header(self) -> Where:
        begin = self.at
        is_list = self.text.startswith("[[", begin)
        if plain := _PLAIN_HEADER.match(self.text, begin):
            self.at = plain.end()
            return self._placed(plain[1].split("."), begin, is_list=False)
        self.at += 2 if is_list else 1
        parts = self._key()
        self._skip(_SPACE)
        self.at += 2 if is_list else 1
        return self._placed(parts, begin, is_list=is_list)

    def _placed(self, parts: list[str], begin: int, *, is_list: bool) -> Where:
        where: Where = ()
        for number, part in enumerate(parts):
            where = (*where, part)
            self.found.setdefault(where, begin)
            if is_list and number == len(parts) - 1:
                self.counts[where] = self.counts.get(where, 0) + 1
            if where in self.counts:
                where = (*where, self.counts[where] - 1)
                self.found.setdefault(where, begin)
        return where

    def _pair(self, table: Where) -> None:
        begin = self.at
        if plain := _PLAIN_PAIR.match(self.text, begin):
            self.found.setdefault((*table, plain[1]), begin)
            self.at = plain.end()
            return
        where = table
        for part in self._key():
            where = (*where, part)
            self.found.setdefault(where, begin)
        self._skip(_SPACE)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(where)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            match = _PART.match(self.text, self.at)
            if match is None:
                return parts
            parts.append(_plain(match[0]))
            self.at = match.end()
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _value(self, where: Where) -> None:
        match = _STRING.match(self.text, self.at)
        if match:
            self.at = match.end()
        elif self.text.startswith("[", self.at):
            self._list(where)
        elif self.text.startswith("{", self.at):
            self._inline_table(where)
        else:
            self._skip(_SCALAR)

    def _list(self, where: Where) -> None:
        self.at += 1
        number = 0
        while self._skip(_BLANK) < len(self.text) and self.text[self.at] != "]":
            item = (*where, number)
            self.found[item] = self.at
            self._value(item)
            self._skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith("]", self.at):
                return
            number += 1
        self.at += 1

    def _inline_table(self, where: Where) -> None:
        self.at += 1
        while self._skip(_BLANK) < len(self.text) and self.text[self.at] != "}":
            self._pair(where)
            self._skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
            elif not self.text.startswith("}", self.at):
                return
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return self.at


def _plain(part: str) -> str:
    if not part.startswith(('"', "'")):
        return part
    with suppress(tomllib.TOMLDecodeError):
        return str(tomllib.loads(f"key = {part}")["key"])
    return part
