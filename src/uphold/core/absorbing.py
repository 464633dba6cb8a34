"""How a fact changes what is known. The only place that does.

A report about an older generation changes nothing (E-05); a change of state that the
table does not allow is returned as `Illegal`, never made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import assert_never

from uphold.core import events
from uphold.core.altering import alter
from uphold.core.events import Moment, SlotFact
from uphold.core.names import worker_of
from uphold.core.restarts import comes_back, failures_after, succeeded, was_stable
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import (
    ALIVE,
    RESTING,
    TRANSITIONS,
    UNKILLABLE,
    Exit,
    Fault,
    Finding,
    Health,
    SlotStatus,
    State,
)

LONGEST_EXTENSION = 600.0
"""Seconds that a worker may ask for at a time; it may ask again."""
_BETWEEN_RUNS = (State.BACKOFF, State.WAITING)
Changes = dict[str, object]
"""Fields of a `SlotStatus` and what they become; made a new status in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Illegal:
    """A fact that does not fit what is known; reported as an error event."""

    slot: str
    before: State
    after: State
    fact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All slots that are known, and which worker each belongs to."""

    slots: MappingProxyType[str, SlotStatus] = field(default_factory=lambda: MappingProxyType({}))
    by_worker: MappingProxyType[str, tuple[str, ...]] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def of(self, worker: str) -> tuple[str, ...]:
        """Name the known slots of a worker."""
        return self.by_worker.get(worker, ())

    def with_changes(self, changed: Iterable[SlotStatus], forgotten: Iterable[str]) -> Observed:
        """Give the same with these slots replaced and those dropped."""
        slots = self.slots.copy()  # of a view, `dict` would look every key up
        by_worker: dict[str, tuple[str, ...]] | None = None
        for status in changed:
            if status.slot not in slots:
                by_worker = self.by_worker.copy() if by_worker is None else by_worker
                owner = worker_of(status.slot)
                by_worker[owner] = (*by_worker.get(owner, ()), status.slot)
            slots[status.slot] = status
        for slot in forgotten:
            if slots.pop(slot, None) is None:
                continue
            by_worker = self.by_worker.copy() if by_worker is None else by_worker
            owner = worker_of(slot)
            left = tuple(name for name in by_worker.get(owner, ()) if name != slot)
            if left:
                by_worker[owner] = left
            else:
                by_worker.pop(owner, None)
        return Observed(
            slots=MappingProxyType(slots),
            by_worker=self.by_worker if by_worker is None else MappingProxyType(by_worker),
        )


def absorb(status: SlotStatus, fact: SlotFact, at: Moment, seen: int) -> SlotStatus | Illegal:
    """Say what is known after this fact. `seen` is the current version of the declaration."""
    changes = {} if _is_late(status, fact) else _changes(status, fact, at)
    if not changes:
        return status
    if isinstance(fact, events.Pardoned) and status.aborting:
        changes["pardoned"] = seen  # the end that follows is not forgiven with what came before it
    before, after = status.state, changes.get("state", status.state)
    if after is before:
        return alter(status, **changes)
    assert isinstance(after, State)
    if after not in TRANSITIONS[before]:
        return Illegal(slot=status.slot, before=before, after=after, fact=type(fact).__name__)
    left_over = before is State.STOPPING and not status.stop_asked and after in RESTING
    if left_over or (before in _BETWEEN_RUNS and after is State.EXITED):
        # Its run ended when its main process did: what was ordered since is still to be honoured.
        seen = status.seen
    return alter(status, **changes, since=at.mono, since_wall=at.wall, seen=seen)


def _is_late(status: SlotStatus, fact: SlotFact) -> bool:
    generation = getattr(fact, "generation", None)
    if generation is None:
        return False
    if isinstance(fact, events.StartBegun):
        return bool(generation <= status.generation)
    return bool(generation < status.generation)


def _changes(  # noqa: C901, PLR0912 - one arm for each fact
    status: SlotStatus, fact: SlotFact, at: Moment
) -> Changes:
    """Say which fields change; none at all when the fact is no news."""
    match fact:
        case events.StartBegun():
            return _begun(status, fact)
        case events.Started() | events.Adopted():
            return _up(status, fact, at)
        case events.StartFailed():
            return _not_started(status, fact)
        case events.Exited():
            return _exited(status, fact, at)
        case events.Gone():
            return _gone(status, fact, at)
        case events.StopBegun():
            return _stopping(status, fact, at)
        case events.KillBegun():
            return {"killed": True, "error": None}
        case events.StopFailed():
            return _not_stopped(status, fact, at)
        case events.WaitBegun():
            failures = 0 if fact.afresh else status.failures
            due = fact.due or status.due
            return {"state": State.WAITING, "failures": failures, "why": fact.why, "due": due}
        case events.GaveUp():
            return {"state": State.FAILED, "why": fact.why}
        case events.Rested():
            return _rested(fact.why)
        case events.Pardoned():
            # What goes wrong with a stop under way is not forgiven by forgetting it.
            error = status.error if status.state is State.STOPPING else None
            calm: Changes = {"failures": 0, "restarts": 0, "hopeless": False, "error": error}
            ended = status.state in (State.FAILED, State.BACKOFF)
            return calm | _rested("reset") if ended else calm
        case events.Amended() if status.state in _BETWEEN_RUNS:
            return _left_ended(status, fact.terms)
        case events.Amended():
            return _amended(status, fact.terms)
        case events.Appointed() | events.Skipped():
            return {"due": fact.due}
        case events.Forgotten():
            return {}
        case events.Ready() | events.Sickened() | events.Condemned() | events.Recovered():
            return _judged(status, fact)
        case events.Extended():
            return _extended(status, fact, at)
        case events.AbortBegun():
            return {"state": State.STOPPING, "stop_asked": False, "killed": False, "why": fact.why}
        case _:
            assert_never(fact)


def _begun(status: SlotStatus, fact: events.StartBegun) -> Changes:
    return {
        "state": State.STARTING,
        "generation": fact.generation,
        "nonce": fact.nonce,
        "identity": None,
        "terms": fact.terms,
        "started_seen": fact.seen,
        "restarts": status.restarts + (1 if fact.automatic else 0),
        "failures": status.failures if fact.automatic else 0,
        "stop_asked": False,
        "killed": False,
        "hopeless": False,
        "exit": None,
        "finding": None,
        "due": fact.due or status.due,
        "why": fact.why,
    }


def _extended(status: SlotStatus, fact: events.Extended, at: Moment) -> Changes:
    """Move the end of its grace, never nearer and never without end."""
    if status.state is not State.STOPPING or not status.stop_asked or status.terms is None:
        return {}
    until = at.mono + min(fact.seconds, LONGEST_EXTENSION)
    since = Instant(until - status.terms.stop.grace)
    return {"since": since} if since > status.since and not status.killed else {}


def _amended(status: SlotStatus, terms: WorkerSpec) -> Changes:
    changes: Changes = {"terms": terms}
    if _is_void(status, terms):
        changes["finding"] = None
    if status.state is State.STARTING and status.identity is not None and terms.ready is None:
        changes |= {"state": State.RUNNING, "why": "its readiness is not asked for"}
    return changes


def _left_ended(status: SlotStatus, terms: WorkerSpec) -> Changes:
    """Let its last end be the last: its terms want no other run after that any more."""
    # Of a job on a schedule only the try is given up, not its next run.
    due = None if status.due is None else alter(status.due, owed=False)
    changes: Changes = {"terms": terms, "state": State.EXITED, "due": due}
    if status.state is State.WAITING and status.exit is not None:
        # What it waited for does not matter any more; how it ended does.
        failed = status.error
        changes["why"] = describe_exit(status.exit) if failed is None else failed.message
    return changes


def _is_void(status: SlotStatus, terms: WorkerSpec) -> bool:
    """Tell whether its trouble was found by questions that are put otherwise from now on.

    Nobody else would ever take it back. What came of those that stay the same is told again.
    """
    found, before = status.finding, status.terms
    if found is None or found.code or found.health is Health.HEALTHY:
        return False
    if terms.remote or (found.named and any(_questions(terms))):
        return False  # whoever told of it is still heard, and says when it is over
    return before is None or _questions(before) != _questions(terms)


def _questions(terms: WorkerSpec) -> tuple[object, ...]:
    return terms.ready, terms.live, terms.heartbeat


def _judged(
    status: SlotStatus,
    fact: events.Ready | events.Sickened | events.Condemned | events.Recovered,
) -> Changes:
    """Take in what a probe or a heartbeat says; it is about a run, and only while that goes on."""
    if status.state not in (State.STARTING, State.RUNNING) or status.identity is None:
        return {}
    match fact:
        case events.Ready():
            well = Finding(health=Health.HEALTHY, why=fact.why)
            if status.state is State.RUNNING:
                return {} if status.finding == well else {"finding": well}
            return {"state": State.RUNNING, "finding": well, "error": None, "why": fact.why}
        case events.Sickened():
            found = Finding(health=fact.health, why=fact.why, named=fact.code)
        case events.Condemned():
            found = Finding(health=Health.UNHEALTHY, why=fact.why, code=fact.code)
        case events.Recovered():
            found = Finding(health=Health.HEALTHY, why=fact.why)
        case _:
            assert_never(fact)
    return {} if status.finding == found else {"finding": found}


def _up(status: SlotStatus, fact: events.Started | events.Adopted, at: Moment) -> Changes:
    adopted = isinstance(fact, events.Adopted)
    # A run goes on when it names another process as its main one: it did not begin anew.
    same_run = status.generation == fact.generation and status.nonce == fact.identity.nonce
    first_sight = status.identity is None or not same_run
    # A stop that was begun goes on when its process turns up late; a stop that a dead
    # supervisor had begun is begun anew, since nobody knows whether its signal was sent.
    stays = status.state is State.STOPPING and not adopted
    # One that was ready before its supervisor died is not asked to be so again.
    # Nor is one whose descriptor for saying so was lost with that supervisor.
    by_descriptor = status.terms is not None and status.terms.ready_way == "fd"
    lost = by_descriptor and isinstance(fact, events.Adopted) and not fact.named
    was_ready = adopted and (status.state in (State.RUNNING, State.STOPPING) or lost)
    awaited = status.terms is not None and status.terms.ready is not None and not was_ready
    up = State.STARTING if awaited else State.RUNNING
    return {
        "state": State.STOPPING if stays else up,
        "generation": fact.generation,
        "nonce": fact.identity.nonce,
        "identity": fact.identity,
        "started_at": at.mono if first_sight else status.started_at,
        "started_wall": at.wall if first_sight else status.started_wall,
        "proved_wall": at.wall,
        # What the books tell of an earlier run, its end or how it did, is not about this one.
        "exit": None if first_sight else status.exit,
        "finding": None if first_sight else status.finding,
        "error": None,
        "stop_asked": status.stop_asked and stays,
        "killed": False,
        "why": "adopted" if adopted else "up, and not ready yet" if awaited else status.why,
    }


def _not_started(status: SlotStatus, fact: events.StartFailed) -> Changes:
    if status.identity is not None:
        return {}  # it is up, whatever its driver says afterwards; its end is told by itself
    if status.state is State.STOPPING or status.stop_asked:
        return {"state": State.STOPPED, "identity": None, "error": fact.fault}
    if status.state is not State.STARTING:
        return {}
    return {
        "state": State.BACKOFF,
        "identity": None,
        "failures": status.failures + 1,
        "hopeless": fact.hopeless,
        "error": fact.fault,
        "why": fact.fault.message,
    }


def _stopping(status: SlotStatus, fact: events.StopBegun, at: Moment) -> Changes:
    # A run that was put off is not wanted any more, unless it is what this stop is for.
    due = fact.due or (None if status.due is None else alter(status.due, owed=False))
    stable = status.terms is not None and was_stable(status, at.mono, status.terms)
    # What went wrong before is no trouble of this stop.
    return {
        "state": State.STOPPING,
        "stop_asked": True,
        "killed": False,
        "hopeless": False,
        "failures": 0 if fact.forgives or stable else status.failures,
        "error": None,
        "due": due,
        "why": fact.why,
    }


def _not_stopped(status: SlotStatus, fact: events.StopFailed, at: Moment) -> Changes:
    survived = fact.fault.code == UNKILLABLE
    changes: Changes = {"error": fact.fault, "killed": status.killed or survived}
    if status.killed and not survived:
        # Nobody has sent that SIGKILL: the next try is counted from here.
        changes["since"] = at.mono
    return changes


def _exited(status: SlotStatus, fact: events.Exited, at: Moment) -> Changes:
    if status.state not in ALIVE:
        return {}
    if status.state is State.STOPPING and not status.stop_asked:
        if status.exit is not None:
            return {}  # told before: until it is gone, what it left behind is being ended
        return {"exit": fact.exit, "proved_wall": at.wall}
    ended: Changes = {"exit": fact.exit, "proved_wall": at.wall}
    if status.stop_asked:
        return ended
    if fact.left_overs:
        why = "its main process ended; what it left behind is being ended"
        return {**ended, "state": State.STOPPING, "killed": True, "why": why}
    return {**ended, **_ended(status, fact.exit, at.mono)}


def _gone(status: SlotStatus, fact: events.Gone, at: Moment) -> Changes:
    if status.state not in ALIVE:
        return {"identity": None}
    end = fact.exit
    if end is None:
        # In a stop the exit came before; otherwise nobody saw how it ended.
        known = status.state is State.STOPPING and status.exit is not None
        end = status.exit if known else Exit(code=None, signal=None, at=at.wall)
    assert end is not None
    if status.stop_asked:
        return {
            "state": State.STOPPED,
            "identity": None,
            "exit": end,
            "error": None,
        }
    # The run was over when its main process ended: what that left behind makes it no longer.
    over = status.since if status.state is State.STOPPING else at.mono
    return {"exit": end, **_ended(status, end, over)}


def _ended(status: SlotStatus, end: Exit, at: Instant) -> Changes:
    terms = status.terms
    lasted = max(0.0, at - status.started_at) if status.identity is not None else 0.0
    text = f"{describe_exit(end)} after {duration_text(lasted)}"
    found = status.finding
    if found is not None and found.code:
        # However it took its end: it was ended because it did badly.
        text = f"was unhealthy ({found.why}) and {text}"
        end = Exit(code=None, signal=end.signal, at=end.at)
    elif found is not None and found.health is Health.UNHEALTHY:
        text = f"{text}: {found.why}"
    well = terms is not None and succeeded(end, terms)
    code = (found.code or found.named) if found is not None else ""
    error = None if well else Fault(code=code or "UPH_WORKER_EXITED", message=text)
    if terms is None or not comes_back(end, terms):
        return {"state": State.EXITED, "identity": None, "error": error, "why": text}
    return {
        "state": State.BACKOFF,
        "failures": failures_after(status, at, terms),
        "identity": None,
        "error": error,
        "why": text,
    }


def _rested(why: str) -> Changes:
    return {
        "state": State.STOPPED,
        "failures": 0,
        "hopeless": False,
        "error": None,
        "why": why,
    }


def describe_exit(end: Exit) -> str:
    """Say in words how a process ended."""
    if end.signal is not None:
        return f"ended by signal {end.signal}"
    if end.code is not None:
        return f"exited with code {end.code}"
    return "ended unseen (exit status unknown)"


def duration_text(seconds: float) -> str:
    """Write a duration for people: `0.2 s`, `12 s`, `4 min`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    if hours < 48:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
