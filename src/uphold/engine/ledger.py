"""Recording: every fact gets its number, is journalled, and only then is believed.

When the journal cannot be written, supervision goes on: the batch is kept and written
before the next one, so that history is late but whole (P14).
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.events import Event, Note, Recorded
from uphold.errors import Malformed, StoreUnavailable
from uphold.ports.journals import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from uphold.core.statuses import SlotStatus
    from uphold.ports.clocks import Clock
    from uphold.ports.journals import AuditEntry, JobRow, Journal

MOST_KEPT: Final = 20_000


class Caused(NamedTuple):
    """An event and the order it follows from."""

    event: Event
    cause: str | None


class Ledger:
    """Numbers events and writes batches in order; the one way into the journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        last_seq: int,
        origin: str,
        troubled: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin after `last_seq`; `troubled` is called whenever writing fails."""
        self._journal = journal
        self._clock = clock
        self._seq = last_seq
        self._origin = origin
        self._kept: deque[Batch] = deque()
        self._kept_events = 0
        self._troubled = troubled
        self.trouble: str | None = None

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return self._seq

    def number(self, events: Iterable[Event | Caused]) -> list[Recorded]:
        """Give these their places in history."""
        at = self._clock.now().wall
        recorded = []
        for each in events:
            event, cause = each if isinstance(each, Caused) else (each, None)
            self._seq += 1
            recorded.append(
                Recorded(
                    seq=self._seq,
                    id=f"{self._origin}-{self._seq}",
                    at=at,
                    event=event,
                    cause=cause,
                )
            )
        return recorded

    async def write(self, batch: Batch) -> bool:
        """Write a batch that must not wait for a healthy disk; True when it is on record."""
        try:
            await self._write_kept()
            await self._journal.append(batch)
        except StoreUnavailable as error:
            self._keep(batch)
            self._suffer(error.message)
            return False
        except Malformed as error:
            # Trying again cannot help, and supervision must not wait for it.
            self.trouble = error.message
            return False
        self.trouble = None
        return True

    async def write_or_refuse(self, batch: Batch) -> None:
        """Write a batch without which nothing may happen (orders, audit)."""
        try:
            await self._write_kept(durable=True)
            await self._journal.append(replace(batch, durable=True))
        except StoreUnavailable as error:
            if batch.events:  # their numbers are spent: the hole is named when writing works again
                self._keep(Batch(events=(_lost(list(batch.events)),)))
            self._suffer(error.message)
            raise
        self.trouble = None

    async def retry(self) -> bool:
        """Try again to write what was kept; True when nothing is left."""
        try:
            await self._write_kept()
        except StoreUnavailable as error:
            self.trouble = error.message
            return False
        self.trouble = None
        return True

    def _suffer(self, message: str) -> None:
        self.trouble = message
        self._troubled()

    async def _write_kept(self, *, durable: bool = False) -> None:
        """Write what was kept, in its order; an order that waits for it takes it along."""
        while self._kept:
            batch = self._kept[0]
            await self._journal.append(replace(batch, durable=durable or batch.durable))
            # Somebody else may have written it while we waited: it is keyed, so twice is once.
            if self._kept and self._kept[0] is batch:
                self._kept.popleft()
                self._kept_events -= len(batch.events)

    def _keep(self, batch: Batch) -> None:
        self._kept.append(batch)
        self._kept_events += len(batch.events)
        if self._kept_events > MOST_KEPT:
            merged = merge_without_news(self._kept)
            self._kept = deque([merged])
            self._kept_events = len(merged.events)


def merge_without_news(batches: Iterable[Batch]) -> Batch:
    """Make one batch of many: the latest rows, and one gap that names the news given up."""
    slots: dict[str, SlotStatus] = {}
    forgotten: dict[str, None] = {}
    jobs: dict[str, JobRow] = {}
    meta: dict[str, str] = {}
    audit: list[AuditEntry] = []
    overrides: dict[str, str | None] = {}
    lost: list[Recorded] = []
    for batch in batches:
        audit += batch.audit
        overrides.update(batch.overrides or {})
        for status in batch.slots:
            slots[status.slot] = status
            forgotten.pop(status.slot, None)
        for slot in batch.forgotten:
            slots.pop(slot, None)
            forgotten[slot] = None
        jobs.update((job.id, job) for job in batch.jobs)
        meta.update(batch.meta or {})
        lost += batch.events
    return Batch(
        events=(_lost(lost),) if lost else (),
        slots=tuple(slots.values()),
        forgotten=tuple(forgotten),
        jobs=tuple(jobs.values()),
        audit=tuple(audit),
        overrides=overrides,
        meta=meta,
    )


def _lost(events: list[Recorded]) -> Recorded:
    first, last = events[0], events[-1]
    earlier = first.event.payload.get("from_seq") if isinstance(first.event, Note) else None
    note = Note(
        type="gap",
        entity_type="supervisor",
        entity_id="journal",
        payload={"from_seq": earlier or first.seq, "to_seq": last.seq},
        severity="warning",
    )
    return replace(last, event=note)
