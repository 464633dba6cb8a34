"""`Health`: what a worker says of itself when it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from uphold.sdk.words import GOOD, checked_progress, checked_status


@dataclass(frozen=True, slots=True)
class Health:
    """A snapshot of how a worker does. Nothing given means: it does well."""

    status: str = "healthy"
    """healthy ok running idle busy; or, if not well: degraded unhealthy error failed."""
    summary: str | None = None
    """What it is doing, for people; 255 characters are kept."""
    progress: float | None = None
    """A number that rises while work gets done; the supervisor notices when it stands still."""
    error: str | None = None
    """What is wrong; 500 characters are kept. None clears what was said before."""

    def __post_init__(self) -> None:
        checked_status(self.status)
        object.__setattr__(self, "progress", checked_progress(self.progress))

    @classmethod
    def ok(cls, summary: str | None = None, *, progress: float | None = None) -> Health:
        """Say that all is well."""
        return cls("healthy", summary, progress)

    @classmethod
    def degraded(
        cls, error: str, *, summary: str | None = None, progress: float | None = None
    ) -> Health:
        """Say that it works, and not as it should."""
        return cls("degraded", summary, progress, error)

    @classmethod
    def failing(
        cls, error: str, *, summary: str | None = None, progress: float | None = None
    ) -> Health:
        """Say that it cannot do its work just now."""
        return cls("error", summary, progress, error)

    @property
    def is_good(self) -> bool:
        """Tell whether this is the health of a worker that does well."""
        return self.error is None and self.status in GOOD
