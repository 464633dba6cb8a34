"""Text that is safe to show.

It stands at the bottom because everything that prints needs it: logs, streams, tables.
"""

from __future__ import annotations

import re

from uphold.core.times import utc_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["printable", "utc_text"]

# As text: plain words pass without it, and a command must not wait until it is made.
_UNSAFE: Final = (
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1: terminals obey these
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"  # invisible letters
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb"  # zero width, bidi, line ends
    "\ud800-\udfff"  # halves of characters: no file can hold them
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags: text that only programs see
    "]"
)


def printable(text: str) -> str:
    """Escape whatever a terminal obeys or a reader cannot see, so that one field stays one field.

    Takes time in proportion to the length, and leaves ordinary text of any language alone.
    """
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNSAFE, _escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
