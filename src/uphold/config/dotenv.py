"""Files of `KEY=value` lines: `.env` beside the configuration, and every `env_file`.

Values are taken as they are: nothing is substituted in them. Messages never show a value.
"""

from __future__ import annotations

import re
from typing import Final

from uphold.patterns import pattern

_LINE: Final = pattern(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*)")
_SINGLE: Final = pattern(r"'([^']*)'[ \t]*(?:#.*)?")
_DOUBLE: Final = pattern(r'"((?:[^"\\]|\\.)*+)"[ \t]*(?:#.*)?')
_ESCAPE: Final = pattern(r"\\(.)")
_COMMENT: Final = pattern(r"(?:^|[ \t])#.*$")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse_env(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """Read the lines; the second result is (line, text) of everything wrong."""
    values: dict[str, str] = {}
    faults: list[tuple[int, str]] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            faults.append((number, "this line is not KEY=value."))
            continue
        value = _value(match[2])
        if value is None:
            faults.append((number, f"the value of {match[1]} has a quote that is not closed."))
        elif "\0" in value:
            faults.append((number, f"the value of {match[1]} contains a NUL character."))
        else:
            values[match[1]] = value
    return values, faults


def _value(text: str) -> str | None:
    if text.startswith("'"):
        match = _SINGLE.fullmatch(text)
        return match[1] if match else None
    if text.startswith('"'):
        match = _DOUBLE.fullmatch(text)
        return _ESCAPE.sub(_unescaped, match[1]) if match else None
    return _COMMENT.sub("", text).rstrip()


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED.get(match[1], match[1])
