"""Crash loops, counted a second time: how many automatic starts, and how long after each end."""

from __future__ import annotations

from uphold.core import events
from uphold.core.statuses import State

TOLERANCE = 0.011
PROMPT = 3.0


class Episodes:
    """Follows the failures of every slot by what is on record, beside the engine's own count."""

    def __init__(self, eye):
        self._eye = eye
        self._failures = {}
        self._automatic = {}
        self._lasted = {}
        self._since = {}
        self._up_since = {}
        self.paused_at = -1.0
        self.longest = 0

    def paused(self, at):
        """Hear that the supervisor acts on nothing, or is not there."""
        self.paused_at = at

    def begins(self, rows, boot_id):
        """Go on from what a new supervisor finds in the books; the books must not be behind."""
        self._failures = {slot: row.failures for slot, row in rows.items()}
        self._since = {}
        self._up_since = {
            slot: row.started_at
            for slot, row in rows.items()
            if row.identity is not None and row.identity.boot_id == boot_id
        }
        self._automatic = dict(self._failures)
        self._lasted = {
            slot: row.since - row.started_at
            for slot, row in rows.items()
            if slot in self._up_since and row.state is State.STOPPING and not row.stop_asked
        }
        """What was left behind is being ended: the run was over when its main process was."""

    def reported(self, fact, status, now):
        """Hear of a fact before it is taken in: how long has its run been up?"""
        if status is not None and getattr(fact, "generation", 0) < status.generation:
            return
        if isinstance(fact, events.Started | events.Adopted):
            known = status is not None and status.identity == fact.identity
            self._up_since[fact.slot] = status.started_at if known else now
            self._since.pop(fact.slot, None)
            self._lasted.pop(fact.slot, None)
        elif isinstance(fact, events.StartFailed):
            if fact.slot not in self._up_since:  # else it runs, whatever its driver says
                self._since.setdefault(fact.slot, now)
        elif isinstance(fact, events.Gone | events.Exited):
            since = self._up_since.get(fact.slot)
            if fact.slot not in self._since:
                # A run is as long as its main process; only the delay begins after the last one.
                self._lasted.setdefault(fact.slot, None if since is None else now - since)
            # One that is being aborted is over when nothing of it is left, like left-overs.
            ending = isinstance(fact, events.Exited) and (
                fact.left_overs or (status is not None and status.state is State.STOPPING)
            )
            if not ending:
                self._since.setdefault(fact.slot, now)

    def hear(self, event, row):
        """Hear of an event that is now believed; `row` is what is known of its slot by then."""
        slot = event.slot
        match event:
            case events.StateChanged(after=State.BACKOFF):
                self._failed(slot, row)
            case events.StartBegun(automatic=True):
                self._started_by_itself(event)
                self._begun(slot)
            case events.StartBegun() | events.Forgotten():
                self._forget(slot)
                self._begun(slot)
            case events.WaitBegun(afresh=True):
                self._forget(slot)
            case events.StateChanged(after=State.STOPPED):
                self._since.pop(slot, None)  # a stop is no failure: no delay follows it
            case events.AbortBegun():
                self._condemned(slot, row)
            case events.StopFailed() if slot in self._lasted and row is not None and row.killed:
                # A kill that could not be sent is begun anew, and the books count from there.
                del self._lasted[slot]
                self._condemned(slot, row)
            case events.StopBegun(forgives=False):
                self._put_off(slot, row)
            case events.Pardoned() | events.Rested() | events.StopBegun():
                self._forget(slot)

    def _begun(self, slot):
        for each in (self._up_since, self._since, self._lasted):
            each.pop(slot, None)

    def _forget(self, slot):
        self._failures[slot] = self._automatic[slot] = 0

    def _condemned(self, slot, row):
        """A run that does not answer is as long as it was believed to work."""
        since = self._up_since.get(slot)
        if since is not None and row is not None:
            self._lasted.setdefault(slot, row.since - since)

    def _put_off(self, slot, row):
        """Only the supervisor ends: a series goes on, unless this run has lasted long enough."""
        since = self._up_since.get(slot) if slot not in self._since else None
        if since is None or row is None or row.terms is None:
            return
        stable = row.terms.stable_after
        lasted = self._eye.now - self._eye.booted - since
        if lasted >= stable - TOLERANCE and not row.failures:
            self._forget(slot)

    def _failed(self, slot, row):
        lasted = self._lasted.pop(slot, None)
        stable = None if row is None or row.terms is None else row.terms.stable_after
        count = self._failures.get(slot, 0) + 1
        if lasted is not None and stable is not None:
            if abs(lasted - stable) < TOLERANCE:
                count = row.failures
            elif lasted >= stable:
                count = 1
        self._failures[slot] = count
        if count == 1:
            self._automatic[slot] = 0
        if row is not None and row.state is State.BACKOFF:
            self._since[slot] = row.since
            if row.failures != count:
                self._eye.wrong(f"P8: {slot} has failed {count} times, the books say {brief(row)}")

    def _started_by_itself(self, event):
        slot, terms = event.slot, event.terms
        failures = self._failures.get(slot, 0)
        self._automatic[slot] = self._automatic.get(slot, 0) + 1
        self.longest = max(self.longest, self._automatic[slot])
        if terms.max_restarts is not None:
            if failures > terms.max_restarts:
                self._eye.wrong(
                    f"P8: {slot} is started again after {failures} failures: {event.why}"
                )
            if self._automatic[slot] > terms.max_restarts + 1:
                self._eye.wrong(f"P8: {self._automatic[slot]} automatic starts of {slot}")
        since = self._since.get(slot)
        if since is not None and failures:
            self._is_in_time(event, self._eye.now - self._eye.booted - since, failures)

    def _is_in_time(self, event, waited, failures):
        """Check the delay by P8's own formula: at once, then min(max, base * 2^n), with jitter."""
        rule = event.terms.backoff
        delay = rule.first if failures == 1 else min(rule.max, rule.base * 2 ** (failures - 2))
        if waited < delay * (1.0 - rule.jitter) - TOLERANCE:
            self._eye.wrong(
                f"P8: {event.slot} was started {waited:.3f} s after failure {failures}, not {delay}"
            )
        prompt = event.why.startswith("restart after") and self._eye.is_calm
        if prompt and waited > delay * (1.0 + rule.jitter) + PROMPT:
            if self.paused_at < self._eye.now - waited - 1.0:
                self._eye.wrong(
                    f"P8: {event.slot} waited {waited:.3f} s after failure {failures}, not {delay}"
                )


def brief(status):
    """Say of a slot what matters here."""
    if status is None:
        return "nothing"
    marks = [name for name in ("stop_asked", "killed", "hopeless") if getattr(status, name)]
    error = "" if status.error is None else f", {status.error.code}"
    return (
        f"{status.slot} {status.state} since {status.since:.3f} as {status.generation} after"
        f" {status.failures} failures, {' '.join(marks)}, why: {status.why}{error}"
    )
