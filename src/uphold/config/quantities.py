"""Quantities as people write them: durations, sizes, signals, umasks.

Each function returns None for text it does not understand; ranges and messages belong to
`kinds`.
"""

from __future__ import annotations

import re
import signal
from typing import Final

from uphold.patterns import pattern

_LONGEST: Final = 64
"""Longer text is never a quantity; refusing it first keeps the patterns cheap."""
_DURATION: Final = pattern(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")
_DURATION_PART: Final = pattern(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = pattern(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]i?)?b", re.IGNORECASE)
_NUMBER: Final = pattern(r"[-+]?[0-9]+(?:\.[0-9]+)?")
_UMASK: Final = pattern(r"(?:0o)?([0-7]{1,4})")
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIGNALS: Final = {member.name.removeprefix("SIG"): member.value for member in signal.Signals}
_CANNOT_END: Final = frozenset({"STOP", "TSTP", "TTIN", "TTOU"})


def duration(text: str) -> float | None:
    """Read `500ms`, `3s`, `5m`, `2h`, `1d` or several in a row (`1m30s`) as seconds."""
    if len(text) > _LONGEST or not _DURATION.fullmatch(text):
        return None
    parts = _DURATION_PART.findall(text)
    return round(sum(float(amount) * _SECONDS[unit] for amount, unit in parts), 6)


def size(text: str) -> int | None:
    """Read `200KB`, `1MB`, `1GiB` as bytes: KB counts in thousands, KiB in 1,024s."""
    match = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    prefix = (match[2] or "").lower()
    step = 1024 if prefix.endswith("i") else 1000
    return round(float(match[1]) * float(step ** _POWERS[prefix.rstrip("i")]))


def number(text: str) -> int | float | None:
    """Read a plain number, as it comes out of an environment variable."""
    if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
        return None
    return float(text) if "." in text else int(text)


def stop_signal(given: str | int) -> str | None:
    """Name a signal that can end a process: `TERM`, `SIGTERM` and 15 are all `TERM`."""
    if isinstance(given, int):
        name = next((name for name, value in _SIGNALS.items() if value == given), None)
    else:
        name = given.upper().removeprefix("SIG")
    return name if name in _SIGNALS and name not in _CANNOT_END else None


def umask(text: str) -> int | None:
    """Read an octal umask such as `022`."""
    match = _UMASK.fullmatch(text)
    value = int(match[1], 8) if match else None
    return value if value is not None and value <= 0o777 else None


def duration_text(seconds: float) -> str:
    """Write a range limit the way people would write it in the file."""
    for unit in ("d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s" if seconds >= 1 or not seconds else f"{seconds * 1000:g}ms"
