"""Times as people write and read them: ages, spans, points in the past."""

from __future__ import annotations

from time import time as now  # noqa: TID251 - the host's clock costs an import of all core types

from uphold.core.times import parse_utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["age", "instant_of", "moment_before", "now", "span"]

_UNITS: Final = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def instant_of(text: object) -> float | None:
    """Read an RFC 3339 time; without a zone it is UTC. None for nothing or nonsense."""
    if not isinstance(text, str):
        return None
    try:
        return parse_utc(text)
    except (ValueError, OverflowError):
        return None


def moment_before(text: str, at: float) -> float | None:
    """Read a point in the past: an RFC 3339 time, or `10m`, or `10m ago`. None for nonsense."""
    text = text.removesuffix(" ago")
    number = text[:-1]
    for unit, length in _UNITS:
        if text.endswith(unit) and number.isascii() and number.isdigit():
            return at - int(number) * length
    return instant_of(text)


def age(text: str | None, at: float) -> str:
    """Say how long ago a time was, in one unit; clocks that disagree give 0s, never less."""
    then = instant_of(text)
    if then is None:
        return "-"
    return span(max(0.0, at - then), parts=1)


def span(seconds: float | None, *, parts: int = 2) -> str:
    """Say a length of time in its largest units: 45s, 12m30s, 4h05m, 3d04h."""
    if seconds is None:
        return "-"
    rest = int(max(0.0, seconds))
    text, taken = "", 0
    for unit, length in _UNITS:
        if taken == parts:
            break
        if taken or rest >= length or unit == "s":
            value, rest = divmod(rest, length)
            text += f"{value:02d}{unit}" if taken else f"{value}{unit}"
            taken += 1
    return text
