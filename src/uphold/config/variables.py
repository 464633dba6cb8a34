"""`${NAME}` and `${NAME:default}` in text. Only the standard library, as `finding` needs it too.

What a variable holds is never looked at again: a value with `${…}` in it stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Braces are kept out of defaults: it keeps the pattern linear and nesting impossible.
_VARIABLE: Final = pattern(
    r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<default>[^{}]*))?\}|\$\{"
)


class Substituted(str):
    """Text in which variables were replaced; remembers which pieces came from where."""

    __slots__ = ("pieces", "written")
    pieces: tuple[tuple[str, str], ...]
    """(variable name or "", text) in order; their texts joined are the whole."""
    written: str
    """What stands in the file; messages show this, never the value."""


def substitute(text: str, lookup: Mapping[str, str], wrong: Callable[[str], None]) -> str | None:
    """Replace every variable; None if one of them has no value, each named to `wrong`."""
    pieces: list[tuple[str, str]] = []
    known: dict[str, str | None] = {}
    right = True
    end = 0
    for match in _VARIABLE.finditer(text):
        pieces.append(("", text[end : match.start()]))
        end = match.end()
        name = match["name"]
        if match[0] == "$$":
            pieces.append(("", "$"))
        elif name is None:
            if match[0] in known:
                continue
            known[match[0]] = None
            wrong(
                "'${' must be followed by a variable name and '}' (a default cannot contain"
                " braces); write '$${' if you mean the characters themselves"
            )
            right = False
        else:
            written = match[0]
            if written not in known:
                known[written] = _value_of(name, match["default"], lookup, wrong)
            value = known[written]
            right = right and value is not None
            pieces.append((name, value or ""))
    pieces.append(("", text[end:]))
    return _joined(text, pieces) if right else None


def _value_of(
    name: str, default: str | None, lookup: Mapping[str, str], wrong: Callable[[str], None]
) -> str | None:
    value = lookup.get(name)
    if value is None:
        if default is None:
            wrong(f"the variable {name} is not set; set it, or write ${{{name}:default}}")
            return None
        return default.replace("$$", "$")
    if not _is_text(value):
        wrong(f"the value of the variable {name} is not valid UTF-8 text")
        return None
    return value


def _joined(written: str, pieces: list[tuple[str, str]]) -> str:
    whole = "".join(text for _, text in pieces)
    if not any(name for name, _ in pieces):
        return whole
    result = Substituted(whole)
    result.pieces = tuple(pieces)
    result.written = written
    return result


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
