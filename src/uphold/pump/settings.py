"""What the supervisor wants done with logs: `run/logs.json`, read leniently.

A file that is missing or wrong leaves the defaults in force, and what is wrong is said: output
must be moved whatever the settings look like.
"""

from __future__ import annotations

import os

from uphold.pump.chains import READ_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS_NAME = "logs.json"
_LEAST_SIZE = 1024
_READ_LIMIT = 16_777_216

_RIGHT: dict[str, Callable[[object], bool]] = {
    "max_size": lambda value: type(value) is int and value > 0,
    "keep": lambda value: type(value) is int and 0 <= value <= 1000,
    "compress": lambda value: type(value) is bool,
    "overflow": lambda value: value in {"block", "drop"},
}


class LogSettings:
    """How much of one log is kept, and what happens while it cannot be written."""

    __slots__ = ("compress", "keep", "max_size", "overflow")

    def __init__(
        self,
        *,
        max_size: int = 10_000_000,
        keep: int = 5,
        compress: bool = True,
        overflow: str = "block",
    ) -> None:
        self.max_size = max(max_size, _LEAST_SIZE)
        self.keep = keep
        self.compress = compress
        self.overflow = overflow
        """`block`: the worker waits. `drop`: its output is counted and thrown away."""


class AllSettings:
    """The settings of every slot, and what was wrong with them."""

    __slots__ = ("_default", "_slots", "problems")

    def __init__(self, told: object) -> None:
        self.problems: list[str] = []
        table = self._table("the file", told)
        default = self._right_parts("default", table.get("default", {}))
        self._default = LogSettings(**default)  # type: ignore[arg-type]  # checked key by key
        self._slots = {
            slot: LogSettings(**(default | self._right_parts(slot, terms)))  # type: ignore[arg-type]
            for slot, terms in self._table("slots", table.get("slots", {})).items()
        }

    def of(self, log: str) -> LogSettings:
        """Tell what holds for a log (`web.2.log`, or `web.2.err.log` of the same slot).

        What is said of a worker (`web`) holds for all its slots.
        """
        slot = log.removesuffix(".log").removesuffix(".err")
        worker = slot.partition(".")[0]
        return self._slots.get(slot) or self._slots.get(worker) or self._default

    def _right_parts(self, where: str, told: object) -> dict[str, object]:
        parts = {}
        for key, value in self._table(where, told).items():
            right = _RIGHT.get(key)
            if right is None:
                continue
            if right(value):
                parts[key] = value
            else:
                self.problems.append(f"'{key}' of {where} cannot be {value!r:.40}")
        return parts

    def _table(self, where: str, told: object) -> dict[str, object]:
        if isinstance(told, dict):
            return told
        self.problems.append(f"{where} is no table")
        return {}


def read_settings(run: int) -> AllSettings:
    """Read the settings in this `run/` folder; problems are in the result, never raised."""
    try:
        return AllSettings(parse_json(read_whole(run, SETTINGS_NAME)))
    except FileNotFoundError:
        return AllSettings({})
    except (OSError, ValueError) as problem:
        standing = AllSettings({})
        standing.problems.append(str(problem) or "it is not JSON")
        return standing


def read_whole(folder: int, name: str) -> str:
    """Read a small text file, following no link."""
    source = os.open(name, READ_FLAGS | os.O_NONBLOCK, dir_fd=folder)
    try:
        parts = []
        while part := os.read(source, 65536):
            parts.append(part)
            if len(parts) * 65536 > _READ_LIMIT:
                raise ValueError("it is far too large")
    finally:
        os.close(source)
    return b"".join(parts).decode()


def parse_json(text: str) -> object:
    """Parse JSON without the `json` package, which would be a quarter of the pump's memory."""
    text = text.strip()
    try:
        from _json import make_scanner  # noqa: PLC0415 - see the package docstring

        value, end = make_scanner(_Plain())(text, 0)  # type: ignore[arg-type]  # any such object
        if end == len(text):
            return value
    except (ImportError, StopIteration, SystemError, ValueError):
        # The bare scanner cannot say what is wrong (it looks for `json` to do so).
        pass
    import json  # noqa: PLC0415 - only for what is wrong, or an interpreter without the scanner

    return json.loads(text)


class _Plain:
    """How the scanner is to build values: as `json.loads` does."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own cache of keys
