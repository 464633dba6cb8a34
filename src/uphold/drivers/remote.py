"""The driver of remote workers: nothing is started or ended, their heartbeats are listened to.

A slot is `running` while it is listened to; how its worker does is told by its health alone.
Heartbeats are handed in (from the control socket), or read from a file that somebody else writes.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from uphold.core.events import Adopted, Gone, Note, Recovered, Sickened, Started
from uphold.core.names import worker_of
from uphold.core.notices import AHEAD, MISSING, UNANSWERED, Beat, FileBeat, Refused
from uphold.core.remotes import (
    Judgement,
    RemoteStatus,
    absorb_beat,
    count_refused,
    judge,
    view,
)
from uphold.core.specs import NEVER, Heartbeat, Instant, StopRule, WorkerSpec
from uphold.core.statuses import Health, Identity
from uphold.drivers.listeners import Listeners
from uphold.host.beats import BeatFiles
from uphold.ports.drivers import Launch, Sighting, Trace
from uphold.wire.notices import decode_beat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from uphold.ports.clocks import Clock
    from uphold.ports.drivers import Listener

PROOF: Final = "it runs elsewhere; its heartbeats are no longer listened to"
NOT_LISTENED: Final = "not-listened-to"
_OFTEN: Final = 5.0
_LOOKS: Final = 4
"""A file is looked at so many times within the time that a heartbeat may take."""


class Listening:
    """One slot that is listened to."""

    __slots__ = ("judgement", "launch", "looking", "read", "status")

    def __init__(self, launch: Launch, status: RemoteStatus, judgement: Judgement) -> None:
        self.launch = launch
        self.status = status
        self.judgement = judgement
        self.read: FileBeat | Refused | None = None
        """What was last read in its file: only what differs from it is news."""
        self.looking = False
        """Its file is looked after: nobody else need do that."""

    @property
    def rule(self) -> Heartbeat:
        """How its heartbeats are judged."""
        return self.launch.spec.heartbeat or Heartbeat()


class RemoteDriver:
    """Listens to workers of kind `remote`, on the running asyncio loop."""

    def __init__(
        self,
        clock: Clock,
        *,
        boot_id: str,
        tell: Callable[[Note], None] | None = None,
        files: BeatFiles | None = None,
    ) -> None:
        """`tell` hears of what is worth an event and changes no state: gaps, missed beats."""
        self._clock = clock
        self._boot_id = boot_id
        self._tell = tell or (lambda _note: None)
        self._files = files or BeatFiles()
        self._facts = Listeners()
        self._specs: dict[str, WorkerSpec] = {}
        self._heard: dict[str, Listening] = {}
        self._cancel: Callable[[], None] | None = None
        self._alarm_at = NEVER
        self._tasks: set[asyncio.Task[None]] = set()

    def beat(self, slot: str, beat: Beat | Refused) -> Refused | None:
        """Take in a heartbeat; what is not believed is counted and given back with its reason."""
        listening = self._heard.get(slot)
        if listening is None:
            return Refused(NOT_LISTENED, f"'{slot}' is not listened to.")
        return self._take_in(listening, beat, 0.0)

    def listening(self, slot: str) -> Listening | None:
        """Give what is known of a slot that is listened to."""
        return self._heard.get(slot)

    @property
    def unread(self) -> bool:
        """Tell whether a file of heartbeats has not been looked into yet."""
        return any(
            each.rule.file and each.read is None and not each.status.unread
            for each in self._heard.values()
        )

    def nonce(self, slot: str) -> str | None:
        """Give what a heartbeat may carry to prove that it is meant for this slot."""
        listening = self._heard.get(slot)
        return None if listening is None else listening.launch.nonce

    def add(self, spec: WorkerSpec) -> None:
        """Learn about a worker, or of changed terms of one that is listened to."""
        self._specs[spec.name] = spec
        for slot, listening in self._heard.items():
            if worker_of(slot) == spec.name and listening.launch.spec != spec:
                known = listening.launch
                listening.launch = Launch(
                    slot=slot, generation=known.generation, nonce=known.nonce, spec=spec
                )
                listening.read = None
                self._judge(listening)
                self._mind(listening)
                self._look_again(listening)

    def remove(self, name: str) -> None:
        """Forget a worker."""
        self._specs.pop(name, None)
        for slot in [slot for slot in self._heard if worker_of(slot) == name]:
            del self._heard[slot]

    async def start(self, launch: Launch, deadline: float | None = None) -> None:
        """Begin to listen to one slot."""
        await self.start_all((launch,), deadline)

    async def start_all(self, launches: Sequence[Launch], deadline: float | None = None) -> None:
        """Begin to listen to these slots."""
        del deadline
        for launch in launches:
            identity = self._listen(launch)
            self._facts.tell(
                Started(slot=launch.slot, generation=launch.generation, identity=identity)
            )
            self._look_again(self._heard[launch.slot])

    async def stop(self, slot: str, how: StopRule, *, generation: int = 0) -> None:
        """Listen no more; the worker itself is not touched."""
        del how
        listening = self._heard.pop(slot, None)
        known = 0 if listening is None else listening.launch.generation
        self._facts.tell(Gone(slot=slot, generation=max(known, generation), proof=PROOF))

    async def kill(self, slot: str, *, generation: int = 0) -> None:
        """Listen no more: nobody can be ended here."""
        await self.stop(slot, StopRule(), generation=generation)

    def signal(self, slot: str, signal: str) -> bool:
        """Say that there is no process to signal."""
        del slot, signal
        return False

    async def adopt(self, traces: Sequence[Trace]) -> None:
        """Go on listening; how long it has been silent is counted from now on."""
        for trace in traces:
            launch = Launch(
                slot=trace.slot, generation=trace.generation, nonce=trace.nonce, spec=trace.spec
            )
            if trace.slot not in self._heard:
                self._listen(launch)
            identity = self._identity(trace.nonce)
            self._facts.tell(
                Adopted(slot=trace.slot, generation=trace.generation, identity=identity)
            )
            self._look_again(self._heard[trace.slot])

    def state(self, slot: str) -> Sighting:
        """Look at one slot; KeyError for one it never heard of."""
        if slot not in self._heard and slot not in self._specs:
            raise KeyError(slot)
        listening = self._heard.get(slot)
        if listening is None:
            return Sighting(slot=slot, generation=0, connected=False, info={})
        known = view(listening.status)
        return Sighting(
            slot=slot, generation=listening.launch.generation, connected=True, info=known
        )

    def states(self) -> Mapping[str, Sighting]:
        """Look at all slots."""
        return {slot: self.state(slot) for slot in {**self._specs, **self._heard}}

    def subscribe(self, listener: Listener) -> None:
        """Send every fact to this listener from now on."""
        self._facts.add(listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Send it no more."""
        self._facts.remove(listener)

    async def close(self) -> None:
        """Listen to nobody any more."""
        self._heard.clear()
        self._set_alarm()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _listen(self, launch: Launch) -> Identity:
        now = self._clock.now().mono
        status = RemoteStatus(since=now)
        rule = launch.spec.heartbeat or Heartbeat()
        listening = Listening(launch, status, judge(status, rule, now))
        self._heard[launch.slot] = listening
        self._mind(listening)
        return self._identity(launch.nonce)

    def _identity(self, nonce: str) -> Identity:
        """Make do without a process: the number 0 is nobody's."""
        return Identity(pid=0, start_ticks=0, boot_id=self._boot_id, inode=0, nonce=nonce)

    def _take_in(self, listening: Listening, beat: Beat | Refused, age: float) -> Refused | None:
        before = listening.status
        after: RemoteStatus | Refused = (
            beat
            if isinstance(beat, Refused)
            else absorb_beat(before, beat, self._clock.now(), age=age)
        )
        if isinstance(after, Refused):
            listening.status = count_refused(before, after.reason)
            return after
        listening.status = after
        if after.gaps > before.gaps:
            lost = after.lost - before.lost
            self._note(listening, "worker.beat_gap", lost=lost, after=before.seq, before=after.seq)
        self._judge(listening)
        self._mind(listening)
        return None

    def _judge(self, listening: Listening) -> None:
        """Judge anew; what has changed is told."""
        before = listening.judgement
        now = judge(listening.status, listening.rule, self._clock.now().mono)
        listening.judgement = now
        if now.missed == 1 and not before.missed and now.health is not Health.UNKNOWN:
            self._note(listening, "worker.beat_missed", missed=now.missed)
        if (now.health, now.why) == (before.health, before.why) or now.health is Health.UNKNOWN:
            return
        slot, generation = listening.launch.slot, listening.launch.generation
        if now.health is Health.HEALTHY:
            self._facts.tell(Recovered(slot=slot, generation=generation, why=now.why))
        else:
            self._facts.tell(
                Sickened(slot=slot, generation=generation, health=now.health, why=now.why)
            )

    def _mind(self, listening: Listening) -> None:
        """Be woken in time for this one; too early is no harm, so mostly nothing is to be done."""
        if listening.judgement.again_at < self._alarm_at:
            self._set_alarm()

    def _set_alarm(self) -> None:
        """Be woken when somebody's silence counts; one alarm for all."""
        at = min((each.judgement.again_at for each in self._heard.values()), default=NEVER)
        if at == self._alarm_at and self._cancel is not None:
            return
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        self._alarm_at = at
        if at != NEVER:
            self._cancel = self._clock.alarm(Instant(at), self._ring)

    def _ring(self) -> None:
        self._cancel = None
        now = self._clock.now().mono
        for listening in tuple(self._heard.values()):
            if listening.judgement.again_at <= now:
                self._judge(listening)
        self._set_alarm()

    def _note(self, listening: Listening, kind: str, **payload: object) -> None:
        slot = listening.launch.slot
        self._tell(
            Note(
                type=kind,
                entity_type="worker",
                entity_id=worker_of(slot),
                payload={"slot": slot, **payload},
                severity="warning",
            )
        )

    def _look_again(self, listening: Listening) -> None:
        """Look after its file from now on, if it has one."""
        if listening.rule.file and not listening.looking:
            listening.looking = True
            task = asyncio.create_task(
                self._follow_file(listening), name=f"heartbeats of {listening.launch.slot}"
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _follow_file(self, listening: Listening) -> None:
        while self._heard.get(listening.launch.slot) is listening:
            path, wall = listening.rule.file, self._clock.now().wall
            found = await self._files.read(path, partial(decode_beat, now=wall, nonce=None))
            if self._heard.get(listening.launch.slot) is listening:
                self._look_into(listening, found)
            await self._clock.sleep(min(_OFTEN, listening.rule.stale_after / _LOOKS))

    def _look_into(self, listening: Listening, found: FileBeat | Refused) -> None:
        """See what is new in its file; that it cannot be read says nothing of the worker."""
        before = listening.status.unread
        silent = isinstance(found, Refused) and found.reason == UNANSWERED
        unread = found.text if isinstance(found, Refused) and silent else ""
        listening.status = replace(listening.status, unread=unread)
        if silent and not before:
            listening.status = count_refused(listening.status, UNANSWERED)
        elif not silent and found != listening.read:
            listening.read = found
            self._take_in_file(listening, found)
        if unread != before:
            self._judge(listening)
            self._mind(listening)

    def _take_in_file(self, listening: Listening, found: FileBeat | Refused) -> None:
        """Take in what its file says; that there is none yet is no fault of anybody's."""
        if isinstance(found, FileBeat):
            wall = self._clock.now().wall
            ahead = found.modified > wall + AHEAD
            early = Refused("from-the-future", "its file was written in the future.")
            self._take_in(listening, early if ahead else found.beat, found.age(wall))
        elif found.reason != MISSING:
            self._take_in(listening, found, 0.0)
