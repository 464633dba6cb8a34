"""How bytes of workers become notices and heartbeats.

Whoever writes them may be broken or hostile, so everything has a limit, numbers must be
numbers, and text is cut and cleaned here, once. What is wrong is refused with a stable word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from uphold.core.notices import AHEAD, NO_ERROR, Beat, Notice, Refused
from uphold.core.statuses import Fault
from uphold.core.times import parse_utc

LONGEST_DATAGRAM: Final = 4096
LONGEST_FILE: Final = 1 << 16
DEEPEST: Final = 8
_STATUS: Final = 200
_SUMMARY: Final = 255
_ERROR: Final = 500
_WORD: Final = 64
_LARGEST: Final = 1e15
"""More than anybody counts; beyond it a float no longer tells one step from the next."""
_MOST_USEC: Final = 24 * 3600 * 1_000_000
_YEAR_2000: Final = 946_684_800.0
_FLAT: Final = frozenset({dict, list})
_NAMES: Final = ("watcher_id", "worker_id", "hostname", "nonce")


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, reason: str, text: str) -> None:
        super().__init__(reason)
        self.refused = Refused(reason, text)


def decode_notice(data: bytes) -> Notice | Refused:
    """Read one datagram of the notify protocol: lines of KEY=VALUE; unknown keys are ignored.

    A known key with an impossible value refuses the whole datagram: half of what somebody
    meant is not what they meant.
    """
    if len(data) > LONGEST_DATAGRAM:
        return Refused("too-large", f"the message has more than {LONGEST_DATAGRAM} bytes.")
    said: dict[str, Any] = {}
    lines = [line for line in data.split(b"\n") if line.strip(b"\0 \r")]
    try:
        for line in lines:
            key, equals, value = line.partition(b"=")
            if not equals:
                return Refused("not-a-notice", "a line of the message is not KEY=VALUE.")
            read = _KEYS.get(key)
            if read is not None:
                read(said, value)
    except _Wrong as wrong:
        return wrong.refused
    return Notice(**said) if lines else Refused("empty", "the message says nothing.")


def decode_beat(text: bytes, now: float, *, nonce: str | None = None) -> Beat | Refused:
    """Read the content of a heartbeat file; `nonce`, if given, is the worker's own."""
    try:
        told = _parse(text, LONGEST_FILE)
        beat = _beat(told, "")
        at = _moment(told, now)
        _check_others(told)
    except _Wrong as wrong:
        return wrong.refused
    if nonce is not None and told.get("nonce") not in (None, nonce):
        return Refused("foreign", "the heartbeat carries the nonce of another run or worker.")
    return Beat(
        status=beat.status,
        progress=beat.progress,
        error=beat.error,
        summary=beat.summary,
        seq=beat.seq,
        at=at,
    )


def clean(text: str, most: int) -> str:
    """Cut a text to so many characters that a terminal shows and does not obey."""
    if len(text) <= most and text.isprintable():
        return text
    text = " ".join(text[: 4 * most].split())
    return "".join(each for each in text if each.isprintable())[:most]


def _flag(name: str) -> Callable[[dict[str, Any], bytes], None]:
    def read(said: dict[str, Any], value: bytes) -> None:
        if value.strip() == b"1":
            said[name] = True

    return read


def _status(said: dict[str, Any], value: bytes) -> None:
    said["status"] = clean(value.decode("utf-8", "replace"), _STATUS)


def _watchdog(said: dict[str, Any], value: bytes) -> None:
    word = value.strip()
    if word == b"1":
        said["watchdog"] = "alive"
    elif word == b"trigger":
        said["watchdog"] = "trigger"


def _whole(key: str, value: bytes, least: int, most: int) -> int:
    word = value.strip()
    if not word.isdigit() or len(word) > 20:
        raise _Wrong("not-a-number", f"{key} is not a whole number.")
    number = int(word)
    if number < least:
        raise _Wrong("out-of-range", f"{key} is too small.")
    return min(number, most)


def _watchdog_usec(said: dict[str, Any], value: bytes) -> None:
    said["watchdog_usec"] = _whole("WATCHDOG_USEC", value, 0, _MOST_USEC)


def _main_pid(said: dict[str, Any], value: bytes) -> None:
    number = _whole("MAINPID", value, 1, 1 << 32)
    if number >= 1 << 31:
        raise _Wrong("out-of-range", "MAINPID is not the number of a process.")
    said["main_pid"] = number


def _extend(said: dict[str, Any], value: bytes) -> None:
    said["extend"] = _whole("EXTEND_TIMEOUT_USEC", value, 0, _MOST_USEC) / 1e6


def _beat_key(said: dict[str, Any], value: bytes) -> None:
    said["beat"] = _beat(_parse(value, LONGEST_DATAGRAM), "ok")


def _error_key(said: dict[str, Any], value: bytes) -> None:
    if value.strip() in (b"", b"null", b"{}"):
        said["error"] = NO_ERROR
        return
    told = _parse(value, LONGEST_DATAGRAM)
    code = _text(told, "code", _WORD) or "WORKER_ERROR"
    said["error"] = Fault(code=code, message=_text(told, "message", _ERROR) or code)


_KEYS: Final[Mapping[bytes, Callable[[dict[str, Any], bytes], None]]] = {
    b"READY": _flag("ready"),
    b"STOPPING": _flag("stopping"),
    b"RELOADING": _flag("reloading"),
    b"STATUS": _status,
    b"WATCHDOG": _watchdog,
    b"WATCHDOG_USEC": _watchdog_usec,
    b"MAINPID": _main_pid,
    b"EXTEND_TIMEOUT_USEC": _extend,
    b"UPHOLD_BEAT": _beat_key,
    b"UPHOLD_ERROR": _error_key,
}


def _beat(told: dict[str, Any], status: str) -> Beat:
    return Beat(
        status=(_text(told, "status", _WORD) or status).lower(),
        progress=_amount(told, "progress"),
        error=_text(told, "error", _ERROR) or _text(told, "last_error", _ERROR) or None,
        summary=_text(told, "summary", _SUMMARY),
        seq=_count(told, "seq"),
    )


def _check_others(told: dict[str, Any]) -> None:
    """Refuse wrong types also where nothing is taken from: they tell of a broken writer."""
    for name in _NAMES:
        _text(told, name, _WORD)
    _amount(told, "poll_seconds")
    _count(told, "pid")


def _moment(told: dict[str, Any], now: float) -> float | None:
    value = told.get("utc")
    if value is None:
        value = told.get("timestamp")
    if value is None:
        return None
    at = _wall(value)
    if at < _YEAR_2000:
        raise _Wrong("from-1970", "the heartbeat names a time before the year 2000.")
    if at > now + AHEAD:
        raise _Wrong("from-the-future", "the heartbeat names a time more than 5 min from now.")
    return at


def _wall(value: object) -> float:
    if isinstance(value, str) and len(value) <= _WORD:
        try:
            return parse_utc(value)
        except (ValueError, OverflowError):
            pass
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return float(max(-1, min(value, 1 << 53)))
    raise _Wrong("not-a-time", "utc is neither a time as 2026-01-01T00:00:00Z nor seconds.")


def _text(told: dict[str, Any], key: str, most: int) -> str:
    value = told.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Wrong("wrong-type", f"{key} is not a text.")
    return clean(value, most)


def _amount(told: dict[str, Any], key: str) -> float | None:
    value = told.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _Wrong("wrong-type", f"{key} is not a number.")
    if not 0 <= value <= _LARGEST:
        raise _Wrong("out-of-range", f"{key} is not between 0 and {_LARGEST:g}.")
    return float(value)


def _count(told: dict[str, Any], key: str) -> int | None:
    value = told.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Wrong("wrong-type", f"{key} is not a whole number.")
    if not 0 <= value <= _LARGEST:
        raise _Wrong("out-of-range", f"{key} is not between 0 and {_LARGEST:g}.")
    return value


def _parse(text: bytes, most: int) -> dict[str, Any]:
    if len(text) > most:
        raise _Wrong("too-large", f"it has more than {most} bytes.")
    try:
        told = _decoder.decode(text.decode("utf-8-sig"))
    except RecursionError:
        raise _Wrong("too-deep", f"it is nested more than {DEEPEST} deep.") from None
    except ValueError:
        raise _Wrong("not-json", "it is not JSON.") from None
    if not isinstance(told, dict):
        raise _Wrong("not-json", "it is not a JSON object.")
    if not _FLAT.isdisjoint(map(type, told.values())) and _deeper(told, DEEPEST):
        raise _Wrong("too-deep", f"it is nested more than {DEEPEST} deep.")
    return told


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) != len(pairs):
        raise _Wrong("duplicate-key", "a key stands in it twice.")
    return told


def _not_a_number(_: str) -> NoReturn:
    raise _Wrong("not-a-number", "NaN and Infinity are not numbers.")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:
        raise _Wrong("not-a-number", "a number in it is too large to be one.")
    return number


_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_constant=_not_a_number, parse_float=_finite
)
"""Made once: that costs more than a heartbeat."""


def _deeper(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper(each, levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper(each, levels - 1) for each in value)
    return False
