"""TOML becomes a document. The standard parser reads; `toml_positions` finds lines if asked."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Final

from uphold.config.documents import Document, Unparsable
from uphold.config.toml_positions import Positions
from uphold.patterns import pattern

if TYPE_CHECKING:
    from uphold.config.places import LineOf, Where

_AT: Final = pattern(r" \(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")
_TWICE: Final = ("Cannot overwrite a value", "Cannot declare", "Cannot mutate immutable")
_MOST_PARTS: Final = 16
# A key of many dotted parts costs the standard parser minutes (it copies all prefixes).
_PART: Final = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_ENDLESS_KEY: Final = pattern(
    r"(?:^[ \t]*+\[{0,2}+|[{,])[ \t]*+" + f"(?:{_PART}){{{_MOST_PARTS}}}", re.MULTILINE
)


def parse_toml(text: str) -> Document:
    """Read TOML."""
    _refuse_endless_keys(text)
    try:
        tables = tomllib.loads(text)
    except RecursionError as cause:
        raise Unparsable(1, "tables or lists are nested too deeply") from cause
    except ValueError as cause:
        raise _explained(text, cause) from cause
    return Document(tables, _lines(text))


def _refuse_endless_keys(text: str) -> None:
    match = _ENDLESS_KEY.search(text)
    if match:
        line = text.count("\n", 0, match.end()) + 1
        raise Unparsable(line, f"a key has more than {_MOST_PARTS} parts")


def _explained(text: str, cause: ValueError) -> Unparsable:
    message = str(cause)
    match = _AT.search(message)
    last_line = text.rstrip().count("\n") + 1
    line = int(match[1]) if match and match[1] else last_line
    sentence = _AT.sub("", message)
    if sentence.startswith(_TWICE):
        return Unparsable(line, f"this key or table is given twice ({sentence})")
    return Unparsable(line, f"not valid TOML: {sentence[:200]}")


def _lines(text: str) -> LineOf:
    scan = Positions(text)

    def line_of(where: Where) -> int:
        for length in range(len(where), 0, -1):
            line = scan.line_of(where[:length])
            if line is not None:
                return line
        return 1

    return line_of
