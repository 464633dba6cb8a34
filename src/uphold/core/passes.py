"""A single pass: when everything it began has come to something, and how it found the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uphold.core.absorbing import duration_text
from uphold.core.dependencies import longest_grace, unmet
from uphold.core.health import slot_health, trouble
from uphold.core.names import is_companion, worker_of
from uphold.core.outcomes import SETTLING
from uphold.core.specs import Instant
from uphold.core.statuses import ALIVE, UNKILLABLE, Admin, Health, SlotStatus, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration, Entry
    from uphold.core.vitals import Vital

START_TIMEOUT: Final = 60.0
"""Seconds after its start in which a worker is starting, and not yet to be blamed (ruling 24)."""
START_PATIENCE: Final = 10.0
"""Seconds that a pass waits for those it has started to be ready: others may wait for them."""
_MARGIN: Final = 15.0
_SAID: Final = frozenset({"notify", "fd"})
"""Ways of getting ready that nobody hears between two passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """How a pass found one worker."""

    name: str
    running: bool
    healthy: bool
    state: str
    """The state of its slots; `mixed` if they differ."""
    heartbeat: str
    """`good`, `stale`, or `none` where it gives none."""
    last_heartbeat: float
    """Wall time of its last sign of life; 0 if there was none."""
    wanted: bool
    """It shall run, all things considered; one that shall not is no problem."""
    paused: bool
    """Somebody holds it down."""
    starting: bool
    """It was started so recently that nobody blames it yet."""
    problem: str | None
    """What is wrong with it, in a sentence; None if it is as it should be."""


def unsettled(tried: Collection[str], observed: Observed, now: Instant) -> tuple[str, ...]:
    """Name the slots that have not come to something; `tried` are those started in this pass."""
    return tuple(
        slot
        for slot, status in observed.slots.items()
        if _is_awaited(status, now, started=slot in tried)
    )


def longest_pass(declaration: Declaration) -> float:
    """Say how many seconds a pass may wait for what it has begun, whatever workers do."""
    return longest_grace(declaration) + START_PATIENCE + _MARGIN


def examine(
    declaration: Declaration,
    observed: Observed,
    now: Instant,
    *,
    vitals: Mapping[str, Vital],
    names: Iterable[str] | None = None,
) -> tuple[Check, ...]:
    """Say how these workers do (all that are declared unless said), uphold's own left out."""
    chosen = declaration.workers if names is None else names
    return tuple(
        _check(declaration.workers[name], declaration, observed, now, vitals)
        for name in chosen
        if not is_companion(name)
    )


def left_behind(declaration: Declaration, observed: Observed) -> Iterator[str]:
    """Tell of slots that nobody wants any more and that could not be ended."""
    for slot, status in observed.slots.items():
        entry = declaration.workers.get(worker_of(slot))
        wanted = entry is not None and entry.wanted and slot in entry.slots()
        if not wanted and status.state is State.STOPPING and status.error is not None:
            yield f"{slot} could not be stopped: {status.error.message}"


def _is_awaited(status: SlotStatus, now: Instant, *, started: bool) -> bool:
    if is_companion(status.slot):
        return False
    match status.state:
        case State.STOPPING:  # its grace, and what follows, is the planner's business
            return status.error is None or status.error.code != UNKILLABLE
        case State.STARTING if status.identity is None:
            return now < status.since + START_PATIENCE
        case State.STARTING if started:
            return now < status.started_at + START_PATIENCE
        case State.RUNNING if started:
            return now < status.started_at + SETTLING
        case _:
            return False


def _check(
    entry: Entry,
    declaration: Declaration,
    observed: Observed,
    now: Instant,
    vitals: Mapping[str, Vital],
) -> Check:
    name = entry.spec.name
    slots = entry.slots() or observed.of(name)
    statuses = [observed.slots.get(slot) or SlotStatus(slot=slot) for slot in slots]
    states = {str(status.state) for status in statuses} or {str(State.STOPPED)}
    held = not entry.wanted or (declaration.paused and not _lives(statuses))
    problems = (
        [] if held else [_wrong(each, entry, declaration, observed, now) for each in statuses]
    )
    starting = not held and any(_is_young(status, now) for status in statuses)
    problem = next((each for each in problems if each is not None), None)
    running = bool(statuses) and all(_is_up(status) for status in statuses)
    beats = [beat for slot in slots if (beat := _beat_of(vitals.get(slot)))]
    return Check(
        name=name,
        running=running,
        healthy=running and problem is None and not starting and _is_well(statuses),
        state=states.pop() if len(states) == 1 else "mixed",
        heartbeat=_heartbeat(entry, statuses),
        last_heartbeat=min(beats, default=0.0),
        wanted=not held,
        paused=entry.admin is Admin.PAUSED or (declaration.paused and held),
        starting=starting,
        problem=problem,
    )


def _wrong(
    status: SlotStatus, entry: Entry, declaration: Declaration, observed: Observed, now: Instant
) -> str | None:
    """Say what is wrong with a slot that shall run."""
    slot = status.slot
    fault = trouble(status)
    match status.state:
        case State.RUNNING:
            well = slot_health(status) in (Health.HEALTHY, Health.UNKNOWN)
            if well or _is_young(status, now):
                return None
            return f"{slot} is {slot_health(status)}: {'' if fault is None else fault.message}"
        case State.STARTING:
            said = entry.spec.ready_way in _SAID and status.identity is not None
            if said or _is_young(status, now):
                return None
            return f"{slot} is not ready after {duration_text(now - status.started_at)}"
        case State.WAITING if entry.spec.schedule is not None:
            return None if fault is None else f"the last run of {slot} failed: {fault.message}"
        case State.WAITING:
            return _in_vain(status, entry, declaration, observed, now)
        case State.EXITED:
            return None if fault is None else f"{slot} has ended: {fault.message}"
        case State.STOPPING:
            return f"{slot} is still stopping" + ("" if fault is None else f": {fault.message}")
        case _:
            return f"{slot} is {status.state}: {status.why or 'it was not started'}"


def _in_vain(
    status: SlotStatus, entry: Entry, declaration: Declaration, observed: Observed, now: Instant
) -> str | None:
    """Say whether a slot waits for somebody who will not come; who is held or starting may."""
    for name, _ in entry.spec.depends_on:
        other = declaration.workers.get(name)
        if other is None:
            break
        if not other.wanted:
            return None
        slots = (observed.slots.get(slot) for slot in other.slots())
        if any(each is not None and _is_young(each, now) for each in slots):
            return None
    missing = unmet(entry, declaration, observed)
    return f"{status.slot} waits for {missing}" if missing else f"{status.slot} was not started"


def _lives(statuses: list[SlotStatus]) -> bool:
    return any(status.state in ALIVE for status in statuses)


def _is_up(status: SlotStatus) -> bool:
    return status.state in (State.STARTING, State.RUNNING) and status.identity is not None


def _is_well(statuses: list[SlotStatus]) -> bool:
    return all(slot_health(status) in (Health.HEALTHY, Health.UNKNOWN) for status in statuses)


def _is_young(status: SlotStatus, now: Instant) -> bool:
    """Tell whether a start is so recent that it may still become something."""
    if status.state is State.STARTING:
        since = status.since if status.identity is None else status.started_at
        return now < since + START_TIMEOUT
    young = now < status.started_at + START_TIMEOUT
    return status.state is State.RUNNING and young and slot_health(status) is not Health.HEALTHY


def _heartbeat(entry: Entry, statuses: list[SlotStatus]) -> str:
    if entry.spec.heartbeat is None and not entry.spec.remote:
        return "none"
    if not statuses or not all(_is_up(status) for status in statuses):
        return "none"
    findings = [status.finding for status in statuses]
    if any(found is not None and "no heartbeat" in found.why for found in findings):
        return "stale"
    return "good" if all(found is not None for found in findings) else "none"


def _beat_of(vital: Vital | None) -> float:
    return 0.0 if vital is None else vital.beat_wall
