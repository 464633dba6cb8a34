"""What must be true at every moment of a simulated hour, whoever is dead and whatever is full.

The eye is told of everything that happens at the ports, and looks at the snapshot after every
round of the loop. It decides nothing and changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque

from proofs.episodes import Episodes, brief
from proofs.simulated_probes import known_within
from uphold.core.actions import Wait
from uphold.core.changes import restarting
from uphold.core.events import Forgotten, Note, StartBegun
from uphold.core.names import worker_of
from uphold.core.overrides import after_absence
from uphold.core.planning import plan
from uphold.core.specs import Instant
from uphold.core.statuses import ALIVE, RESTING, State
from uphold.wire.overrides import decode_override

WALL = re.compile(r"_\d{8}_\d{6}")
"""The time of the wall clock in the id of an order: the only part of a reason that jumps."""
PATIENCE = 2.5
"""Seconds for which something that should be done may stay undone, on a healthy machine."""
ADOPTED_WITHIN = 5.0
PROMPTLY = 0.5
"""Seconds from a decision to its being asked of the driver, on a healthy disk."""
MOST_ALARMS = 3
"""One for what is planned, one for questions, one for a heartbeat."""
SLOWEST_START = 70.0
SLOWEST_LOOK = 35.0


class Eye:
    """Sees everything; keeps what is wrong, and a fingerprint of all that happened."""

    def __init__(self, loop, times):
        self.violations = []
        self.counts = {"starts": 0, "events": 0, "turns": 0, "lives": 0, "jumps": 0, "flags": 0}
        self._loop = loop
        self._times = times
        self._fingerprint = hashlib.blake2b(digest_size=16)
        self.recent = deque(maxlen=400)
        self.machine = None
        self.disk = None
        self.life = None
        self.episodes = Episodes(self)
        self._observed = {}
        self._declaration = None
        self._declared = deque(maxlen=40)
        self._settled = {}
        self._offered = {}
        self._undone = {}
        self._generations = {}
        self._calm_from = 0.0
        self._unrecorded = set()
        """Runs that were alive when this supervisor began, and that its books had missed."""
        self.born_under = 0.0

    @property
    def now(self):
        return self._loop.time()

    @property
    def booted(self):
        return self._times.booted

    @property
    def digest(self):
        return self._fingerprint.hexdigest()

    def trace(self, *what):
        """Note something that happened, at its virtual time; nothing here may show the wall clock."""
        line = f"{self._loop.time() - self._times.booted:.6f} {what}"
        self.recent.append(line)
        self._fingerprint.update(line.encode())

    def wrong(self, text):
        """Note a violation."""
        self.violations.append(f"at {self._loop.time():.3f} s: {text}")

    def troubled(self, seconds=0.0):
        """Hear that the disk or the machine is in trouble: for a while nothing need be prompt."""
        self._calm_from = max(self._calm_from, self._loop.time() + seconds)

    @property
    def is_calm(self):
        return self._loop.time() - self._calm_from > 10.0

    # What the machine and the driver tell.

    def born(self, process):
        self.counts["starts"] += 1
        self.trace("born", process.slot, process.identity.pid)
        others = [p for p in self.machine.living(process.slot) if p is not process]
        if others:
            self.wrong(f"I1: {process.slot} is started beside {[p.identity.pid for p in others]}")

    def ended(self, process):
        self.trace("ended", process.slot, process.identity.pid, process.code)

    def starting(self, launch):
        self.trace("start", launch.slot, launch.generation)
        known = self._on_record(launch.slot)
        if known is None or (known.nonce, known.generation) != (launch.nonce, launch.generation):
            self.wrong(f"I2: the start of {launch.slot} was not on record before it was made")
        else:
            self._is_prompt("start", known)

    def ending(self, verb, slot, generation):
        self.trace(verb, slot, generation)
        known = self._on_record(slot)
        decided = known is not None and (known.stop_asked or known.killed or _condemned(known))
        if not decided or known.generation < generation:
            self.wrong(
                f"I8: a {verb} of {slot} was not on record before it was made: {brief(known)}"
            )
        elif verb == "stop" and not self._justified(known):
            self.wrong(f"P15: nobody wanted the stop of {slot}: {known.why}")
        elif verb == "stop":
            self._is_prompt(verb, known)

    def _is_prompt(self, verb, status):
        """Check that what was decided is done: whoever else is slow keeps nobody waiting (I9)."""
        waited = self._loop.time() - self._times.booted - status.since
        if waited > PROMPTLY and self.is_calm:
            self.wrong(f"I9: the {verb} of {status.slot} came {waited:.3f} s after it was decided")

    def told(self, fact):
        self.trace(type(fact).__name__, fact.slot, fact.generation)

    # What the journal tells.

    def offered(self, batch):
        if id(batch) not in self._offered:
            self._offered[id(batch)] = [batch, False]

    def answered(self, batch):
        """A batch was written or refused: from now on it may be believed."""
        entry = self._offered[id(batch)]
        if entry[1]:
            return  # it was kept, and is only written down later
        entry[1] = True
        for status in batch.slots:
            self._settled[status.slot] = status

    def committed(self, batch):
        for recorded in batch.events:
            event = recorded.event
            kind = event.TYPE if hasattr(event, "TYPE") else event.type
            self.counts["events"] += 1
            why = WALL.sub("", getattr(event, "why", ""))
            self.trace(recorded.seq, kind, getattr(event, "slot", ""), why)
            if kind == "worker.illegal_transition":
                self.wrong(f"E-05: an illegal transition: {event.payload}")
            elif kind == "reconciliation.failed":
                self.wrong(f"a turn failed: {event.payload}")

    # A supervisor's life.

    def offer(self, news):
        """Hear what listeners hear, in the moment it is believed."""
        if self.life is None:
            return
        slots = self.life.supervisor._board.snapshot.observed.slots
        for recorded in news:
            event = recorded.event
            if not isinstance(event, Note):
                self.episodes.hear(event, slots.get(event.slot))
                self._numbered(event)

    def close(self):
        """Hear that nobody will hear anything any more."""

    def begins(self, life):
        self.counts["lives"] += 1
        self.life = life
        self._observed = None
        self._declaration = None
        self._declared.clear()
        self._undone.clear()
        self._settled = {slot: row for slot, (_, row) in self.disk.written.slots.items()}
        self._offered.clear()
        self._generations = {slot: row.generation for slot, row in self._settled.items()}
        recorded = {row.nonce for row in self._settled.values()}
        living = {process.identity.nonce for process in self.machine.everybody()}
        self._unrecorded = living - recorded
        self.episodes.begins(self._settled, self.machine.boot_id)
        self.episodes.paused(self._loop.time())
        life.supervisor._board.bus._subscriptions = (self,)
        self.born_under = self._loop.time()

    def look(self):
        """Compare belief, record and world; called after every round."""
        life = self.life
        if life is None:
            return
        snapshot = life.supervisor._board._snapshot
        if snapshot.declaration.version == 0:
            return  # it has not read its books yet
        if snapshot.declaration is not self._declaration:
            self._redeclared(snapshot.declaration)
        slots = snapshot.observed.slots
        if slots is not self._observed:
            self._believed(slots)
        if len(life.clock.alarms) > MOST_ALARMS:
            self.wrong(f"I10: {len(life.clock.alarms)} alarms are set at once")

    def _redeclared(self, declaration):
        before, self._declaration = self._declaration, declaration
        self._declared.append((self._loop.time(), declaration))
        if before is None:
            self._still_ordered(declaration)
            return
        self.trace("declared", declaration.version)
        for name, entry in declaration.workers.items():
            order = entry.override.order
            old = before.workers.get(name)
            if order and (old is None or old.override.order != order):
                if order not in self.disk.synced.audit:
                    self.wrong(f"P10: {order} took effect on {name} and is not in the audit")

    def _still_ordered(self, declaration):
        """Check that what people ordered holds under a new supervisor, as far as the file agrees."""
        for name, text in self.disk.written.overrides.items():
            entry = declaration.workers.get(name)
            if entry is not None and entry.override != after_absence(
                decode_override(text), entry.spec
            ):
                self.wrong(f"ruling 44: orders for {name} were forgotten: {text}")

    def _believed(self, slots):
        before, self._observed = self._observed, slots
        self.counts["turns"] += 1
        for slot, status in slots.items():
            old = None if before is None else before.get(slot)
            if status is old:
                continue
            if before is None:
                self._recalled(status)
                continue
            if status is not self._on_record(slot):
                self.wrong(f"P11: {slot} is believed to be {status.state} before it is on record")
            if old is not None and status.generation < old.generation:
                self.wrong(f"I5: the generation of {slot} fell: {old.generation} {brief(status)}")
            if status.state in RESTING and self.machine.living(slot):
                # What the books had lost is a number only, until it has been looked for.
                if (old is None and self.life.up) or (old is not None and old.state in ALIVE):
                    self.wrong(f"I3: {slot} is said to be {status.state}, and lives")

    def _recalled(self, status):
        """Check what a new supervisor believes before anything has happened (P8: it counts on)."""
        row = self.disk.written.slots[status.slot][1]
        # How long a run lasted that ended with the machine is unknown: it is in no series.
        lost = status.why == "the machine was restarted" and row.state is not State.WAITING
        failures = 0 if lost and row.state is not State.STOPPED else row.failures
        if (status.failures, status.generation) != (failures, row.generation):
            self.wrong(f"P8: {brief(status)} is taken from {brief(row)}")

    def _on_record(self, slot):
        """Give what is written of a slot, or kept to be written when the disk is well again."""
        for batch in reversed(self.life.supervisor._ledger._kept if self.life else ()):
            for status in batch.slots:
                if status.slot == slot:
                    return status
        return self._settled.get(slot)

    def _numbered(self, event):
        """Check that generations only ever rise, as far as a slot is remembered."""
        if isinstance(event, Forgotten):
            self._generations.pop(event.slot, None)
        elif isinstance(event, StartBegun):
            if event.generation <= self._generations.get(event.slot, 0):
                self.wrong(f"I5: {event.slot} is started as {event.generation} once more")
            self._generations[event.slot] = event.generation

    def _justified(self, status):
        """Tell whether anybody wanted this stop, at any moment since it was decided."""
        if _condemned(status):
            # It is ended because it does not answer: then it must not have. One whose start the
            # books did not learn of is taken for ready, as the run they knew was.
            main, now = self.machine.main(status.slot), self._loop.time()
            unknown = main is not None and main.identity.nonce in self._unrecorded
            return main is None or main.freezes <= now or (unknown and now < main.ready + 1.0)
        begun = status.since + self._times.booted
        relevant = [each for at, each in self._declared if at >= begun - 0.5]
        earlier = [each for at, each in self._declared if at < begun - 0.5]
        return any(_wants_stop(each, status) for each in (*earlier[-1:], *relevant))

    # Now and then.

    def sweep(self):
        """Look for what should have been done and was not; twice, a little apart."""
        life = self.life
        waits = self._loop.time() - self.born_under < ADOPTED_WITHIN
        if life is None or not life.up or life.ended or waits:
            return
        found = dict(self._amiss(life.supervisor.snapshot())) if self.is_calm else {}
        now = self._loop.time()
        self._undone = {
            key: (status, self._undone[key][1] if self._undone.get(key, (0,))[0] is status else now)
            for key, status in found.items()
        }
        for (slot, text), (status, since) in self._undone.items():
            if now - since > PATIENCE:
                self.wrong(f"{slot}: {text}; it is known as {brief(status)}")
        if self._undone:
            self._loop.call_later(PATIENCE + 0.1, self.sweep)

    def _amiss(self, snapshot):
        now = Instant(self._loop.time() - self._times.booted)
        slots = snapshot.observed.slots
        for action in plan(snapshot.declaration, snapshot.observed, now).actions:
            if isinstance(action, Wait) and slots[action.slot].state is State.WAITING:
                continue  # only the words of its reason have changed
            text = f"I4: a {type(action).__name__} is due ({action.why}) and not done"
            yield (action.slot, text), slots.get(action.slot)
        for slot, status in slots.items():
            text = self._untrue(status, now - status.since)
            if text is not None:
                yield (slot, text), status
        for process in self.machine.everybody():
            status = slots.get(process.slot)
            if status is None or status.state in RESTING:
                yield (process.slot, f"I2: process {process.identity.pid} is in no book"), status

    def _untrue(self, status, age):
        living = self.machine.living(status.slot)
        if status.state is State.STARTING and age > SLOWEST_START:
            if status.identity is not None and self.machine.main(status.slot) is None:
                return self._long_dead(status)
            return None if self.never_ready(status) else "I4: it is starting for ever"
        if status.state is State.RUNNING:
            main = self.machine.main(status.slot)
            if main is None and age > SLOWEST_LOOK:
                return self._long_dead(status)
            if main is not None and main.identity != status.identity:
                return f"I2: it runs as {main.identity}"
            asked = status.terms is not None and status.terms.live is not None
            if main is not None and asked and not self._declaration.paused:
                since = max(main.freezes, self.born_under, self.episodes.paused_at, self._calm_from)
                if self._loop.time() - since > known_within(status.terms.live):
                    return f"P26: it froze at {main.freezes:.1f} s, and it still runs"
        if status.state is State.STOPPING and not self._declaration.paused:
            grace = 0.0 if status.terms is None else status.terms.stop.grace
            if status.error is None and age > grace + 8.0:
                return "P4: it is being stopped for ever"
            if status.error is not None and not living and age > grace + 8.0:
                return "P4: nothing of it is left, and it is not said to be stopped"
        return None

    def never_ready(self, status):
        """Tell whether a run froze before anybody could find it ready: that may last."""
        main = self.machine.main(status.slot)
        asked = status.terms is not None and status.terms.ready is not None
        return asked and main is not None and main.freezes <= self._loop.time()

    def _long_dead(self, status):
        ended = self.machine.ended_at.get(status.slot, self._loop.time())
        acted_since = max(ended, self.episodes.paused_at)
        if self._loop.time() - acted_since > SLOWEST_LOOK and not self._declaration.paused:
            return "P11: it is believed to run and is long dead"
        return None


def _condemned(status):
    return status.finding is not None and bool(status.finding.code)


def _wants_stop(declaration, status):
    entry = declaration.workers.get(worker_of(status.slot))
    if entry is None or not entry.wanted or declaration.closing is not None:
        return True
    if status.slot not in entry.slots() or entry.override.nudge > status.started_seen:
        return True
    return status.terms is None or bool(restarting(status.terms, entry.spec))
