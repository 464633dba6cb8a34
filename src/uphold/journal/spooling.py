"""How far the copy in the shared database has come, as its writer says in a file of its own.

What is not copied yet must not be forgotten. The journal only reads this file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

FOLDER: Final = "spool"
NAME: Final = "recorder.json"
_LARGEST: Final = 64 * 1024


class Copied(NamedTuple):
    """Up to which event, line of the audit and change of a job everything is copied."""

    events: int = 0
    audit: int = 0
    jobs: int = 0


EVERYTHING: Final = Copied(*(2**63 - 1,) * 3)
"""What counts as copied where there is no shared database."""


def copied_of(journal: Path) -> Copied:
    """Read how far the copy of this journal has come; not at all if nobody says so."""
    told = _told(journal.with_name(FOLDER) / NAME)
    return Copied(*(_number(told.get(key)) for key in Copied._fields))


def _told(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    found = document.get("copied") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
