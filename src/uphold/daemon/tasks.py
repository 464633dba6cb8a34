"""What became of tasks that flags carried: asked of the journal, which knows across supervisors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MOST_WAITING = 10_000


class Tasks(Protocol):
    """Remembers tasks; it may read files, so it is asked on a thread."""

    def newest(self, task_id: str) -> Mapping[str, Any] | None:
        """Give the newest job of a task, as a row of `jobs_t`; None if it was never taken."""

    def waiting(self) -> set[str]:
        """Name the tasks that are on record and whose flags have not come yet."""


class JournalTasks:
    """The tasks in the journal of a home."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def newest(self, task_id: str) -> Mapping[str, Any] | None:
        """Give the newest job of a task; None if it was never taken."""
        from uphold.journal.reading import JournalReader  # noqa: PLC0415 - only with an inbox

        with JournalReader(self._journal) as journal:
            found = journal.jobs(task_id=task_id, limit=1, newest_first=True)
        return found[0] if found else None

    def waiting(self) -> set[str]:
        """Name the tasks whose flags have not come yet."""
        from uphold.journal.reading import JournalReader  # noqa: PLC0415 - only with an inbox

        with JournalReader(self._journal) as journal:
            queued = journal.jobs(states=("queued",), limit=_MOST_WAITING)
        return {str(row["task_id"]) for row in queued}
