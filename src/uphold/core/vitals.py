"""What answers and beats mean for one run: counted, weighed, and put into one word.

Everything here is about a single run of a slot; a new run begins with a new `Chart`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from uphold.core.absorbing import duration_text
from uphold.core.events import Moment
from uphold.core.notices import GOOD_STATUSES, Beat
from uphold.core.specs import EARLIEST, Heartbeat, Instant, Probe
from uphold.core.statuses import Finding, Health

FIRST_BEAT: Final = 60.0
"""Within so many seconds of a start the first beat must come (E-07)."""
UNHEALTHY: Final = "UPH_WORKER_UNHEALTHY"
UNRESPONSIVE: Final = "UPH_WORKER_UNRESPONSIVE"
_MISSED_BEATS: Final = 3
_SAME: Final = 0.001
"""Seconds between times of the wall clock that are one and the same, however they were counted."""
_FIRST_PAUSE: Final = 0.1
_LONGEST_BEFORE_READY: Final = 1.0
"""Others may wait for it: that it is ready is known within a second."""
_BADNESS: Final = {Health.HEALTHY: 0, Health.UNKNOWN: 1, Health.DEGRADED: 2, Health.UNHEALTHY: 3}


class Outcome(StrEnum):
    """What came of one question."""

    PASSED = "passed"
    MISSED = "missed"
    """No good answer: it may be slow. Some of these in a row count."""
    REFUTED = "refuted"
    """Evidence that nobody is there: refused, reset. It counts at once."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question, in a word and in a sentence."""

    outcome: Outcome
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """Answers in a row."""

    passes: int = 0
    misses: int = 0
    refuted: bool = False

    def after(self, answer: Answer) -> Tally:
        """Count one more; a good answer sets the bad ones back, and the other way round."""
        if answer.outcome is Outcome.PASSED:
            return Tally(passes=self.passes + 1)
        refuted = self.refuted or answer.outcome is Outcome.REFUTED
        return Tally(misses=self.misses + 1, refuted=refuted)

    def passed(self, probe: Probe) -> bool:
        """Tell whether there were enough good answers."""
        return self.passes >= probe.successes

    def failed(self, probe: Probe) -> bool:
        """Tell whether there were enough bad ones, or one that leaves no doubt."""
        return self.refuted or self.misses >= probe.failures


def pause_before(probe: Probe, asked: int, *, ready: bool) -> float:
    """Say how long to wait before the next question; who is not ready yet is asked sooner."""
    if ready:
        return probe.every
    return min(probe.every, _LONGEST_BEFORE_READY, _FIRST_PAUSE * 2.0 ** min(asked, 16))


@dataclass(frozen=True, slots=True)
class Pulse:
    """The beats of one run."""

    began: Instant
    """When the run began, or was taken over from another supervisor."""
    last: Instant | None = None
    wall: float = 0.0
    seq: int | None = None
    progress: float | None = None
    moved: Instant | None = None
    """When its progress last changed."""
    status: str = ""
    error: str | None = None
    summary: str = ""
    unseen: Instant = EARLIEST
    """When it was last impossible to see whether there is another one."""
    set_to: float | None = None
    """By how much the wall clock was ahead of the other one when its file was last read."""

    def after(self, beat: Beat, at: Instant, wall: float) -> Pulse:
        """Take in one more beat."""
        moved = self.moved
        if beat.progress is not None and (beat.progress != self.progress or moved is None):
            moved = at
        return Pulse(
            began=self.began,
            last=at,
            wall=wall,
            seq=self.seq if beat.seq is None else beat.seq,
            progress=self.progress if beat.progress is None else beat.progress,
            moved=moved,
            status=beat.status,
            error=beat.error,
            summary=beat.summary,
            unseen=self.unseen,
            set_to=self.set_to,
        )

    def after_reading(self, beat: Beat, now: Moment) -> Pulse:
        """Take in what its file says; a beat from before this run is no sign of its life."""
        at = self._written_at(beat, now)
        known = self
        if at >= self.began:
            # An older one takes back no later sign of life, nor the time that was asked for.
            latest = at if self.last is None else max(at, self.last)
            known = self.after(beat, latest, beat.at or now.wall)
        return replace(known, set_to=now.wall - now.mono)

    def _written_at(self, beat: Beat, now: Moment) -> Instant:
        """Say when a beat was written: as long ago as it says, but no jump of the clock counts.

        The beat that was read last keeps its time. Another one was written by the clock as it is
        now, or as it was when the file was last read, and never later than now.
        """
        said = now.wall if beat.at is None else beat.at
        if self.last is not None and abs(said - self.wall) < _SAME:
            return self.last
        at = Instant(min(now.mono, now.mono + said - now.wall))
        earlier = at if self.set_to is None else Instant(said - self.set_to)
        return max(at, earlier) if earlier <= now.mono else at

    def touched(self, at: Instant, wall: float) -> Pulse:
        """Take in a bare sign of life."""
        return replace(self, last=at, wall=wall)


def judge_pulse(pulse: Pulse, rule: Heartbeat, now: Instant, *, unread: str = "") -> Finding | None:
    """Say what the beats mean now; None while the first one may still come.

    `unread` says why nobody knows of newer ones: nobody is ended for that.
    """
    allowed = rule.stale_after if pulse.last is not None else max(FIRST_BEAT, rule.stale_after)
    since = pulse.began if pulse.last is None else pulse.last
    silent = max(0.0, now - since)
    missed = int(silent / allowed)
    if missed and unread:
        return Finding(health=Health.DEGRADED, why=unread.removesuffix("."))
    if missed:
        # Whoever could not be seen for a while is given the time to be seen again.
        seen = int(max(0.0, now - max(since, pulse.unseen)) / allowed)
        return _silent(pulse, rule, (missed, seen), silent)
    if pulse.last is None or unread:
        return None
    return _spoken(pulse, rule, now)


def next_look(pulse: Pulse, rule: Heartbeat, now: Instant) -> Instant:
    """Say when time alone may change what the beats mean."""
    allowed = rule.stale_after if pulse.last is not None else max(FIRST_BEAT, rule.stale_after)
    since = pulse.began if pulse.last is None else pulse.last
    missed = int(max(0.0, now - since) / allowed)
    at = since + (missed + 1) * allowed
    if pulse.moved is not None and not missed:
        stall = pulse.moved + (rule.stall_after or rule.stale_after)
        if stall > now:
            at = min(at, stall)
    return Instant(max(at, now + 0.01))


def _silent(pulse: Pulse, rule: Heartbeat, missing: tuple[int, int], silent: float) -> Finding:
    """Judge silence: by beats that are missing in all, and by those that could be seen to be."""
    missed, seen = missing
    what = "no heartbeat yet" if pulse.last is None else "no heartbeat"
    text = f"{what} for {duration_text(silent - silent % 1 if silent > 10 else silent)}"
    ends = not rule.file or rule.on_stale == "restart"
    too_many = seen >= (1 if pulse.last is None else _MISSED_BEATS)
    if ends and too_many:
        return Finding(health=Health.UNHEALTHY, why=text, code=UNRESPONSIVE)
    if missed == 1 and ends:
        return Finding(health=Health.HEALTHY, why="heartbeat late")
    return Finding(health=Health.DEGRADED, why=f"{what} for {missed} x {rule.stale_after:g} s")


def _spoken(pulse: Pulse, rule: Heartbeat, now: Instant) -> Finding:
    told = pulse.error or pulse.summary
    if pulse.error is not None:
        return Finding(health=Health.UNHEALTHY, why=f"it tells of an error: {told}")
    if pulse.status == "degraded":
        return Finding(health=Health.DEGRADED, why=told or "it calls itself degraded")
    if pulse.status and pulse.status not in GOOD_STATUSES:
        return Finding(health=Health.UNHEALTHY, why=told or f"it calls itself '{pulse.status}'")
    stall = rule.stall_after or rule.stale_after
    if pulse.moved is not None and pulse.status != "idle" and now - pulse.moved >= stall:
        text = f"its progress stands at {pulse.progress:g} for more than {duration_text(stall)}"
        return Finding(health=Health.DEGRADED, why=text)
    return Finding(health=Health.HEALTHY, why="beating")


def worst(findings: list[Finding]) -> Finding | None:
    """Give the finding that counts; the first of equals."""
    return max(findings, key=lambda each: _BADNESS[each.health], default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vital:
    """The latest signs of life of one slot, for people to look at."""

    beat_wall: float = 0.0
    said: str = ""
    answer: str = ""
