"""On which line each part of a TOML text stands.

The standard parser does not tell. This scan follows keys, tables and lists of a text that the
parser has found right, and is run when there is a problem to be placed. Should the two ever
disagree, a line is a little off; nothing fails.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uphold.config.places import Where

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*+")
_SPACE: Final = re.compile(r"[ \t]*")
_PART: Final = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'""")
_STRING: Final = re.compile(
    r'''"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}|\'\'\'(?:[^']|'{1,2}(?!'))*+'{3,5}'''
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*'""",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]*")


def find_positions(text: str) -> dict[Where, int]:
    """Tell the line on which each key, table and list item begins."""
    scan = _Scan(text)
    with suppress(RecursionError):
        # What was placed until then is still right, and the rest falls back to what holds it.
        scan.run()
    newlines = [match.start() for match in re.finditer("\n", text)]
    return {where: bisect_right(newlines, at - 1) + 1 for where, at in scan.found.items()}


class _Scan:
    """One walk through the text; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Where, int] = {}
        self.counts: dict[Where, int] = {}
        """How many tables each list of tables has so far."""

    def run(self) -> None:
        table: Where = ()
        while self._skip(_BLANK) < len(self.text):
            before = self.at
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)
            if self.at == before:
                return

    def _header(self) -> Where:
        begin = self.at
        is_list = self.text.startswith("[[", begin)
        self.at += 2 if is_list else 1
        parts = self._key()
        where: Where = ()
        for number, part in enumerate(parts):
            where = (*where, part)
            self.found.setdefault(where, begin)
            if is_list and number == len(parts) - 1:
                self.counts[where] = self.counts.get(where, 0) + 1
            if where in self.counts:
                where = (*where, self.counts[where] - 1)
                self.found.setdefault(where, begin)
        self._skip(_SPACE)
        self.at += 2 if is_list else 1
        return where

    def _pair(self, table: Where) -> None:
        begin = self.at
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
