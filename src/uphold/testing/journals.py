"""A journal in memory that keeps the same contract as the real one, and fails on request."""

from __future__ import annotations

import asyncio
import copy
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from uphold.core.specs import Instant
from uphold.core.statuses import SlotStatus
from uphold.errors import Malformed, StoreUnavailable
from uphold.journal.rows import Owner, Rows, rows_of
from uphold.journal.standing import GENERATION_SKIP, SEQ_SKIP
from uphold.ports.journals import AuditEntry, Batch, JobRow, Memory
from uphold.wire.codecs import decode, encode
from uphold.wire.envelopes import envelope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OWNER = Owner(name="memory", hostname="memory", pid=0, id="memory")


@dataclass(slots=True)
class _Shelf:
    """What is written so far; of slots the bytes, so that reading back is honest."""

    events: dict[int, dict[str, Any]] = field(default_factory=dict)
    slots: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
    meta: dict[str, str] = field(default_factory=dict)
    audit: dict[str, AuditEntry] = field(default_factory=dict)
    jobs: dict[str, JobRow] = field(default_factory=dict)
    floor: int = 0
    gap: str = ""

    def put(self, batch: Batch, boot_id: str) -> None:
        for recorded in batch.events:
            self.events.setdefault(recorded.seq, json.loads(encode(envelope(recorded))))
            if self.events[recorded.seq]["type"] == "gap":
                self.gap = ""
        for status in batch.slots:
            self.slots[status.slot] = (boot_id, encode(status))
        for slot in batch.forgotten:
            self.slots.pop(slot, None)
        for worker, override in (batch.overrides or {}).items():
            if override is None:
                self.overrides.pop(worker, None)
            else:
                self.overrides[worker] = override
        self.meta |= batch.meta or {}
        for entry in batch.audit:
            self.audit.setdefault(entry.id, entry)
        self.jobs |= {job.id: job for job in batch.jobs}

    def copy(self) -> _Shelf:
        """Give the same writings on a shelf of their own; what is written never changes."""
        return replace(
            self,
            events=dict(self.events),
            slots=dict(self.slots),
            overrides=dict(self.overrides),
            meta=dict(self.meta),
            audit=dict(self.audit),
            jobs=dict(self.jobs),
        )

    @property
    def last_seq(self) -> int:
        return max(self.floor, max(self.events, default=0))

    def skip_ahead(self) -> None:
        """Do what follows a power cut: leave room for what may have been lost."""
        begins = self.gap.partition("-")[0] or str(self.last_seq + 1)
        self.floor = self.last_seq + SEQ_SKIP
        self.gap = f"{begins}-{self.floor}"
        for slot, (boot_id, raw) in self.slots.items():
            status = decode(SlotStatus, raw)
            later = replace(status, generation=status.generation + GENERATION_SKIP)
            self.slots[slot] = (boot_id, encode(later))


class MemoryJournal:
    """Keeps everything in memory; what is durable and what is not is told apart."""

    def __init__(self, *, boot_id: str = "boot-1") -> None:
        self.unavailable = False
        """Set it, and appending fails until it is lifted."""
        self._hanging: asyncio.Event | None = None
        self.appended: list[Batch] = []
        """Every batch that was written, in order."""
        self._boot_id = boot_id
        self._shelf = _Shelf()
        self._safe = _Shelf()
        self._unsafe: list[Batch] = []
        self._closed = False

    @property
    def audit(self) -> list[AuditEntry]:
        """The audit so far."""
        return list(self._shelf.audit.values())

    @property
    def jobs(self) -> dict[str, JobRow]:
        """The current row of every job."""
        return dict(self._shelf.jobs)

    def hang(self) -> None:
        """Let what is written from now on hang until released; what is refused is so at once."""
        self._hanging = asyncio.Event()

    def release(self) -> None:
        """Let it be written."""
        assert self._hanging is not None
        self._hanging.set()
        self._hanging = None

    async def append(self, batch: Batch) -> None:
        """Write a batch, or refuse it as the real one would."""
        await asyncio.sleep(0)  # the real one never answers within the same breath
        if self._closed or self.unavailable:
            raise StoreUnavailable(
                "cannot use the journal: it was made unavailable.", remedy="Make it available."
            )
        if self._hanging is not None:
            await self._hanging.wait()
        rows = rows_of(batch, boot_id=self._boot_id, owner=_OWNER)
        self._refuse_other_events(rows)
        self._shelf.put(batch, self._boot_id)
        self.appended.append(batch)
        self._unsafe.append(batch)
        if batch.durable:
            self._make_safe()

    def recall(self) -> Memory:
        """Read what was written before."""
        shelf = self._shelf
        return Memory(
            slots={slot: self._status(*shelf.slots[slot]) for slot in sorted(shelf.slots)},
            overrides=dict(shelf.overrides),
            meta=shelf.meta | ({"gap": shelf.gap} if shelf.gap else {}),
            last_seq=shelf.last_seq,
        )

    async def events(
        self, *, after: int = 0, limit: int = 100, worker: str | None = None
    ) -> Sequence[Mapping[str, object]]:
        """Read recorded events as envelopes, oldest first."""
        await asyncio.sleep(0)
        found = [
            copy.deepcopy(event)
            for seq, event in sorted(self._shelf.events.items())
            if seq > after
            and (worker is None or (event["entity_type"], event["entity_id"]) == ("worker", worker))
        ]
        return found[:limit]

    async def close(self) -> None:
        """Make everything durable and take no more."""
        await asyncio.sleep(0)
        if not self._closed:
            self._make_safe()
        self._closed = True

    def after_kill(self) -> MemoryJournal:
        """Give the journal as the next supervisor finds it: everything written is there."""
        return self._next(self._shelf, self._boot_id)

    def after_boot(self, boot_id: str) -> MemoryJournal:
        """Give the journal after the machine went down: what was not durable is gone.

        If the journal was closed before, nothing is.
        """
        found = self._next(self._safe, boot_id)
        if not self._closed:
            found._shelf.skip_ahead()  # noqa: SLF001 - one of ours
            found._safe = found._shelf.copy()  # noqa: SLF001
        return found

    def _next(self, shelf: _Shelf, boot_id: str) -> MemoryJournal:
        found = MemoryJournal(boot_id=boot_id)
        found._shelf = shelf.copy()
        found._safe = shelf.copy()
        return found

    def _status(self, boot_id: str, raw: bytes) -> SlotStatus:
        status = decode(SlotStatus, raw)
        if boot_id == self._boot_id:
            return status
        return replace(status, since=Instant(0.0), started_at=Instant(0.0), identity=None)

    def _make_safe(self) -> None:
        for batch in self._unsafe:
            self._safe.put(batch, self._boot_id)
        self._unsafe.clear()

    def _refuse_other_events(self, rows: Rows) -> None:
        for seq, identity, *_ in rows.events:
            known = self._shelf.events.get(seq)  # type: ignore[call-overload]
            if known is not None and known["id"] != identity:
                raise Malformed(
                    f"event {seq} is already in the journal as '{known['id']}'.",
                    code="UPH_JOURNAL_CONFLICT",
                )
