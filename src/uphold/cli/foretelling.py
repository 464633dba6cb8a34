"""What a start would do, told without doing it: the books are recovered and the planner is asked.

Nothing is decided here. The next supervisor goes by the same functions; only what it would find
by looking (which recorded process lives) is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from uphold.core import actions, events
from uphold.core.changes import Change, at_next_run, differences, preview, restarting
from uphold.core.declaring import Declaration, declare
from uphold.core.dependencies import dependents, meets, unmet
from uphold.core.names import is_companion, worker_of
from uphold.core.orders import Declare, Order
from uphold.core.planning import plan
from uphold.core.statuses import Exit, State
from uphold.engine.drafts import Draft
from uphold.engine.recovering import Recovered, numbered, recover, with_overrides
from uphold.wire.views import worker_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Entry
    from uphold.core.events import Moment
    from uphold.core.specs import Need, WorkerSpec
    from uphold.core.statuses import Identity
    from uphold.ports.drivers import Trace
    from uphold.ports.journals import Memory


_TOUCHING: Final = (actions.Start, actions.Stop, actions.Abort, actions.Kill)
_MOST_TURNS: Final = 5
"""A slot is forgiven, then noted to wait, then starts: turns that only change the books."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the next supervisor would find by looking."""

    boot_id: str
    now: Moment
    lives: Callable[[Identity], bool]
    strays: Sequence[Trace] = ()
    """What lives by the word of the slots' own files, whether the books know of it or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """What the first turns of the next supervisor come to."""

    declaration: Declaration
    recalled: Observed
    """What the books say."""
    observed: Observed
    """What will be known before anything is started or stopped."""
    alive: frozenset[str]
    actions: Mapping[str, actions.Action]
    """What is done to each slot, or noted of it."""
    now: Moment


def foretell(specs: Sequence[WorkerSpec], memory: Memory, sight: Sight) -> Iterator[Change]:
    """Say what a start with these specs would do to each worker, in the order of the file."""
    recovered = recover(memory, specs, (), sight.boot_id)
    foreseen = _foresee(_declared(recovered, specs), recovered, sight)
    ordered = {name: entry.override for name, entry in foreseen.declaration.workers.items()}
    coming = _coming(foreseen)
    for fresh in preview({}, specs, ordered):
        yield _told(foreseen.declaration.workers[fresh.name], fresh, foreseen, coming)
    if foreseen.declaration.paused:
        return
    lost = {worker_of(slot) for slot in foreseen.alive} - foreseen.declaration.workers.keys()
    for name in sorted(lost):
        if not is_companion(name):
            reason = "no longer in the file: alive, will be stopped"
            yield Change(name=name, action="remove", reason=reason)


def _declared(recovered: Recovered, specs: Sequence[WorkerSpec]) -> Declaration:
    wish = Declare(specs=tuple(specs))
    order = Order(id="", wish=wish, author="configuration", origin="config", at=0.0)
    declared = declare(recovered.declaration, order)
    assert isinstance(declared, Declaration)
    return with_overrides(declared, recovered.overrides)


def _foresee(declaration: Declaration, recovered: Recovered, sight: Sight) -> Foresight:
    """Let the planner take its turns until all that is left would touch the world."""
    now = sight.now
    known = {trace.slot for trace in recovered.traces}
    strays = [stray for stray in sight.strays if stray.slot not in known]
    recalled = recovered.observed.with_changes(numbered(recovered.observed, strays), ())
    draft = Draft(recalled, declaration.version)
    sightings = [_sighting(trace, sight.lives, now) for trace in (*recovered.traces, *strays)]
    for sighting in sightings:
        draft.absorb(sighting, now)
    alive = frozenset(each.slot for each in sightings if isinstance(each, events.Adopted))
    doings: dict[str, actions.Action] = {}
    for _ in range(_MOST_TURNS):
        step = plan(declaration, draft.observed(), now.mono, wall=now.wall)
        doings |= {action.slot: action for action in step.actions}
        quiet = [each for each in step.actions if not isinstance(each, _TOUCHING)]
        if not quiet:
            break
        for action in quiet:
            draft.begin(action, now, str)
    return Foresight(
        declaration=declaration,
        recalled=recalled,
        observed=draft.observed(),
        alive=alive,
        actions=doings,
        now=now,
    )


def _sighting(
    trace: Trace, lives: Callable[[Identity], bool], now: Moment
) -> events.Adopted | events.Gone:
    """Say what a driver would find of a recorded run; how it ended nobody saw."""
    slot, generation, found = trace.slot, trace.generation, trace.identity
    if found is not None and (trace.spec.remote or lives(found)):
        return events.Adopted(slot=slot, generation=generation, identity=found)
    ended = None if found is None else Exit(code=None, signal=None, at=now.wall)
    return events.Gone(slot=slot, generation=generation, proof="not found", exit=ended)


def _told(entry: Entry, fresh: Change, foreseen: Foresight, coming: Collection[str]) -> Change:
    """Say in one line what becomes of one worker."""
    if foreseen.declaration.paused:
        reason = "the supervisor is paused: `uphold resume` lets it act"
        return replace(fresh, action="none", reason=reason)
    name, wanted = entry.spec.name, entry.slots()
    alive = [slot for slot in foreseen.observed.of(name) if slot in foreseen.alive]
    kept = [slot for slot in alive if slot in wanted]
    if not entry.wanted or not wanted:
        down = "scaled to 0" if entry.wanted else fresh.reason.removeprefix("new, ")
        if alive:
            return Change(name=name, action="stop", reason=f"alive, but {down}")
        new = not entry.wanted and not _ran(foreseen.observed.of(name), foreseen)
        return Change(name=name, action="none", reason=fresh.reason if new else down)
    doings = [foreseen.actions.get(slot) for slot in wanted]
    ending = actions.Stop | actions.Abort
    restarted = next((each for each in doings if isinstance(each, ending)), None)
    if restarted is not None:
        keys = _changed(entry, kept, foreseen)
        return Change(name=name, action="restart", reason=restarted.why, keys=keys)
    started = any(isinstance(each, actions.Start) for each in doings)
    if started or (name in coming and _waits(entry, foreseen)):
        return Change(name=name, action="start", reason=_why_started(entry, kept, foreseen))
    if len(kept) < len(alive):
        reason = f"{len(kept)} of {len(alive)} alive will be adopted, the others stopped"
        return Change(name=name, action="update", reason=reason)
    keys = _changed(entry, kept, foreseen)
    if keys:
        how = "with its next run" if _keeps_run(entry, kept, foreseen) else "applies in place"
        return Change(name=name, action="update", reason=f"{how}: {', '.join(keys)}", keys=keys)
    return Change(name=name, action="none", reason=_why_nothing(entry, kept, foreseen))


def _coming(foreseen: Foresight) -> frozenset[str]:
    """Name the workers that wait for others, and not in vain.

    Each is looked at again only when one of those has been found: a file may hold chains of any
    length.
    """
    workers = foreseen.declaration.workers
    waiting = {name: entry for name, entry in workers.items() if _waits(entry, foreseen)}
    later = dependents(waiting)
    found: set[str] = set()
    ahead = list(waiting)
    while ahead:
        name = ahead.pop()
        needs = waiting[name].spec.depends_on
        if name not in found and all(
            other in found or _may_meet(workers.get(other), need, foreseen) for other, need in needs
        ):
            found.add(name)
            ahead += later.get(name, ())
    return frozenset(found)


def _waits(entry: Entry, foreseen: Foresight) -> bool:
    """Tell whether a worker waits for others only."""
    missing = unmet(entry, foreseen.declaration, foreseen.observed)
    waiting = [foreseen.observed.slots.get(slot) for slot in entry.slots()]
    return missing is not None and any(
        status is not None and status.why == f"waits for {missing}" for status in waiting
    )


def _may_meet(entry: Entry | None, need: Need, foreseen: Foresight) -> bool:
    """Tell whether a worker is what others need, or comes up; one that has ended stays as it is."""
    if entry is None:
        return False
    slots = entry.slots()
    return bool(slots) and all(
        (entry.wanted and _comes_up(slot, foreseen))
        or meets(foreseen.observed.slots.get(slot), entry, need)
        for slot in slots
    )


def _comes_up(slot: str, foreseen: Foresight) -> bool:
    """Tell whether a slot is up, or is started at once."""
    if isinstance(foreseen.actions.get(slot), actions.Start | actions.Stop):
        return True
    status = foreseen.observed.slots.get(slot)
    return status is not None and status.state in (State.STARTING, State.RUNNING)


def _why_started(entry: Entry, kept: Sequence[str], foreseen: Foresight) -> str:
    if kept:
        return f"{len(kept)} of {len(entry.slots())} alive, will be adopted"
    missing = unmet(entry, foreseen.declaration, foreseen.observed)
    doing = next(filter(None, map(foreseen.actions.get, entry.slots())), None)
    if isinstance(doing, actions.Start) and doing.why != "declared":
        return doing.why
    reason = "not running" if _ran(entry.slots(), foreseen) else "new"
    return reason if missing is None else f"{reason}, waits for {missing}"


def _ran(slots: Sequence[str], foreseen: Foresight) -> bool:
    """Tell whether any of these slots has ever run."""
    known = (foreseen.observed.slots.get(slot) for slot in slots)
    return any(status is not None and status.generation for status in known)


def _changed(entry: Entry, kept: Sequence[str], foreseen: Foresight) -> tuple[str, ...]:
    """Name what the file says otherwise than when those who live were started."""
    terms = _terms(kept, foreseen)
    found = [key for each in terms for key in differences(each, entry.spec)]
    return tuple(dict.fromkeys(found))


def _keeps_run(entry: Entry, kept: Sequence[str], foreseen: Foresight) -> bool:
    """Tell whether a run goes on under terms that only a new process can change."""
    return any(
        at_next_run(terms, entry.spec) and restarting(terms, entry.spec)
        for terms in _terms(kept, foreseen)
    )


def _terms(kept: Sequence[str], foreseen: Foresight) -> list[WorkerSpec]:
    """Give the terms that slots were started under, as far as the books know them."""
    known = (foreseen.recalled.slots.get(slot) for slot in kept)
    return [each.terms for each in known if each is not None and each.terms is not None]


def _why_nothing(entry: Entry, kept: Sequence[str], foreseen: Foresight) -> str:
    """Say why nothing is started now: of those who live, and of the first that does not."""
    slots = entry.slots()
    if kept and len(kept) == len(slots):
        return "alive, will be adopted"
    rows = worker_rows(entry.spec.name, entry, foreseen.observed, foreseen.now)
    first = next(each for each in rows if each["slot"] not in kept)
    # In the words of `status`.
    why = "failed, stays down" if first["state"] == State.FAILED else str(first["why"])
    if not kept:
        return why
    return f"{len(kept)} of {len(slots)} alive, will be adopted; {first['slot']}: {why}"
