"""Who comes after whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uphold.core.health import slot_health
from uphold.core.names import is_companion
from uphold.core.restarts import ended_well
from uphold.core.specs import Need
from uphold.core.statuses import ALIVE, UNKILLABLE, Health, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration, Entry
    from uphold.core.specs import WorkerSpec
    from uphold.core.statuses import SlotStatus

_WANTED_STATES: Final = {
    Need.STARTED: (State.RUNNING, State.EXITED),
    Need.HEALTHY: (State.RUNNING,),
    Need.COMPLETED: (State.EXITED,),
}


def unmet(entry: Entry, declaration: Declaration, observed: Observed) -> str | None:
    """Name the first thing this worker waits for; None when it may start."""
    for name, need in entry.spec.depends_on:
        other = declaration.workers.get(name)
        if other is None:
            return f"'{name}', which is not declared"
        if not _is_met(other, need, observed):
            return f"'{name}' to be {need} ({_standing(other, observed)})"
    return None


def meets(status: SlotStatus | None, entry: Entry, need: Need) -> bool:
    """Tell whether one slot of a worker is what those who come after it need."""
    return (
        status is not None
        and _arrived(status, entry) in _WANTED_STATES[need]
        and (status.state is not State.EXITED or ended_well(status))
        and (need is not Need.HEALTHY or slot_health(status) is Health.HEALTHY)
    )


def _is_met(entry: Entry, need: Need, observed: Observed) -> bool:
    slots = entry.slots()
    return bool(slots) and all(meets(observed.slots.get(slot), entry, need) for slot in slots)


def _arrived(status: SlotStatus, entry: Entry) -> State:
    """Say where a slot has got to; one that ran on its schedule and waits again has ended."""
    ran = entry.spec.schedule is not None and ended_well(status)
    return State.EXITED if ran and status.state is State.WAITING else status.state


def _standing(entry: Entry, observed: Observed) -> str:
    if not entry.wanted:
        return f"it is {entry.admin}" if entry.admin != "enabled" else "it is stopped"
    slots = entry.slots()
    if not slots:
        return "it is scaled to 0"
    for slot in slots:
        status = observed.slots.get(slot)
        state = State.STOPPED if status is None else status.state
        if status is not None and state is State.EXITED:
            return f"it {status.why}"
        if state is not State.RUNNING:
            return f"it is {state}"
        if status is not None and slot_health(status) is not Health.HEALTHY:
            return f"it is running, its health is {slot_health(status)}"
    return "it is running"


def dependents(
    workers: Mapping[str, Entry], observed: Observed | None = None
) -> dict[str, tuple[str, ...]]:
    """Say for each worker which others come after it, those no longer declared included.

    Of the terms of those, what would close a circle is left out.
    """
    specs = {name: entry.spec for name, entry in workers.items()}
    removed = () if observed is None else sorted(observed.by_worker.keys() - workers.keys())
    if observed is not None and removed:
        terms = {name: observed.slots[observed.of(name)[0]].terms for name in removed}
        specs |= {name: spec for name, spec in terms.items() if spec is not None}
        specs = without_circles(specs)
    found: dict[str, list[str]] = {}
    for name, spec in specs.items():
        for other, _ in spec.depends_on:
            found.setdefault(other, []).append(name)
    return {name: tuple(after) for name, after in found.items()}


def without_circles(specs: Mapping[str, WorkerSpec]) -> dict[str, WorkerSpec]:
    """Leave out of recorded terms what would close a circle.

    They may be from different files, and so come after each other: everybody in such a circle
    would wait for the end of another one for ever.
    """
    kept: dict[str, list[tuple[str, Need]]] = {}
    for root in sorted(specs):  # the circle is opened at the same place by every supervisor
        if root not in kept:
            _lean(root, specs, kept)
    return {
        name: spec
        if len(kept[name]) == len(spec.depends_on)
        else replace(spec, depends_on=tuple(kept[name]))
        for name, spec in specs.items()
    }


def _lean(
    root: str, specs: Mapping[str, WorkerSpec], kept: dict[str, list[tuple[str, Need]]]
) -> None:
    """Keep what this one comes after, and those in turn, but for what leads back; each once."""
    kept[root] = []
    path = {root: iter(specs[root].depends_on)}
    while path:
        name, links = next(reversed(path.items()))
        link = next(links, None)
        if link is None:
            del path[name]
        elif link[0] not in path:
            kept[name].append(link)
            if link[0] in specs and link[0] not in kept:
                kept[link[0]] = []
                path[link[0]] = iter(specs[link[0]].depends_on)


def still_leaning(
    names: tuple[str, ...], declaration: Declaration, observed: Observed
) -> str | None:
    """Name a dependent that is also on its way down and still alive: it goes first.

    One that cannot be killed is not waited for: it would keep everything below it alive. Nor is
    a companion when the supervisor ends: that goes last, whatever it comes after.
    """
    for name in names:
        if declaration.closing == "stop" and is_companion(name):
            continue
        entry = declaration.workers.get(name)
        going_down = entry is None or not entry.wanted or declaration.closing == "stop"
        if not going_down:
            continue
        for slot in observed.of(name):
            status = observed.slots[slot]
            unkillable = status.error is not None and status.error.code == UNKILLABLE
            if status.state in ALIVE and not unkillable:
                return slot
    return None


def find_cycles(specs: Sequence[WorkerSpec]) -> Iterator[tuple[str, ...]]:
    """Find workers that wait for each other in circles; the first name stands at both ends.

    A circle counts as one problem and is taken out whole: what only hangs on it, or shares a
    worker with it, is no circle of its own. Each link is followed once.
    """
    after = {spec.name: tuple(name for name, _ in spec.depends_on) for spec in specs}
    done: set[str] = set()
    for root, firsts in after.items():
        if root in done:
            continue
        path: dict[str, None] = {root: None}
        pending: list[Iterator[str]] = [iter(firsts)]
        while pending:
            nxt = next(pending[-1], None)
            if nxt is None:
                done.add(path.popitem()[0])
                pending.pop()
            elif nxt in path:
                cycle = [nxt]
                while cycle[-1] != nxt or len(cycle) == 1:
                    cycle.append(path.popitem()[0])
                    pending.pop()
                done.update(cycle)
                yield tuple(reversed(cycle))
            elif nxt in after and nxt not in done:
                path[nxt] = None
                pending.append(iter(after[nxt]))


def longest_grace(declaration: Declaration) -> float:
    """Say how long a full stop may take along the longest chain of dependents."""
    workers = declaration.workers
    after = dependents(workers)
    unsettled = {name: len(after.get(name, ())) for name in workers}
    ahead = [name for name, count in unsettled.items() if count == 0]
    longest: dict[str, float] = {}
    while ahead:
        name = ahead.pop()
        spec = workers[name].spec
        before = max((longest[other] for other in after.get(name, ())), default=0.0)
        longest[name] = spec.stop.grace + before
        for other, _ in spec.depends_on:
            if other in unsettled:
                unsettled[other] -= 1
                if unsettled[other] == 0:
                    ahead.append(other)
    return max(longest.values(), default=0.0)
