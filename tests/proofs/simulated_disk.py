"""A disk with a journal on it: what is written survives a kill, what is synced a power cut.

Appends are answered in order, as by the one thread of the real journal; the disk may be full, or
slow. Nothing is encoded here, for speed: the real codec is asked once for each recovery.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace

from uphold.core.specs import Instant
from uphold.core.statuses import SlotStatus
from uphold.errors import Malformed, StoreUnavailable
from uphold.journal.standing import GENERATION_SKIP, SEQ_SKIP
from uphold.ports.journals import Memory
from uphold.wire.codecs import decode, encode


class Shelf:
    """Rows as they stand."""

    def __init__(self):
        self.events = {}
        self.slots = {}
        """By slot: the boot it was written under, and the row."""
        self.overrides = {}
        self.meta = {}
        self.audit = {}
        self.jobs = {}
        self.floor = 0
        self.gap = ""
        self.last_seq = 0

    def put(self, batch, boot_id):
        for recorded in batch.events:
            self.events.setdefault(recorded.seq, recorded)
            self.last_seq = max(self.last_seq, recorded.seq)
            if getattr(recorded.event, "type", "") == "gap":
                self.gap = ""
        for status in batch.slots:
            self.slots[status.slot] = (boot_id, status)
        for slot in batch.forgotten:
            self.slots.pop(slot, None)
        for worker, override in (batch.overrides or {}).items():
            if override is None:
                self.overrides.pop(worker, None)
            else:
                self.overrides[worker] = override
        self.meta.update(batch.meta or {})
        for entry in batch.audit:
            self.audit.setdefault(entry.id, entry)
        for job in batch.jobs:
            self.jobs[job.id] = job

    def copy(self):
        other = Shelf()
        for name, value in vars(self).items():
            setattr(other, name, value.copy() if isinstance(value, dict) else value)
        return other

    def skip_ahead(self):
        """Leave room for numbers that a power cut may have taken."""
        begins = self.gap.partition("-")[0] or str(max(self.floor, self.last_seq) + 1)
        self.floor = max(self.floor, self.last_seq) + SEQ_SKIP
        self.last_seq = self.floor
        self.gap = f"{begins}-{self.floor}"
        for slot, (boot_id, row) in self.slots.items():
            later = replace(row, generation=row.generation + GENERATION_SKIP)
            self.slots[slot] = (boot_id, later)

    def end_interrupted(self):
        """Say of jobs that nobody follows any more that they were interrupted."""
        for number, job in self.jobs.items():
            if job.state in ("queued", "running"):
                self.jobs[number] = replace(job, state="failed", error="interrupted")


class Disk:
    """What is left when everything else is gone."""

    def __init__(self):
        self.written = Shelf()
        self.synced = Shelf()
        self._unsynced = []
        self.closed_cleanly = True

    def put(self, batch, boot_id):
        self.written.put(batch, boot_id)
        self._unsynced.append((batch, boot_id))
        if batch.durable:
            self.sync()

    def sync(self):
        for batch, boot_id in self._unsynced:
            self.synced.put(batch, boot_id)
        self._unsynced.clear()

    def lose_books(self):
        """Begin with an empty journal."""
        self.written, self.synced = Shelf(), Shelf()
        self._unsynced.clear()

    def lose_power(self):
        """Keep what was synced; unless the journal had been closed, numbers skip ahead."""
        self.written = self.synced.copy()
        self._unsynced.clear()
        if not self.closed_cleanly:
            self.written.skip_ahead()
            self.synced = self.written.copy()


class SimulatedJournal:
    """The journal as one supervisor has it open."""

    def __init__(self, disk, boot_id, weather, eye):
        self.dead = False
        self._disk = disk
        self._boot_id = boot_id
        self._weather = weather
        self._eye = eye
        self._queue = deque()
        self._busy_until = 0.0
        disk.closed_cleanly = False
        disk.written.end_interrupted()

    async def append(self, batch):
        """Write a batch, after those that were handed in before."""
        if self.dead:
            raise StoreUnavailable("nobody is there to write any more.")
        self._eye.offered(batch)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._queue.append((batch, answer))
        delay = self._weather.disk_delay()
        if delay or self._busy_until > loop.time():
            self._busy_until = max(self._busy_until, loop.time()) + delay
            loop.call_at(self._busy_until, self._serve, batch)
        else:
            loop.call_soon(self._serve, batch)
        await answer

    def die(self, rng):
        """End with the supervisor; what waits may just have been written."""
        waiting = len(self._queue)
        for batch, _ in list(self._queue)[: rng.randint(0, waiting)]:
            if not self._weather.disk_full:
                self._commit(batch)
        self._queue.clear()
        self.dead = True

    def recall(self):
        shelf = self._disk.written
        slots = {}
        for slot in sorted(shelf.slots):
            boot_id, row = shelf.slots[slot]
            status = decode(SlotStatus, encode(row))
            assert status == row, f"{slot} comes back from the codec as something else"
            if boot_id != self._boot_id:
                zero = Instant(0.0)
                status = replace(status, since=zero, started_at=zero, identity=None)
            slots[slot] = status
        return Memory(
            slots=slots,
            overrides=dict(shelf.overrides),
            meta=shelf.meta | ({"gap": shelf.gap} if shelf.gap else {}),
            last_seq=shelf.last_seq,
        )

    async def close(self):
        """Write what waits, and note that nothing is missing."""
        while self._queue:
            await asyncio.sleep(0.01)
        self._disk.sync()
        self._disk.closed_cleanly = True
        self.dead = True

    def _serve(self, batch):
        if self.dead:
            return
        # The order of the queue, not of the timers: those of one moment are mixed by the loop.
        batch, answer = self._queue.popleft()
        trouble = None
        if self._weather.disk_full:
            trouble = StoreUnavailable("cannot write the journal: the disk is full.")
        else:
            try:
                self._commit(batch)
            except Malformed as problem:
                trouble = problem
        self._eye.answered(batch)
        if answer.done():
            return
        if trouble is None:
            answer.set_result(None)
        else:
            answer.set_exception(trouble)

    def _commit(self, batch):
        known = self._disk.written.events
        for recorded in batch.events:
            before = known.get(recorded.seq)
            if before is not None and before.id != recorded.id:
                self._eye.wrong(f"I7: event {recorded.seq} is both {before} and {recorded}")
                raise Malformed(f"event {recorded.seq} is already in the journal.")
        self._disk.put(batch, self._boot_id)
        self._eye.committed(batch)
