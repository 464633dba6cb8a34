"""Somebody who has nothing but the share: drops flags there, good and bad, and sets markers.

They live on another machine, so no death of a supervisor ends them. What must have become of
everything they did is checked when the world has come to rest.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass

from proofs.settling import is_open
from uphold.core.names import worker_of
from uphold.core.times import utc_text
from uphold.inbox.receipts import heartbeat_name, pause_marker_name

STEERED = ("w1", "w2", "w3")
"""Whose markers stand on the share."""
VERBS = ("pause_watcher", "pause", "resume_watcher", "resume", "resume", "restart_watcher")
UNFINISHED = 25.0
"""Seconds within which a writer finishes a file, if ever; 30 are waited for."""


@dataclass
class Dropped:
    """A flag that was dropped, and what may become of it."""

    task: str
    file: str
    worker: str
    raw: bytes
    valid: bool = True
    whole: bool = True


class Operator:
    """Gives orders by files, at random."""

    def __init__(self, world, share, rng):
        self._world = world
        self._share = share
        self._rng = rng
        self._gap = rng.choice((30.0, 90.0, 300.0))
        self._count = 0
        self.dropped = []
        self.before = 0
        """So many flags were dropped when the journal was lost: nobody can know of those."""
        share.on_receipt = self._read_receipt
        self.receipts = defaultdict(list)
        self.marks = Counter()
        """How often each marker was made or removed by hand."""
        self._later()

    def books_lost(self):
        self.before = len(self.dropped)

    def _later(self):
        self._world.loop.call_later(self._rng.expovariate(1.0 / self._gap), self._act)

    def _act(self):
        if not self._world.orders_are_given:
            return
        rng = self._rng
        deeds = (self._order,) * 6 + (self._again, self._spoil, self._for_others, self._mark)
        # Files are dated by the share; whoever sets our clock may make them look older.
        deeds += () if "jumps" in self._world.kinds else (self._write_slowly, self._too_late)
        rng.choice(deeds)()
        self._later()

    def _flag(self, **more):
        self._count += 1
        task, verb, worker = f"task_{self._count}", self._rng.choice(VERBS), self._somebody()
        content = {"task_id": task, "handler": verb, "worker_id": worker} | more
        return task, f"supervisor_{task}.flag", worker, json.dumps(content).encode()

    def _somebody(self):
        return self._rng.choice(STEERED * 4 + ("w0", "w7", "w19"))

    def _drop(self, flag, **more):
        each = Dropped(*flag, **more)
        self.dropped.append(each)
        self._world.eye.trace("flag", each.file)
        self._world.eye.counts["flags"] += 1
        self._share.write(self._share.inbox / each.file, each.raw)
        return each

    def _order(self):
        self._drop(self._flag())

    def _again(self):
        """Drop a file once more that was dropped before; it may still lie there."""
        if self.dropped:
            each = self._rng.choice(self.dropped)
            self._share.write(self._share.inbox / each.file, each.raw)

    def _spoil(self):
        wrong = self._rng.choice(({"params": {"x": 1}}, {"handler": "dance"}, {"label": "a/b"}))
        self._drop(self._flag(**wrong), valid=False)

    def _for_others(self):
        self._drop(self._flag(worker_id="elsewhere"), valid=False)

    def _too_late(self):
        gone = utc_text(self._world.times.wall_offset + self._world.loop.time() - 1000.0)
        self._drop(self._flag(expires_at=gone), valid=False)

    def _write_slowly(self):
        """Write a file in two steps; sometimes the second never comes."""
        task, file, worker, raw = self._flag()
        half = raw[: self._rng.randrange(1, len(raw))]
        ends = self._rng.random() < 0.6
        each = self._drop((task, file, worker, half), valid=ends, whole=False)
        if ends:
            self._world.loop.call_later(self._rng.uniform(0.0, UNFINISHED), self._end, each, raw)

    def _end(self, each, raw):
        each.raw, each.whole = raw, True
        self._share.write(self._share.inbox / each.file, raw)

    def _mark(self):
        """Make or remove a pause marker by hand."""
        marker = self._share.state / pause_marker_name(self._rng.choice(STEERED))
        self.marks[marker.name] += 1
        self._world.eye.trace("marker", marker.name, marker.exists())
        if marker.exists():
            self._share.remove(marker)
        else:
            self._share.write(marker, b"{}")

    # What must be true.

    def _read_receipt(self, receipt):
        """Check what a supervisor says when it says it (I6, P10, P27)."""
        world, job = self._world, receipt["job_id"]
        task, success = receipt["task_id"], receipt["success"]
        world.eye.trace("receipt", receipt["handler"], task, success)
        self.receipts[task].append(receipt)
        flags = {each.task: each for each in self.dropped}
        flag = flags.get(task)
        if flag is not None and success and not (flag.valid and flag.whole):
            world.eye.wrong(f"P21, P22: {flag.file} was obeyed, as {flag.raw!r}")
        if job is None or self._is_older_than_the_books(task):
            return
        if job not in world.disk.synced.audit:
            world.eye.wrong(f"P10: the receipt of {task} tells of {job}, which is not in the audit")
        if success and receipt["handler"] == "pause_watcher" and world.life.up:
            self._is_down(receipt["worker_id"], job)

    def _is_down(self, worker, job):
        entry = self._world.life.supervisor.snapshot().declaration.workers.get(worker)
        if entry is None or entry.override.order != job or entry.wanted:
            return
        if any(worker_of(each.slot) == worker for each in self._world.machine.everybody()):
            self._world.eye.wrong(f"P27: {worker} is said to be paused by {job}, and lives")

    def _is_older_than_the_books(self, task):
        return task in {each.task for each in self.dropped[: self.before]}

    def is_owed(self):
        """Tell whether a flag still waits for its turn; where nobody works any more, none does."""
        snapshot = self._world.life.supervisor.snapshot()
        if self._world.life.ended or snapshot.declaration.closing is not None:
            return False
        here = {path.name for path in self._share.inbox.iterdir() if path.is_file()}
        declared = snapshot.declaration.workers
        waiting = any(each.file in here and _addressee(each) in declared for each in self.dropped)
        return waiting or any((self._share.inbox / "processing").glob("*"))

    def check_settled(self):
        """Every flag has been obeyed or refused, once, and is gone; markers and holds agree."""
        world, share = self._world, self._share
        snapshot = world.life.supervisor.snapshot()
        declared = snapshot.declaration.workers
        here = {path.name for path in share.inbox.iterdir() if path.is_file()}
        for name in sorted((share.inbox / "processing").glob("*")):
            world.eye.wrong(f"P25: {name.name} was claimed and never dealt with")
        for each in self.dropped:
            if each.file in here and _addressee(each) in declared:
                world.eye.wrong(f"P25: {each.file} still lies in the inbox")
            elif each.file not in here and each.whole and not self.receipts[each.task]:
                world.eye.wrong(f"P25: {each.file} is gone and has no receipt")
        self._check_tasks(snapshot)
        for name in STEERED:
            if name in declared:
                self._check_marks(name, held=declared[name].override.held)

    def _check_tasks(self, snapshot):
        """No task has two effects, and none is open for ever (P20, I6)."""
        jobs = defaultdict(list)
        for job in self._world.disk.written.jobs.values():
            if job.task_id is not None:
                jobs[job.task_id].append(job)
        for each in self.dropped[self.before :]:
            found = jobs[each.task]
            if len(found) > 1:
                self._world.eye.wrong(f"P20: {each.file} has had {len(found)} effects")
            if found and not each.valid:
                self._world.eye.wrong(f"P22: {each.file} became an order: {found[0]}")
            for job in found:
                ended = job.state in {"succeeded", "failed"}
                if not ended and not is_open(job.id, snapshot, self._world):
                    self._world.eye.wrong(f"I6: the order of {each.file} never ends: {job}")

    def _check_marks(self, name, *, held):
        audit = self._world.disk.written.audit.values()
        orders = [each for each in audit if "." not in each.id]  # without what they came to
        obeyed = sum(each.actor == "share" and each.target_id == name for each in orders)
        if obeyed > self.marks[pause_marker_name(name)]:
            self._world.eye.wrong(f"ruling 7: {name} obeyed its marker {obeyed} times, unasked")
        marker = (self._share.state / pause_marker_name(name)).exists()
        if marker != held:
            self._world.eye.wrong(f"ruling 7: {name} is held: {held}, its marker stands: {marker}")
        if not (self._share.state / heartbeat_name(name)).exists():
            self._world.eye.wrong(f"there is no heartbeat of {name} on the share")


def _addressee(each):
    try:
        return json.loads(each.raw)["worker_id"]
    except ValueError:
        return each.worker
