"""The supervisor's own log, as the engine sees it."""

from __future__ import annotations

from typing import Protocol


class Log(Protocol):
    """Takes one line at a time and never fails."""

    def write(  # noqa: PLR0913 - the fixed keys of a log record, by name
        self,
        level: str,
        event: str,
        message: str,
        *,
        worker: str | None = None,
        task_id: str | None = None,
        label: str | None = None,
    ) -> None:
        """Write one record."""
        ...


class NoLog:
    """A log for those who want none."""

    def write(self, level: str, event: str, message: str, **context: str | None) -> None:
        """Let it pass."""
