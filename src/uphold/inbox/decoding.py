"""JSON from strangers: strict where Python's reader is generous.

What is merely not finished yet is told apart from what nobody may write. Limits come first, so
that the work is in proportion to at most 64 KiB whatever stands in them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

LARGEST: Final = 64 * 1024
"""Bytes of a flag."""
DEEPEST: Final = 8
MOST_KEYS: Final = 64
LONGEST_NUMBER: Final = 18
"""Digits of a whole number; every program can hold that many."""
_MANY_DIGITS: Final = re.compile(f"[0-9]{{{LONGEST_NUMBER + 1}}}")


class Unfinished(ValueError):  # noqa: N818 - a state of affairs
    """These bytes are no JSON, but may be the beginning of some."""


class Unacceptable(ValueError):  # noqa: N818
    """This is JSON of a kind that is refused; the text says which."""


def decode_strictly(raw: bytes) -> dict[str, Any]:
    """Read one JSON object; Unfinished or Unacceptable with a reason if it cannot be had."""
    if len(raw) > LARGEST:
        raise Unacceptable(f"it has more than {LARGEST} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise Unfinished("it is not UTF-8") from cause
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_float,
            # Asked about each number only where one may be too long: there can be thousands.
            parse_int=_int if _MANY_DIGITS.search(text) else None,
        )
    except json.JSONDecodeError as cause:
        raise Unfinished(f"it is not valid JSON (line {cause.lineno})") from cause
    except RecursionError as cause:
        raise Unacceptable(f"it is nested deeper than {DEEPEST} levels") from cause
    _look_through(value)
    if not isinstance(value, dict):
        raise Unacceptable("it is not a JSON object")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise Unacceptable(f"an object in it has more than {MOST_KEYS} keys")
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Unacceptable("a key stands in it twice")
    return made


def _no_constant(name: str) -> NoReturn:
    raise Unacceptable(f"{name} is no number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unacceptable("a number in it is too large")
    return value


def _int(text: str) -> int:
    if len(text) > LONGEST_NUMBER and len(text.lstrip("-")) > LONGEST_NUMBER:
        raise Unacceptable("a number in it is too large")
    return int(text)


def _look_through(value: object) -> None:
    """Refuse what is nested too deeply, and halves of characters, wherever they stand."""
    level: list[object] = [value]
    depth = 0
    while level:
        inner: list[object] = []
        for each in level:
            if isinstance(each, str):
                _refuse_halves(each)
            elif isinstance(each, dict):
                for key in each:
                    _refuse_halves(key)
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        containers = any(isinstance(each, dict | list) for each in level)
        depth += containers
        if depth > DEEPEST:
            raise Unacceptable(f"it is nested deeper than {DEEPEST} levels")
        level = inner


def _refuse_halves(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as cause:
        raise Unacceptable("it holds half a character") from cause
