"""Texts of other programs in the notation of ours: dollars, variables, words of a shell.

While a text is worked on, a variable stands in it as a mark, so that a dollar sign that means
itself and one that asks for a variable cannot be mistaken for each other.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

from uphold.config.splitting import split

_OPEN, _CLOSE = "\ue000", "\ue001"
MARKS: Final = _OPEN + _CLOSE
_MARK: Final = re.compile(f"{_OPEN}([A-Za-z_][A-Za-z0-9_]*)(:[^{_OPEN}{_CLOSE}]*)?{_CLOSE}")
DOLLAR: Final = "\ue002"
"""Stands for a dollar sign that means itself, where others do not."""
_OURS: Final = re.compile("[\ue000-\ue002]")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOLLAR: Final = re.compile(r"\$(?=[${\ue000])")
"""A dollar sign that would not mean itself: before another, a brace or a reference."""
_SHELL: Final = re.compile(r"[^A-Za-z0-9_./:=@%+,\-\s\ue000\ue001]|^\s*[A-Za-z_][A-Za-z0-9_]*=")
"""Whatever a shell might understand, and an assignment before the command."""


def cleaned(text: str) -> str:
    """Take out what we use as marks."""
    return _OURS.sub("", text)


def variable(name: str, default: str | None = None) -> str | None:
    """Mark a variable; None if it has a name or default that cannot be written here."""
    if not _NAME.fullmatch(name) or (default is not None and re.search(r"[{}]", default)):
        return None
    return f"{_OPEN}{name}{'' if default is None else f':{default}'}{_CLOSE}"


def has_variables(text: str) -> bool:
    """Tell whether a text asks for variables."""
    return _MARK.search(text) is not None


def written(text: str) -> str:
    """Write a text so that uphold reads it as meant: marks as `${NAME}`, dollars as dollars."""
    pieces: list[str] = []
    end = 0
    for match in _MARK.finditer(text):
        # With the mark behind it, so that a dollar sign before a reference is seen as such.
        pieces += [_plain(text[end : match.start()] + _OPEN), _reference(match)]
        end = match.end()
    return "".join([*pieces, _plain(text[end:])])


def written_all(value: Any) -> Any:
    """Write every text in a value."""
    if isinstance(value, str):
        return written(value)
    if isinstance(value, dict):
        return {key: written_all(item) for key, item in value.items()}
    if isinstance(value, list):
        return [written_all(item) for item in value]
    return value


def needs_shell(command: str) -> bool:
    """Tell whether a command line means more than its words."""
    return _SHELL.search(command) is not None or "\n" in command.strip()


def words_of(command: str) -> list[str]:
    """Split a line into words; ValueError says what is not closed."""
    return list(split(command))


def shell_line(words: list[str]) -> str:
    """Write words as a line that a shell splits into the same words."""
    return " ".join(shlex.quote(word) for word in words)


def whole(text: str) -> int | None:
    """Read a whole number of plain digits; None for anything else, also for endless ones."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,12}", text) else None


def seconds(amount: float) -> str:
    """Write a duration: `90s`, `500ms`."""
    if amount and amount != int(amount):
        return f"{round(amount * 1000)}ms"
    return f"{int(amount)}s"


def _plain(text: str) -> str:
    return cleaned(_DOLLAR.sub("$$", text))


def _reference(match: re.Match[str]) -> str:
    default = match[2]
    return f"${{{match[1]}{'' if default is None else default.replace('$', '$$')}}}"
