"""Has an order come true? "Done" means observed, never merely accepted (P27)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uphold.core import orders
from uphold.core.changes import at_next_run, begins_anew, restarting
from uphold.core.dependencies import longest_grace
from uphold.core.specs import EARLIEST, NEVER, Instant
from uphold.core.statuses import ALIVE, RESTING, UNKILLABLE, SlotStatus, State

if TYPE_CHECKING:
    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration, Entry
    from uphold.core.orders import Wish
    from uphold.core.specs import WorkerSpec

SETTLING: Final = 0.15
"""Seconds a process must stay up before a start somebody waits for is called done (B-72)."""

_KEEPING_DOWN: Final = (
    orders.StopWorkers | orders.PauseWorkers | orders.DisableWorkers | orders.QuarantineWorkers
)
_PATIENCE: Final = 30.0
"""Seconds that an order is waited for beyond the longest grace."""
_ERRAND: Final = 900.0
"""Seconds that an update may take besides: an install has ten minutes of its own."""


def patience(wish: Wish, declaration: Declaration) -> float:
    """Say how long whoever gave an order waits for it to come true, unless they say."""
    usual = longest_grace(declaration) + _PATIENCE
    return usual + _ERRAND if isinstance(wish, orders.Errand) else usual


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an order came to for one worker."""

    name: str
    ok: bool
    state: str
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Not yet: look again when something happens, or at this time."""

    at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """An order that stands in the declaration since this version."""

    wish: Wish
    names: tuple[str, ...]
    version: int


def outcome(
    accepted: Accepted, name: str, declaration: Declaration, observed: Observed, now: Instant
) -> Result | Pending:
    """Say what an order has come to for one of its workers."""
    entry = declaration.workers.get(name)
    if entry is None:
        found = _emptied(name, observed, "removed")
    else:
        found = _come_to(accepted, entry, observed, now)
    if not declaration.paused or isinstance(found, Result) or found.at is not None:
        return found
    known = [observed.slots[slot] for slot in observed.of(name)]
    until = max((_goes_on_until(accepted, entry, each) for each in known), default=EARLIEST)
    if until > now:
        return Pending(at=None if until == NEVER else until)
    # Nobody acts: what is not so by now does not become so either.
    return _put_off(accepted, name, observed.of(name) if entry is None else entry.slots(), observed)


def _goes_on_until(accepted: Accepted, entry: Entry | None, status: SlotStatus) -> Instant:
    """Say how long a slot may still get there by what was begun before nobody acted any more."""
    if isinstance(accepted.wish, orders.ResetWorkers):
        return EARLIEST
    if status.state is State.STOPPING:
        return NEVER if status.killed else Instant(status.since + status.grace)
    rises = status.state is State.STARTING and entry is not None and entry.wanted
    return NEVER if rises and _is_fresh(accepted, status) else EARLIEST


def _come_to(
    accepted: Accepted, entry: Entry, observed: Observed, now: Instant
) -> Result | Pending:
    name = entry.spec.name
    declared = frozenset(entry.slots())
    extra = [slot for slot in observed.of(name) if slot not in declared]
    if any(observed.slots[slot].state in ALIVE for slot in extra):
        return _unkillable(name, extra, observed) or Pending()
    if not entry.wanted:
        return _emptied(name, observed, "stopped")
    return _risen(accepted, entry, observed, now)


def _put_off(accepted: Accepted, name: str, slots: tuple[str, ...], observed: Observed) -> Result:
    state = _summary(slots, observed)
    known = [status for slot in slots if (status := observed.slots.get(slot)) is not None]
    forgiven = not any(status.failures or status.restarts for status in known)
    if isinstance(accepted.wish, orders.ResetWorkers) and forgiven:
        return Result(name=name, ok=True, state=state)  # a matter of the books alone
    return Result(
        name=name,
        ok=False,
        state=state,
        error="the supervisor is paused: the order is acted on after `uphold resume`",
    )


def _risen(accepted: Accepted, entry: Entry, observed: Observed, now: Instant) -> Result | Pending:
    name = entry.spec.name
    later: Pending | None = None
    for slot in entry.slots():
        status = observed.slots.get(slot)
        if status is None:
            return Pending()
        verdict = _slot_risen(accepted, entry, status, now)
        if isinstance(verdict, str):
            return Result(name=name, ok=False, state=str(status.state), error=verdict)
        if isinstance(verdict, Pending):
            if verdict.at is None:
                return verdict
            later = verdict
    return later or Result(name=name, ok=True, state=_summary(entry.slots(), observed))


def _slot_risen(
    accepted: Accepted, entry: Entry, status: SlotStatus, now: Instant
) -> Pending | str | None:
    """Say nothing when a slot is as ordered, else why not or that it takes time."""
    if entry.spec.schedule is not None and _back_on_schedule(accepted, status):
        return None
    if isinstance(accepted.wish, _KEEPING_DOWN) and status.state in RESTING:
        return None  # it was lifted at once: that it ever runs is no part of it
    fresh = _is_fresh(accepted, status)
    match status.state:
        case State.RUNNING if fresh and _on_its_terms(status, entry.spec):
            settled = Instant(status.since + SETTLING)
            return None if now >= settled else Pending(at=settled)
        case State.BACKOFF | State.FAILED if _honoured(accepted, status) >= accepted.version:
            return status.why if status.error is None else status.error.message
        case State.EXITED if fresh and _honoured(accepted, status) >= accepted.version:
            return None if status.error is None else status.error.message
        case State.EXITED | State.FAILED | State.BACKOFF if isinstance(
            accepted.wish, orders.Declare | orders.ScaleWorker
        ):
            return Pending() if begins_anew(status, entry.spec) else None
        case State.EXITED | State.FAILED | State.BACKOFF if isinstance(
            accepted.wish, orders.EnableWorkers | orders.ApproveWorkers
        ):
            return Pending() if entry.override.kick > status.seen else None
        case State.EXITED | State.WAITING if isinstance(accepted.wish, orders.ResetWorkers):
            return None  # its failures are forgiven, and that is all: it has not been given up
        case State.STOPPING if status.error is not None:
            return status.error.message
        case _:
            return Pending()


def _is_fresh(accepted: Accepted, status: SlotStatus) -> bool:
    """Tell whether a run is one that this order may be about: after a restart only a new one."""
    restart = isinstance(accepted.wish, orders.RestartWorkers)
    return status.started_seen >= accepted.version if restart else True


def _honoured(accepted: Accepted, status: SlotStatus) -> int:
    """Give the version up to which a slot has honoured orders such as this one."""
    reset = isinstance(accepted.wish, orders.ResetWorkers)
    return max(status.seen, status.pardoned) if reset else status.seen


def _on_its_terms(status: SlotStatus, spec: WorkerSpec) -> bool:
    """Tell whether a run goes on as it should; what the file changed may be for the next one."""
    terms = status.terms
    if terms is None or terms == spec:
        return terms == spec
    return at_next_run(terms, spec) and bool(restarting(terms, spec))


def _back_on_schedule(accepted: Accepted, status: SlotStatus) -> bool:
    """Tell whether a slot on a schedule is where it should be after this order."""
    if status.state is State.RUNNING:  # a changed file is for its next run
        return isinstance(accepted.wish, orders.Declare)
    if status.due is None or status.due.owed or status.state not in RESTING - {State.STOPPED}:
        return False
    if isinstance(accepted.wish, orders.StartWorkers | orders.RestartWorkers):
        # A start is content with the run that it found going on, also when that has ended since.
        restart = isinstance(accepted.wish, orders.RestartWorkers)
        honoured = status.started_seen if restart else status.seen
        return status.state is State.WAITING and honoured >= accepted.version
    return status.state is State.WAITING or status.seen < accepted.version


def _emptied(name: str, observed: Observed, state: str) -> Result | Pending:
    slots = observed.of(name)
    if any(observed.slots[slot].state is not State.STOPPED for slot in slots):
        return _unkillable(name, slots, observed) or Pending()
    return Result(name=name, ok=True, state=state)


def _unkillable(name: str, slots: tuple[str, ...] | list[str], observed: Observed) -> Result | None:
    for slot in slots:
        status = observed.slots[slot]
        if status.error is not None and status.error.code == UNKILLABLE:
            return Result(name=name, ok=False, state=str(status.state), error=status.error.message)
    return None


def _summary(slots: tuple[str, ...], observed: Observed) -> str:
    statuses = [observed.slots.get(slot) for slot in slots]
    states = {State.STOPPED if status is None else status.state for status in statuses}
    if len(states) == 1:
        return str(states.pop())
    return str(State.STOPPED) if not states else "mixed"
