"""What a row of the shared database says in words. Pure: text from the document of `status`.

A row is read later than it is written, so durations become moments: "up since 12 s" would be
wrong a second later, "up since 03:40:12" stays true.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from uphold.core.names import is_companion
from uphold.core.statuses import State
from uphold.core.texts import printable
from uphold.recorder.schema import SUMMARY_LENGTH
from uphold.wire.codecs import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

_LONGEST_DETAIL: Final = 10_000
"""Characters kept of a single text; a message longer than this says nothing more."""
_DURATION: Final = r"\d+(?:\.\d+)? (?:s|min|h|d)(?: \d+ (?:min|h))?"
_SINCE: Final = re.compile(rf"\bsince {_DURATION}(?![\w.])")
_AGO: Final = re.compile(rf"\bstopped {_DURATION} ago\b")
_SOON: Final = re.compile(rf"\bstarts again in {_DURATION}(?![\w.])")
_BAD: Final = frozenset({State.BACKOFF, State.FAILED})
_SICK: Final = ("degraded", "unhealthy")
_JOINER: Final = "\u200d"
_ORDER: Final = tuple(str(state) for state in (State.RUNNING, *State))


def worker_summary(row: Row) -> str:
    """Say in one line how a worker does, however long it takes; `cut` makes it fit."""
    text = str(row.get("why") or "") or str(row.get("state") or "unknown")
    since, due = _shown(row.get("since")), _shown(row.get("next_attempt_at"))
    if since:
        text = _SINCE.sub(f"since {since}", text, count=1)
        text = _AGO.sub(f"stopped since {since}", text, count=1)
    if due:
        text = _SOON.sub(f"starts again at {due}", text, count=1)
    error = row.get("last_error")
    message = str(error.get("message") or "") if isinstance(error, dict) else ""
    return text if not message or message in text else f"{text}; last error: {message}"


def worker_details(row: Row) -> str:
    """Give what a summary has no room for, as JSON."""
    kept = ("why", "last_error", "exit", "admin", "since", "next_attempt_at")
    more = ("name", "last_health_at", "last_heartbeat_at")
    return _json({key: row.get(key) for key in (*kept, *more)})


def supervisor_summary(supervisor: Row, workers: Sequence[Row]) -> str:
    """Count the workers by state, and name those that are not as they should be."""
    listed = [row for row in workers if not is_companion(str(row["name"]))]
    states = Counter(str(row["state"]) for row in listed)
    sick = Counter(str(row["health"]) for row in listed if row["state"] == State.RUNNING)
    parts = [f"{states[state]} {state}" for state in dict.fromkeys(_ORDER) if states[state]]
    parts += [f"{sick[health]} {health}" for health in _SICK if sick[health]]
    text = ", ".join(parts) or "no workers"
    named = troubled(workers)
    if named:
        text = f"{text}: {', '.join(named)}"
    if supervisor.get("status") not in (None, "active"):
        text = f"{supervisor['status']}; {text}"
    error = supervisor.get("last_error")
    return f"{text}; {error.get('message')}" if isinstance(error, dict) else text


def supervisor_details(supervisor: Row, workers: Sequence[Row]) -> str:
    """Give what stands behind the summary of a supervisor, as JSON."""
    kept = ("name", "home", "started_at", "stopped_at", "uphold", "last_error")
    companions = {
        str(row["slot"]): f"{row['state']}, {row['health']}"
        for row in workers
        if is_companion(str(row["name"]))
    }
    shown = {key: supervisor.get(key) for key in kept}
    return _json({**shown, "troubled": troubled(workers), "companions": companions})


def troubled(workers: Sequence[Row]) -> list[str]:
    """Name the slots that are not as they should be, companions too."""
    return [
        str(row["slot"])
        for row in workers
        if row["state"] in _BAD or (row["state"] == State.RUNNING and row["health"] in _SICK)
    ]


def cut(text: str, length: int = SUMMARY_LENGTH) -> str:
    """Make a line fit a column: whole characters, and a sign that something is missing."""
    line = printable(" ".join(text.split()))
    if len(line) <= length:
        return line
    end = length - 1
    while end > 0 and _belongs_to_what_precedes(line, end):
        end -= 1
    return f"{line[: end or length - 1].rstrip()}…"


def _belongs_to_what_precedes(text: str, place: int) -> bool:
    """Tell whether a cut here would part what people see as one character."""
    return (
        unicodedata.combining(text[place]) != 0
        or unicodedata.category(text[place]) in ("Mn", "Me")
        or text[place] == _JOINER
        or text[place - 1] == _JOINER
        or "\U0001f3fb" <= text[place] <= "\U0001f3ff"  # the tone of a skin
    )


def _shown(moment: object) -> str:
    """Write a moment of the document as people read it; nothing if there is none."""
    text = str(moment or "")
    return f"{text[:10]} {text[11:19]} UTC" if len(text) >= 20 else ""


def _json(content: Mapping[str, object]) -> str:
    return encode(_shortened(dict(content))).decode()


def _shortened(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_DETAIL else f"{value[:_LONGEST_DETAIL]}…"
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    return value
