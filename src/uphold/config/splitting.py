"""Text becomes words, as a shell splits it without expanding anything.

The same words as `shlex.split` gives, in time that grows with the length of the text only.
What a variable held stays one word, whatever is in it.
"""

from __future__ import annotations

import re
from typing import Final

from uphold.config.variables import Substituted
from uphold.patterns import pattern

_SIMPLE: Final = pattern(r"[^'\"\\]*+")
_WORD: Final = pattern(r"[^ \t\r\n]+")
_PIECE: Final = pattern(
    r"""([ \t\r\n]++)|([^ \t\r\n'"\\]++)|'([^']*+)'|"((?:[^"\\]++|\\.)*+)"|\\(.)""", re.DOTALL
)
_BLANK, _IN_DOUBLE_QUOTES = 1, 4
_ESCAPED: Final = pattern(r'\\([\\"])')
_MARK: Final = "\ue000{}\ue001"
"""Stands for a variable's value while a command is split, so that it stays one word."""
_MARKED: Final = pattern("\ue000([0-9]+)\ue001")


def split(command: str) -> tuple[str, ...]:
    """Split a command into words; ValueError says what is not closed."""
    if not isinstance(command, Substituted):
        return _words(command)
    marked, values = _marked(command)
    return tuple(_MARKED.sub(lambda match: values[int(match[1])], word) for word in _words(marked))


def _words(text: str) -> tuple[str, ...]:
    if _SIMPLE.fullmatch(text):
        return tuple(_WORD.findall(text))
    words: list[str] = []
    parts: list[str] = []
    end = 0
    for match in _PIECE.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        kind = match.lastindex
        assert kind is not None
        if kind == _BLANK:
            if parts:
                words.append("".join(parts))
                parts = []
        elif kind == _IN_DOUBLE_QUOTES:
            parts.append(_ESCAPED.sub(r"\1", match[kind]))
        else:
            parts.append(match[kind])
    if end != len(text):
        raise ValueError("no escaped character" if text[end] == "\\" else "no closing quotation")
    return (*words, "".join(parts)) if parts else tuple(words)


def _marked(command: Substituted) -> tuple[str, list[str]]:
    values: dict[str, int] = {}
    text: list[str] = []
    for name, piece in command.pieces:
        if name:
            text.append(_MARK.format(values.setdefault(piece, len(values))))
        else:
            text.append(piece.replace("\ue000", ""))
    return "".join(text), list(values)
