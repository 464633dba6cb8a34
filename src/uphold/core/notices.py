"""What workers say of themselves: by the notify protocol, by heartbeats, by a file.

Values only. How they are read from bytes is the business of `uphold.wire.notices`, what they
mean for a worker's health that of `uphold.core.health`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uphold.core.statuses import Fault

GOOD_STATUSES: Final = frozenset({"healthy", "ok", "running", "idle", "busy"})
"""What a heartbeat may say of a worker that does well (ruling 19); all else is trouble."""

NO_ERROR: Final = Fault(code="", message="")
"""Said by a worker whose last error is over."""

AHEAD: Final = 300.0
"""Clocks of two machines may differ by so many seconds."""

MISSING: Final = "missing"
"""Why nothing is known by a heartbeat file that is not there."""

UNANSWERED: Final = "unanswered"
"""Why nothing is known by one on a file system that is silent: that says nothing of its worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """One heartbeat of a worker."""

    status: str = "ok"
    progress: float | None = None
    """How far its work has come; separate from life: a loop may beat and stand still."""
    error: str | None = None
    summary: str = ""
    seq: int | None = None
    at: float | None = None
    """Wall time that the beat itself names; None: it names none."""

    @property
    def good(self) -> bool:
        """Tell whether it speaks of a worker that does well."""
        return self.error is None and self.status.lower() in GOOD_STATUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBeat:
    """What a heartbeat file says, and when it was written by the word of the file system."""

    beat: Beat
    modified: float

    @property
    def written(self) -> float:
        """When it was written: the older of what the file system and the beat itself say (C-119).

        That may lie ahead of a clock that was set back since.
        """
        return self.modified if self.beat.at is None else min(self.modified, self.beat.at)

    def age(self, now: float) -> float:
        """Give its age in seconds."""
        return max(0.0, now - self.written)

    def trouble(self, now: float, stale_after: float) -> str:
        """Say what keeps it from speaking of a healthy worker; empty if nothing does."""
        if self.modified > now + AHEAD:
            return "its heartbeat file was written in the future"
        age = self.age(now)
        if age >= stale_after:
            return f"its last heartbeat is {age:.0f} s old"
        if self.beat.error is not None:
            return f"its heartbeat tells of an error: {self.beat.error}"
        if not self.beat.good:
            return f"its heartbeat says '{self.beat.status or 'nothing'}'"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What one datagram of the notify protocol says; what it does not mention is None or False."""

    ready: bool = False
    stopping: bool = False
    reloading: bool = False
    status: str | None = None
    watchdog: str | None = None
    """`alive`, or `trigger`: it asks to be treated as if it had stopped answering."""
    watchdog_usec: int | None = None
    """It wants another watchdog interval from now on; 0 switches the watchdog off."""
    main_pid: int | None = None
    extend: float | None = None
    """It needs so many seconds more for what it is doing (starting, reloading or stopping)."""
    beat: Beat | None = None
    error: Fault | None = None
    """Its own structured error; `NO_ERROR` if it says that this is over."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Something a worker said, or somebody in its name, that is not believed."""

    reason: str
    """A short stable word; what is refused is counted by it."""
    text: str = ""
    """One sentence: what exactly is wrong."""
