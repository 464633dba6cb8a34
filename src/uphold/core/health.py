"""How well things are: one slot, one worker, the whole supervisor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uphold.core.names import is_companion, slot_index, worker_of
from uphold.core.statuses import Admin, Condition, Fault, Health, SlotStatus, State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration

_BY_STATE: Final = {
    State.STOPPED: Health.UNKNOWN,
    State.WAITING: Health.UNKNOWN,
    State.STARTING: Health.UNKNOWN,
    State.RUNNING: Health.HEALTHY,
    State.STOPPING: Health.UNKNOWN,
    State.BACKOFF: Health.UNHEALTHY,
    State.EXITED: Health.UNKNOWN,
    State.FAILED: Health.UNHEALTHY,
}

_SICK: Final = {
    Health.DEGRADED: "UPH_WORKER_DEGRADED",
    Health.UNHEALTHY: "UPH_WORKER_UNHEALTHY",
}
"""How badly a live worker may do, and the code that says so."""


def slot_health(status: SlotStatus) -> Health:
    """Say how a slot does. For a plain process, to be alive is all that can be known."""
    if status.state is State.RUNNING and status.terms is not None:
        if status.finding is not None:
            return status.finding.health
        asked = status.terms.live is not None or status.terms.heartbeat is not None
        return Health.UNKNOWN if asked else Health.HEALTHY
    if status.state in (State.EXITED, State.STOPPING) and status.error is not None:
        return Health.UNHEALTHY
    return _BY_STATE[status.state]


def trouble(status: SlotStatus) -> Fault | None:
    """Say what is wrong with a slot, whoever found it."""
    found = status.finding
    if status.error is not None or found is None or status.state is not State.RUNNING:
        return status.error
    if found.health not in _SICK:
        return None
    return Fault(code=found.code or found.named or _SICK[found.health], message=found.why)


def condition(status: SlotStatus) -> Condition:
    """Sum a slot up in one word: running, stopped or error."""
    if status.state in (State.BACKOFF, State.FAILED) or (
        status.error is not None and status.state is not State.STARTING
    ):
        return Condition.ERROR
    if status.state is State.RUNNING and slot_health(status) is Health.UNHEALTHY:
        return Condition.ERROR
    if status.state in (State.RUNNING, State.STOPPING):
        return Condition.RUNNING
    return Condition.STOPPED


def supervisor_health(declaration: Declaration, observed: Observed) -> Health:
    """Roll all workers up; those that people hold back do not count."""
    worst = Health.HEALTHY
    # Few are sick, so their entries are looked up rather than all entries gone through.
    for slot, status in observed.slots.items():
        if status.state is State.RUNNING and status.finding is None:
            continue
        health = slot_health(status)
        if health not in _SICK:
            continue
        name = worker_of(slot)
        entry = declaration.workers.get(name)
        if entry is None or entry.admin is not Admin.ENABLED or slot_index(slot) > entry.replicas:
            continue
        if health is Health.UNHEALTHY and (entry.spec.essential or is_companion(name)):
            return Health.UNHEALTHY
        worst = Health.DEGRADED
    return worst


def essentials(declaration: Declaration) -> tuple[str, ...]:
    """Name the workers without which nothing shall go on."""
    return tuple(name for name, entry in declaration.workers.items() if entry.spec.essential)


def fatal(names: Iterable[str], declaration: Declaration, observed: Observed) -> str | None:
    """Say which of these essential workers has ended for good, and how."""
    for name in names:
        entry = declaration.workers[name]
        for slot in entry.slots() if entry.wanted else ():
            status = observed.slots.get(slot)
            if status is not None and status.state in (State.FAILED, State.EXITED):
                return f"essential worker '{name}' has {status.state}: {status.why}"
    return None
