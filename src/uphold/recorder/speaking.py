"""The recorder's voice: its report, in the file and to the supervisor, when there is news in it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from uphold.errors import UpholdError
from uphold.recorder.listening import Ear
from uphold.recorder.reports import Report, write_report

BETWEEN_WORDS: Final = 1.0
"""Seconds between two reports of the same state."""


class Clock(Protocol):
    """What the recorder needs of a clock."""

    def mono(self) -> float:
        """Read the monotonic clock."""
        ...

    def wall(self) -> float:
        """Read the wall clock."""
        ...

    def pause(self, seconds: float) -> None:
        """Let time pass."""
        ...


class Voice:
    """Says how the copy stands: at once when that turns, else now and then."""

    def __init__(self, spool: Path, ear: Ear, clock: Clock, report: Report) -> None:
        self.report = report
        self._spool = spool
        self._ear = ear
        self._clock = clock
        self._told: Report | None = None
        self._told_at = float("-inf")
        self._told_to = 0

    def turn(self, state: str, **changes: Any) -> None:
        """Have something else to say."""
        self.report = self.report.turned(self._clock.wall(), state, **changes)

    def due(self) -> float:
        """Tell in how many seconds something is to be said; infinity: nothing is."""
        if self._is_known():
            return float("inf")
        return max(0.0, self._told_at + BETWEEN_WORDS - self._clock.mono())

    def speak(self) -> None:
        """Say what is to be said."""
        told = self._told
        if self._is_known():
            return
        turned = told is None or told.state != self.report.state or self._is_stranger()
        if not turned and self._clock.mono() < self._told_at + BETWEEN_WORDS:
            return
        self._told, self._told_at = self.report, self._clock.mono()
        with suppress(OSError, UpholdError):  # a full disk: the next one is written again
            write_report(self._spool, self.report)
        if self._ear.connected:
            # A supervisor that does not know the question will not know it next time either.
            self._ear.ask("store", self.report.view())
            self._told_to = self._ear.met

    def _is_stranger(self) -> bool:
        """Tell whether a supervisor is there that has not heard us yet."""
        return self._ear.connected and self._told_to != self._ear.met

    def _is_known(self) -> bool:
        """Tell whether all that is to be said was said, but for when."""
        told = self._told
        if told is None or self._is_stranger():
            return False
        return told.turned(0.0, told.state) == self.report.turned(0.0, self.report.state)
