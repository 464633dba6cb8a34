"""What went wrong in a worker's code, in one line that names the place to look at."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from types import TracebackType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120


def describe(cause: BaseException) -> str:
    """Say what was raised, and where in the worker's own code."""
    if isinstance(cause, BaseExceptionGroup) and cause.exceptions:
        return describe(cause.exceptions[0])
    if isinstance(cause, SyntaxError) and cause.filename:
        place: str | None = f"{shown(cause.filename)}:{cause.lineno}"
        said = cause.msg
    else:
        place = place_of(cause)
        said = str(cause)
    name = type(cause).__name__
    text = f"{name}: {said}" if said else name
    return f"{text} ({place})" if place else text


def place_of(cause: BaseException) -> str | None:
    """Give file and line of the innermost frame that belongs to the worker; None without one."""
    places = list(_places(cause.__traceback__))
    foreign = tuple(
        os.path.join(path, "")  # noqa: PTH118 - text is enough
        for path in (*_libraries(), *(each for each in sys.path if each.endswith("-packages")))
    )
    own = [place for place in places if not place.startswith(foreign)]
    chosen = own or places
    return shown(chosen[-1]) if chosen else None


def shown(path: str) -> str:
    """Write a path as seen from the current folder, if it lies below."""
    here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118
    return path.removeprefix(here)


def _places(traceback: TracebackType | None) -> Iterator[str]:
    """Walk the frames from the outermost, without those of uphold and of the import system."""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(("<frozen ", _OURS)):
            yield f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next


def _libraries() -> set[str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return {path for path in map(sysconfig.get_path, names) if path}
