"""The only place that decides.

`plan` compares what is wanted with what is known and says what to do now and when to
look again. At most one action per slot; a slot with an action under way gets none until
its fact arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from uphold.core.actions import (
    Abort,
    Action,
    Amend,
    Forget,
    GiveUp,
    Kill,
    Pardon,
    Plan,
    Rest,
    Start,
    Stop,
    Wait,
)
from uphold.core.altering import alter
from uphold.core.changes import asked_again, at_next_run, outgrown
from uphold.core.dependencies import dependents, still_leaning, unmet
from uphold.core.events import Moment
from uphold.core.names import is_companion, worker_of
from uphold.core.overrides import reason
from uphold.core.restarts import due, exhausted, still_comes_back, tries_again
from uphold.core.schedules import (
    Run,
    after_retry,
    after_start,
    plan_at_rest,
    plan_running,
    too_late_at,
)
from uphold.core.specs import NEVER, Instant, WorkerSpec
from uphold.core.statuses import ALIVE, DRIVER_FAILED, Admin, SlotStatus, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration, Entry
    from uphold.core.specs import Schedule
    from uphold.core.statuses import Due

    Verdict = Action | Instant | None
    """What to do, or when to look again, or neither."""

_AFTER_A_FAILED_KILL: Final = 5.0
_CLOSING: Final = "the supervisor is stopping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything a decision about one slot may look at."""

    declaration: Declaration
    observed: Observed
    now: Instant
    wall: float
    """The clock on the wall; only schedules go by it."""
    after: Mapping[str, tuple[str, ...]]
    """Who depends on whom."""


def plan(  # noqa: PLR0913 - both clocks, and two ways to do less
    declaration: Declaration,
    observed: Observed,
    now: Instant,
    *,
    wall: float = 0.0,
    names: Iterable[str] | None = None,
    after: Mapping[str, tuple[str, ...]] | None = None,
) -> Plan:
    """Decide the next actions for these workers (all of them unless said)."""
    if declaration.closing == "keep":
        return Plan(at=now)
    suspended = declaration.paused and declaration.closing is None
    situation = Situation(
        declaration=declaration,
        observed=observed,
        now=now,
        wall=wall,
        after=dependents(declaration.workers, observed) if after is None else after,
    )
    actions: list[Action] = []
    wakes: list[tuple[str, Instant]] = []
    for name in _everybody(declaration, observed) if names is None else names:
        wake_at = NEVER
        for verdict in plan_worker(name, situation):
            if verdict is None:
                continue
            if suspended and not isinstance(verdict, Pardon):
                continue  # a reset is about the books alone, and must not get lost meanwhile
            if isinstance(verdict, int | float):  # whole seconds may come without a point
                wake_at = min(wake_at, verdict)
            else:
                actions.append(verdict)
        if wake_at is not NEVER:
            wakes.append((name, wake_at))
    return Plan(at=now, actions=tuple(actions), wakes=tuple(wakes))


def plan_worker(name: str, situation: Situation) -> Iterable[Verdict]:
    """Decide about every slot of one worker."""
    entry = situation.declaration.workers.get(name)
    known = situation.observed.slots
    wanted = entry is not None and situation.declaration.closing != "stop" and entry.wanted
    declared = {} if entry is None else dict.fromkeys(entry.slots())
    for slot in declared:
        status = known.get(slot)
        if entry is not None and wanted:
            yield _plan_wanted(entry, status or SlotStatus(slot=slot), situation)
        elif status is not None:
            yield _plan_unwanted(status, entry, situation, declared=True)
    for slot in situation.observed.of(name):
        if slot not in declared:
            yield _plan_unwanted(known[slot], entry, situation, declared=False)


def _plan_wanted(entry: Entry, status: SlotStatus, situation: Situation) -> Verdict:
    spec = entry.spec
    match status.state:
        case State.STOPPED | State.WAITING:
            return _plan_resting(entry, status, situation)
        case State.BACKOFF:
            return _plan_backoff(entry, status, situation)
        case State.EXITED | State.FAILED:
            return _plan_ended(entry, status, situation)
        case State.STARTING:
            # Without a process the start itself is under way; with one it is not ready yet.
            if status.identity is None:
                return _pardon(entry, status)
            return _plan_running(entry, status, spec)
        case State.RUNNING:
            return _plan_running(entry, status, spec) or _plan_next_run(entry, status, situation)
        case State.STOPPING:
            return _pardon(entry, status) or _escalate(status, situation)
        case _:
            assert_never(status.state)


def _pardon(entry: Entry | None, status: SlotStatus) -> Verdict:
    """Forgive the failures of a slot that somebody reset, whatever else is to become of it."""
    if entry is None or not _is_reset(entry, status):
        return None
    # What goes wrong with a stop under way is not forgiven by forgetting it.
    blamed = status.error is not None and status.state is not State.STOPPING
    # Of an abort even a reset that has nothing to forgive is noted: its end comes after that.
    if not (blamed or status.failures or status.restarts or status.aborting):
        return None
    return Pardon(slot=status.slot, why=reason(entry.override, "pardon"))


def _is_reset(entry: Entry, status: SlotStatus) -> bool:
    return entry.override.pardon > max(status.seen, status.pardoned)


def _plan_resting(entry: Entry, status: SlotStatus, situation: Situation) -> Verdict:
    if (pardon := _pardon(entry, status)) is not None:
        return pardon
    # What waits in the middle of a series of failures, or was stopped in it because the
    # supervisor ended (P8), is forgiven them only when asked for.
    asked = asked_again(entry, status) is not None
    # The first start by a new supervisor is no other try, whatever came before its stop.
    again = not asked and tries_again(status) and not status.stop_asked
    if again and not still_comes_back(status, entry.spec):
        return _leave_ended(status, entry.spec)
    if entry.spec.schedule is not None and not asked:
        return _plan_scheduled(entry.spec.schedule, entry, status, situation)
    return _start(entry, status, situation, _reason_to_start(entry, status), afresh=asked)


def _reason_to_start(entry: Entry, status: SlotStatus) -> str:
    if entry.override.nudge > status.started_seen > 0:
        return reason(entry.override, "nudge")
    if entry.override.kick > status.seen:
        return reason(entry.override, "kick")
    return "declared"


def _start(  # noqa: PLR0913 - the last two say on whose account
    entry: Entry,
    status: SlotStatus,
    situation: Situation,
    why: str,
    *,
    afresh: bool = True,
    owed: bool = False,
) -> Verdict:
    missing = unmet(entry, situation.declaration, situation.observed)
    due = _due_after(entry, status, situation, afresh=afresh)
    if missing is None:
        automatic = status.failures > 0 and not afresh
        return Start(slot=status.slot, spec=entry.spec, why=why, automatic=automatic, due=due)
    waiting_for = f"waits for {missing}"
    forgiven = afresh and status.failures > 0
    if status.state is State.WAITING and status.why == waiting_for and not forgiven:
        return None
    owed = owed or asked_again(entry, status) is not None
    later = alter(due, owed=True) if due is not None and owed else None
    return Wait(slot=status.slot, why=waiting_for, afresh=forgiven, due=later)


def _due_after(
    entry: Entry, status: SlotStatus, situation: Situation, *, afresh: bool
) -> Due | None:
    """Decide the run that follows one which is started now, if it is on a schedule."""
    schedule = entry.spec.schedule
    if schedule is None:
        return None
    decide = after_start if afresh else after_retry
    return decide(schedule, _moment(situation), status.due, status.started_wall)


def _plan_scheduled(
    schedule: Schedule, entry: Entry, status: SlotStatus, situation: Situation
) -> Verdict:
    now, due = _moment(situation), status.due
    verdict = plan_at_rest(schedule, status, now)
    if not isinstance(verdict, Run):
        return verdict
    # A run that is to be tried again, and had to wait for that, goes on counting.
    afresh = not tries_again(status)
    step = _start(entry, status, situation, verdict.why, afresh=afresh, owed=verdict.owed)
    if step is None and due is not None and not due.owed:
        return too_late_at(schedule, due, now)
    return step


def _plan_next_run(entry: Entry, status: SlotStatus, situation: Situation) -> Verdict:
    schedule = entry.spec.schedule
    return None if schedule is None else plan_running(schedule, status, _moment(situation))


def _moment(situation: Situation) -> Moment:
    return Moment(mono=situation.now, wall=situation.wall)


def _plan_backoff(entry: Entry, status: SlotStatus, situation: Situation) -> Verdict:
    spec = entry.spec
    if _is_reset(entry, status):
        return Pardon(slot=status.slot, why=reason(entry.override, "pardon"))
    again = asked_again(entry, status)
    if again is not None:
        return _start(entry, status, situation, again, afresh=True)
    soonest = NEVER
    if spec.schedule is not None:  # its next run need not wait for the end of a back-off
        next_run = _plan_scheduled(spec.schedule, entry, status, situation)
        if not isinstance(next_run, int | float):
            return next_run
        soonest = Instant(next_run)
    if not still_comes_back(status, spec):
        return _leave_ended(status, spec)
    if exhausted(status, spec):
        return GiveUp(slot=status.slot, why=_why_given_up(status))
    at = due(status, spec)
    if at > situation.now:
        return min(at, soonest)
    why = f"restart after it {status.why}"
    return _start(entry, status, situation, why, afresh=False, owed=True)


def _leave_ended(status: SlotStatus, spec: WorkerSpec) -> Amend:
    return Amend(slot=status.slot, spec=spec, why=f"restart = {spec.restart}")


def _why_given_up(status: SlotStatus) -> str:
    if status.hopeless:
        return status.why
    runs = "1 failed run" if status.failures == 1 else f"{status.failures} failed runs"
    return f"gave up after {runs}; the last one {status.why}"


def _plan_ended(entry: Entry, status: SlotStatus, situation: Situation) -> Verdict:
    if (pardon := _pardon(entry, status)) is not None:
        return pardon
    again = asked_again(entry, status)
    if again is None and entry.spec.schedule is not None:
        return _plan_scheduled(entry.spec.schedule, entry, status, situation)
    return None if again is None else _start(entry, status, situation, again, afresh=True)


def _plan_running(entry: Entry, status: SlotStatus, spec: WorkerSpec) -> Verdict:
    # A reset comes first: once the run is being ended, there is nothing left that it is about.
    if (pardon := _pardon(entry, status)) is not None:
        return pardon
    if entry.override.nudge > status.started_seen:
        return Stop(slot=status.slot, why=reason(entry.override, "nudge"))
    if status.finding is not None and status.finding.code:
        return Abort(slot=status.slot, why=status.finding.why)
    if status.terms is spec or status.terms == spec:
        return None
    if status.terms is None:  # found alive without books: taken to be as declared from now on
        return Amend(slot=status.slot, spec=spec, why="found alive; its terms were lost")
    keys = outgrown(status, spec)
    if keys and at_next_run(status.terms, spec):
        return None
    if keys:
        return Stop(slot=status.slot, why=f"changed: {', '.join(keys)}")
    return Amend(slot=status.slot, spec=spec, why="applies in place")


def _plan_unwanted(
    status: SlotStatus, entry: Entry | None, situation: Situation, *, declared: bool
) -> Verdict:
    match status.state:
        case State.STOPPED if declared:
            return _pardon(entry, status)
        case State.STOPPED:
            return Forget(slot=status.slot, why="no longer declared")
        case State.WAITING | State.BACKOFF | State.EXITED | State.FAILED:
            failed = status.state in (State.BACKOFF, State.FAILED)
            if failed and situation.declaration.closing is not None:
                return None  # failures outlive a restart of the supervisor (P8)
            why = _why_unwanted(entry, declared=declared)
            if not status.generation:
                return Rest(slot=status.slot, why=why)
            # What ever ran is stopped, not just noted: "stopped" is only said when verified (P3).
            # What waits may be in the middle of a series; what has ended for good is in none.
            counts = status.state is State.WAITING and _goes_on_counting(entry, situation)
            return Stop(slot=status.slot, why=why, forgives=not counts)
        case State.STARTING | State.RUNNING:
            # A reset comes first: once the stop has begun, it would be about nothing.
            return _pardon(entry, status) or _stop_in_order(
                status, entry, situation, declared=declared
            )
        case State.STOPPING:
            return _pardon(entry, status) or _escalate(status, situation)
        case _:
            assert_never(status.state)


def _stop_in_order(
    status: SlotStatus, entry: Entry | None, situation: Situation, *, declared: bool
) -> Verdict:
    name = worker_of(status.slot)
    if is_companion(name) and situation.declaration.closing == "stop":
        if _others_alive(situation.observed):
            return None  # it is asked again with every slot that ends
    elif still_leaning(situation.after.get(name, ()), situation.declaration, situation.observed):
        return None
    if situation.declaration.closing == "stop":
        forgives = not _goes_on_counting(entry, situation)
        return Stop(slot=status.slot, why=_CLOSING, forgives=forgives)
    return Stop(slot=status.slot, why=_why_unwanted(entry, declared=declared))


def _goes_on_counting(entry: Entry | None, situation: Situation) -> bool:
    """Tell whether a slot is stopped although nobody minds it: only the supervisor ends."""
    return situation.declaration.closing == "stop" and entry is not None and entry.wanted


def _others_alive(observed: Observed) -> bool:
    return any(
        status.state in ALIVE and not is_companion(slot) for slot, status in observed.slots.items()
    )


def _escalate(status: SlotStatus, situation: Situation) -> Verdict:
    if status.killed:
        return _kill_again(status, situation)
    grace = 0.0 if situation.declaration.hurried else status.grace
    over = Instant(status.since + grace)
    if situation.now < over:
        return over
    return Kill(slot=status.slot, why=f"still there {grace:g} s after it was asked to stop")


def _kill_again(status: SlotStatus, situation: Situation) -> Verdict:
    """Try once more what the driver did not carry out; what survived SIGKILL is its business."""
    if status.error is None or status.error.code != DRIVER_FAILED:
        return None
    at = Instant(status.since + _AFTER_A_FAILED_KILL)
    if situation.now < at:
        return at
    return Kill(slot=status.slot, why=f"could not be killed before: {status.error.message}")


def _why_unwanted(entry: Entry | None, *, declared: bool) -> str:
    if entry is None:
        return "no longer declared"
    if not declared:
        return f"scaled to {entry.replicas}"
    if entry.ordered_down:
        return entry.ordered_down
    if entry.admin is not Admin.ENABLED:
        return str(entry.admin)
    if not entry.up:
        return "not wanted"
    if entry.override.withheld:
        return "kept down while what it runs from is changed"
    return _CLOSING


def _everybody(declaration: Declaration, observed: Observed) -> Iterable[str]:
    yield from declaration.workers
    for name in observed.by_worker:
        if name not in declaration.workers:
            yield name
