"""Runs that want to be looked after: what is known of their health, and who is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from zlib import crc32

from uphold.core.specs import EARLIEST, Instant
from uphold.core.statuses import State

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from uphold.core.statuses import Finding, SlotStatus
    from uphold.core.vitals import Pulse, Tally
    from uphold.ports.probes import Subject

READY, LIVE, BEAT = "ready", "live", "heartbeat"
QUESTIONS: Final = (READY, LIVE, BEAT)
"""Each is called like the terms by which it is asked."""
_ASKED: Final = frozenset({"http", "tcp", "exec", "log"})
"""Ways in which we ask whether it is ready; in the others the worker speaks by itself."""


@dataclass(slots=True)
class Patient:
    """What is known about the health of one run."""

    subject: Subject
    ready: bool
    """It has been called ready, or nobody asks."""
    says_so: bool = False
    """It has said itself that it is ready, whether or not that is how it is to be found out."""
    began: Instant = EARLIEST
    """When the run began, whoever saw to it then."""
    owed: set[str] = field(default_factory=set)
    """Questions that have no verdict yet, although somebody waits for it."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    asked: int = 0
    pulse: Pulse | None = None
    findings: dict[str, Finding] = field(default_factory=dict)
    told: Finding | None = None
    asking: asyncio.Task[None] | None = None
    open: str = ""
    """Which question that is."""
    waiting: list[str] = field(default_factory=list)
    """Questions that became due while another was open."""

    @property
    def asks_ready(self) -> bool:
        """Tell whether it is asked if it is ready. A line that was written stays written."""
        return self.subject.spec.ready_way in (_ASKED - {"log"} if self.ready else _ASKED)

    def questions(self) -> Iterator[str]:
        """Name what a run that was found alive can be judged by now, without hearing from it."""
        spec = self.subject.spec
        if self.asks_ready:
            yield READY
        if self.ready and spec.live is not None:
            yield LIVE
        if self.ready and spec.heartbeat is not None and spec.heartbeat.file:
            yield BEAT

    def forget(self, what: str) -> None:
        """Give up a question that is put otherwise from now on; beats that came have come."""
        self.tallies.pop(what, None)
        self.findings.pop(what, None)
        if what in self.waiting:
            self.waiting.remove(what)
        if self.asking is not None and self.open == what:
            self.asking.cancel()
            self.asking = None
        if what == READY:
            self.asked = 0
        if self.subject.spec.heartbeat is None:
            self.pulse = None

    def close(self) -> None:
        """Give up all questions."""
        self.waiting.clear()
        if self.asking is not None:
            self.asking.cancel()
            self.asking = None


def is_patient(status: SlotStatus) -> bool:
    """Tell whether a slot has a run that is to be asked or listened to."""
    spec = status.terms
    if spec is None or spec.remote or status.identity is None:
        return False  # who listens to remote workers judges them too
    if status.state not in (State.STARTING, State.RUNNING):
        return False
    if status.finding is not None and status.finding.code:
        return False
    return not (spec.ready is None and spec.live is None and spec.heartbeat is None)


def spread(run: Patient, every: float) -> float:
    """Spread first questions over a period: a thousand workers are not asked at once."""
    subject = run.subject
    return every * (crc32(f"{subject.slot}:{subject.generation}".encode()) / 0xFFFFFFFF)
