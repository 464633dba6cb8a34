"""The life of a supervisor in words: what its log says of it, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from uphold.core.statuses import Fault, SupervisorStatus
from uphold.core.supervisors import REASON_KEY
from uphold.engine.telling import supervisor_note
from uphold.errors import UpholdError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from uphold.core.events import Event
    from uphold.engine.board import Board
    from uphold.ports.logs import Log


class Life:
    """Whom the log speaks of, and the mistake it ends by, if it ends by one."""

    def __init__(self, log: Log, supervisor_id: str) -> None:
        self._log = log
        self._id = supervisor_id
        self._mistake: Fault | None = None

    def say(self, level: str, event: str, message: str) -> None:
        """Write a line about the supervisor itself."""
        self._log.write(level, event, f"supervisor {self._id} {message}")

    def blame(self, error: Exception) -> Fault:
        """Remember the mistake it ends by; the first one counts."""
        if self._mistake is None:
            self._mistake = (
                Fault(code=error.code, message=error.message)
                if isinstance(error, UpholdError)
                else Fault(code="UPH_SUPERVISOR_BROKEN", message=repr(error))
            )
        return self._mistake

    async def say_last_word(self, board: Board, tell: Callable[[Event], Awaitable[None]]) -> None:
        """Put on record that it has ended: by order, or failed and why (E-33)."""
        if self._mistake is None:
            board.change(status=SupervisorStatus.TERMINATED)
            await tell(supervisor_note("supervisor.stopped"))
            return
        board.change(status=SupervisorStatus.FAILED, last_error=self._mistake)
        reason = {"code": self._mistake.code, REASON_KEY: self._mistake.message}
        note = supervisor_note("supervisor.failed")
        await tell(replace(note, payload=reason, severity="error"))
