"""Runs that want to be looked after: what is known of their health, and who is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zlib import crc32

from uphold.core.specs import EARLIEST, Instant
from uphold.core.statuses import State

if TYPE_CHECKING:
    import asyncio

    from uphold.core.statuses import Finding, SlotStatus
    from uphold.core.vitals import Pulse, Tally
    from uphold.ports.probes import Subject


@dataclass(slots=True)
class Patient:
    """What is known about the health of one run."""

    subject: Subject
    ready: bool
    """It has been called ready, or nobody asks."""
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
    look_at: float = 0.0
    """When its beats are looked at next; earlier plans for that are void."""
    waiting: list[str] = field(default_factory=list)
    """Questions that became due while another was open."""


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
