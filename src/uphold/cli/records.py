"""What a supervisor left in its home for others to read: its journal and `runtime.json`.

Everything here was written by somebody else, so every shape is checked before it is used.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from uphold.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.journal.reading import JournalReader

_LARGEST: Final = 64 << 20
_NO_NUMBER: Final = 1 << 64
_NUMBERS: Final = frozenset({"pid", "start_ticks", "inode", "generation", "restarts", "failures"})
_SLOT: Final = re.compile(r"[^.]+(?:\.[0-9]{1,6})?")
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Recorded(NamedTuple):
    """The last process recorded for a slot, and what else was said about it."""

    slot: str
    pid: int | None
    start_ticks: int | None
    boot_id: str | None
    inode: int
    said: Mapping[str, Any]


def runtime_of(home: str) -> dict[str, Any]:
    """Read the mirror of the last known state; empty if there is none that can be read."""
    return read_record(f"{home}/runtime.json")


def stop_note_of(home: str) -> dict[str, Any]:
    """Read what the command line noted about the last stop that took force or failed."""
    return read_record(f"{home}/last_stop.json")


def read_record(path: str) -> dict[str, Any]:
    """Read a file with one JSON object; empty if there is none that can be read."""
    try:
        with os.fdopen(os.open(path, _FLAGS), "rb") as file:
            read = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def journal_of(home: str) -> JournalReader:
    """Open the journal of a home for reading; nothing is touched before the first question."""
    from pathlib import Path

    from uphold.journal.reading import JournalReader

    return JournalReader(Path(home, "journal.db"))


def recorded_slots(home: str, runtime: Mapping[str, Any]) -> list[Recorded]:
    """Gather what was recorded about each slot: the journal knows best, the mirror is second."""
    try:
        with journal_of(home) as journal:
            rows, overrides = journal.slots(), journal.overrides()
    except StoreUnavailable:
        told = runtime.get("workers")
        mirrored = told.items() if isinstance(told, dict) else ()
        return [
            _recorded(slot, said)
            for slot, said in mirrored
            if isinstance(said, dict) and _SLOT.fullmatch(slot)
        ]
    return [
        _recorded(str(row["slot"]), {**row, **_ordered(overrides.get(str(row["name"])))})
        for row in rows
    ]


def _ordered(override: object) -> dict[str, str]:
    """Tell what people ordered on top of the file: what it may do, and why it stays down."""
    admin = _admin(override)
    if not isinstance(override, dict):
        return {"admin": admin}
    if admin != "enabled":
        return {"admin": admin, "stays_down": f"{admin}{_by(override, _KEPT_BY[admin])}"}
    if override.get("up") is False:
        return {"admin": admin, "stays_down": f"stopped{_by(override, 'up')}"}
    return {"admin": admin}


_KEPT_BY: Final = {"quarantined": "quarantined", "paused": "held", "disabled": "enabled"}
"""Which order keeps it down, of several that may."""


def _by(override: Mapping[str, Any], key: str) -> str:
    """Name who ordered that, as `core.overrides` does; nobody where it is not clear."""
    authors = override.get("authors")
    kept = authors if isinstance(authors, dict) else {}
    orders = {each.get("order") for each in kept.values() if isinstance(each, dict)}
    last = None if override.get("order") in orders else override
    author = kept.get(key) or last
    by = author.get("by") if isinstance(author, dict) else None
    return f" by {by}" if isinstance(by, str) and by else ""


def _recorded(slot: str, said: Mapping[str, Any]) -> Recorded:
    said = {key: value for key, value in said.items() if _is_right(key, value)}
    return Recorded(
        slot=slot,
        pid=said.get("pid"),
        start_ticks=said.get("start_ticks"),
        boot_id=said.get("boot_id"),
        inode=said.get("inode") or 0,
        said=said,
    )


def _is_right(key: str, value: object) -> bool:
    """Tell whether a value is of the kind that belongs there; others count as not recorded."""
    if key in _NUMBERS:
        return _whole(value) is not None
    if key == "exit":
        return isinstance(value, dict)
    return isinstance(value, str) or (key == "last_error" and isinstance(value, dict))


def _admin(override: object) -> str:
    """Tell what people allow a worker, from what they ordered on top of the file."""
    if not isinstance(override, dict):
        return "enabled"
    if override.get("quarantined"):
        return "quarantined"
    if override.get("held"):
        return "paused"
    return "disabled" if override.get("enabled") is False else "enabled"


def _whole(value: object) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NO_NUMBER
    return value if right else None  # type: ignore[return-value]
