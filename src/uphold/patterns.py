"""Patterns that are made when they are first used.

Making one takes a quarter of a millisecond and some KiB; of the dozens that a supervisor or a
command brings along, most are never asked for.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Pattern:
    """Stands for a pattern; what was used of it once is reached directly afterwards."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Do what `re.compile` does, later."""
    return _Pattern(text, flags)  # type: ignore[return-value]
