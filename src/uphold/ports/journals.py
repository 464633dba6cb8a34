"""The journal: the supervisor's durable memory, as the engine sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from uphold.core.events import Recorded
from uphold.core.statuses import SlotStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the audit: who did what to whom, and why. The journal chains them by hash."""

    id: str
    actor: str
    action: str
    target_type: str
    target_id: str
    label: str | None
    at: float
    details: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """Where an order stands: queued, running, succeeded, failed, blocked, canceled."""

    id: str
    task_id: str | None
    type: str
    target: str
    label: str | None
    state: str
    created_at: float
    updated_at: float
    started_at: float | None = None
    finished_at: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What is written together, in one transaction, or not at all."""

    events: Sequence[Recorded] = ()
    slots: Sequence[SlotStatus] = ()
    """Current rows, replacing earlier ones."""
    forgotten: Sequence[str] = ()
    """Slots whose rows go."""
    overrides: Mapping[str, str | None] | None = None
    """Operator overrides by worker, as JSON text; None removes the row."""
    meta: Mapping[str, str] | None = None
    """Single facts of the supervisor: declaration version, status, last order."""
    audit: Sequence[AuditEntry] = ()
    jobs: Sequence[JobRow] = ()
    durable: bool = False
    """True: on the disk itself before `append` returns (orders and audit)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything a supervisor needs to go on where the last one stopped."""

    slots: Mapping[str, SlotStatus]
    overrides: Mapping[str, str]
    meta: Mapping[str, str]
    last_seq: int


class Journal(Protocol):
    """Keeps what must not be forgotten."""

    async def append(self, batch: Batch) -> None:
        """Write a batch; StoreUnavailable if that is impossible just now (nothing was written)."""
        ...

    def recall(self) -> Memory:
        """Read what the last supervisor knew. Called once, before anything runs."""
        ...

    async def events(
        self, *, after: int = 0, limit: int = 100, worker: str | None = None
    ) -> Sequence[Mapping[str, object]]:
        """Read recorded events as envelopes, oldest first, from after this number."""
        ...

    async def close(self) -> None:
        """Write what is queued and let go of the file."""
        ...
