"""What the recorder says of itself: a file that others read, and the same over the socket.

`HOME/spool/recorder.json` is written by the recorder alone. Nothing here needs the SQL toolkit.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from uphold.core.times import utc_text
from uphold.errors import UpholdError
from uphold.host.files import make_private_folder, write_atomically

REPORT_NAME: Final = "recorder.json"
CAUGHT_UP: Final = "caught_up"
COPYING: Final = "copying"
UNREACHABLE: Final = "unreachable"
REFUSED: Final = "refused"
AWAY: Final = frozenset({UNREACHABLE, REFUSED})
STATES: Final = frozenset({CAUGHT_UP, COPYING, *AWAY})
_LARGEST: Final = 1 << 16
_PASSING: Final = frozenset({"UPH_STORE_UNREACHABLE", "UPH_STORE_TIMEOUT", "UPH_STORE_FULL"})
"""What passes by itself or on the server's side; anything else needs somebody here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the copy stands. Times are RFC 3339."""

    state: str
    since: str
    at: str
    shown_url: str
    pending: int = 0
    """Rows that are to be copied."""
    lag_seconds: float = 0.0
    """Age of the oldest of them."""
    lost: int = 0
    """Events that were gone from the journal before they could be copied."""
    set_aside: int = 0
    """Rows that the database refused for themselves; they lie in `spool/refused.jsonl`."""
    last_error: dict[str, str] | None = None
    copied: dict[str, int] = field(default_factory=lambda: {"events": 0, "audit": 0, "jobs": 0})
    """Up to which event, line of the audit and change of a job everything is copied."""

    def view(self) -> dict[str, Any]:
        """Give it as a document."""
        return asdict(self)

    def turned(self, wall: float, state: str, **changes: Any) -> Report:
        """Give the next report; `since` moves only when the state does."""
        now = utc_text(wall)
        since = self.since if state == self.state else now
        return replace(self, state=state, since=since, at=now, **changes)


def state_for(error: UpholdError) -> str:
    """Say which state an error is."""
    return UNREACHABLE if error.code in _PASSING else REFUSED


def error_view(error: UpholdError) -> dict[str, str]:
    """Give an error as the report has it."""
    return {"code": error.code, "message": error.message, "remedy": error.remedy}


def write_report(spool: Path, report: Report) -> None:
    """Write the file whole; OSError if the disk does not let us."""
    make_private_folder(spool)
    content = json.dumps(report.view(), indent=1, ensure_ascii=False).encode()
    write_atomically(spool / REPORT_NAME, content + b"\n")


def read_report(spool: Path) -> dict[str, Any] | None:
    """Read what the recorder wrote last; None if that is nothing that can be understood."""
    try:
        with (spool / REPORT_NAME).open("rb") as source:
            found = json.loads(source.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("state") in STATES else None


def earlier(spool: Path, shown_url: str, wall: float) -> Report:
    """Go on from the last report, if it was about the same database."""
    now = utc_text(wall)
    fresh = Report(state=COPYING, since=now, at=now, shown_url=shown_url)
    found = read_report(spool)
    if found is None or found.get("shown_url") != shown_url:
        return fresh
    copied = found.get("copied")
    places = copied if isinstance(copied, dict) else {}
    return replace(
        fresh,
        state=str(found["state"]),
        since=str(found.get("since") or now),
        lost=_whole(found.get("lost")),
        set_aside=_whole(found.get("set_aside")),
        copied={key: _whole(places.get(key)) for key in fresh.copied},
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
