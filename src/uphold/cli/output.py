"""The workers' output on a terminal: prefixed lines, a colour for each slot."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.cli.logreading import POLL, LogView, Look, Wanted, render
from uphold.cli.screens import screen_of

if TYPE_CHECKING:
    from collections.abc import Callable

_SHADES: Final = (36, 32, 33, 35, 34, 96, 92, 93, 95, 94)


def look_of(width: int, *, timestamps: bool = False, prefix: bool = True) -> Look:
    """Decide how lines look on standard output."""
    paint = paint_prefix if screen_of().colour else None
    return Look(width=width if prefix else 0, timestamps=timestamps, paint=paint)


def paint_prefix(slot: str, text: str) -> str:
    """Colour a prefix; a slot keeps its colour from one command to the next."""
    shade = _SHADES[zlib.crc32(slot.encode()) % len(_SHADES)]
    return f"\x1b[{shade}m{text}\x1b[0m"


def show_output(home: str, *, since: float, wanted: Callable[[float], bool]) -> None:
    """Print what workers write since a moment, until nobody wants it; the last words too.

    `wanted` is asked when there is nothing new and may wait that many seconds.
    """
    going = True

    def wait() -> bool:
        nonlocal going
        if not going:
            return False
        sys.stdout.flush()
        # One more look after the end, for what was written in between.
        going = wanted(POLL)
        return True

    with LogView(Path(home, "logs")) as view:
        for line in view.follow(Wanted(since=since), wait):
            sys.stdout.write(f"{render(line, look_of(max(view.width, 1)))}\n")
    sys.stdout.flush()
