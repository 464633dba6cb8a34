"""Wall time as text. Waits never use it; it is only printed, always UTC and aware."""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime, timezone
else:
    try:
        # Python 3.11 defines all of it in Python first, only to put this over it: 1.5 ms.
        from _datetime import datetime, timezone
    except ImportError:
        from datetime import datetime, timezone

UTC = timezone.utc  # noqa: UP017 - the quick module has no other name for it


@lru_cache(maxsize=8)  # the events of one turn share their moment
def utc_text(wall: float) -> str:
    """Write a moment as RFC 3339 in UTC with milliseconds: `2026-01-01T00:00:00.000Z`."""
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def utc_or_none(wall: float | None) -> str | None:
    """Write a moment that may be unknown; 0 means it never happened."""
    return utc_text(wall) if wall else None


def parse_utc(text: str) -> float:
    """Read a moment: RFC 3339, or the way databases print it; without a zone it is UTC."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
