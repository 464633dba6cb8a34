"""Going on where the last supervisor stopped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from uphold.core.absorbing import Observed
from uphold.core.declaring import MOST_REPLICAS, Declaration, Entry
from uphold.core.dependencies import without_circles
from uphold.core.names import slot_index, worker_of
from uphold.core.overrides import PLAIN, Override, after_absence
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import ALIVE, SlotStatus, State
from uphold.engine.telling import supervisor_note
from uphold.ports.drivers import Trace
from uphold.wire.overrides import decode_override, encode_override

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from uphold.core.events import Event
    from uphold.ports.journals import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What the books say, and which processes are to be looked for."""

    declaration: Declaration
    observed: Observed
    overrides: Mapping[str, Override]
    traces: tuple[Trace, ...]
    restated: tuple[SlotStatus, ...]
    """Slots of which the books say what cannot be true any more."""


def recover(
    memory: Memory, specs: Iterable[WorkerSpec], companions: Iterable[WorkerSpec], boot_id: str
) -> Recovered:
    """Read the books of the last supervisor in the light of today's configuration."""
    same_boot = memory.meta.get("boot_id", boot_id) == boot_id
    overrides = {name: decode_override(text) for name, text in memory.overrides.items()}
    current = {spec.name: spec for spec in (*companions, *specs)}
    slots = {
        slot: _recalled(status, current, same_boot=same_boot)
        for slot, status in memory.slots.items()
    }
    observed = Observed().with_changes(slots.values(), ())
    return Recovered(
        declaration=_declaration(memory, companions, overrides),
        observed=observed,
        overrides=overrides,
        traces=tuple(_trace(each, current) for each in slots.values() if each.state in ALIVE),
        restated=tuple(
            status for slot, status in slots.items() if status.state is not memory.slots[slot].state
        ),
    )


def _trace(status: SlotStatus, current: Mapping[str, WorkerSpec]) -> Trace:
    name = worker_of(status.slot)
    return Trace(
        slot=status.slot,
        generation=status.generation,
        nonce=status.nonce,
        identity=status.identity,
        # A run that earlier books had lost has no terms; its end must be seen all the same.
        spec=status.terms or current.get(name) or WorkerSpec(name=name),
    )


def with_overrides(declaration: Declaration, overrides: Mapping[str, Override]) -> Declaration:
    """Put back on top of the file what people ordered earlier and it has not changed since."""
    workers = {
        name: replace(entry, override=after_absence(overrides[name], entry.spec))
        if name in overrides
        else entry
        for name, entry in declaration.workers.items()
    }
    return replace(declaration, workers=MappingProxyType(workers))


def with_remembered(memory: Memory, remembered: Mapping[str, str] | None) -> Memory:
    """Put back what people ordered earlier where the journal was lost, and with it their orders."""
    if memory.overrides or not remembered:
        return memory
    kept = {name: _without_numbers(text) for name, text in remembered.items()}
    return replace(memory, overrides={name: text for name, text in kept.items() if text})


def _without_numbers(text: str) -> str | None:
    """Keep what an override wants, without the versions of a declaration that was lost."""
    override = replace(decode_override(text), nudge=0, kick=0, pardon=0)
    return encode_override(override)


def numbered(observed: Observed, strays: Iterable[Trace]) -> tuple[SlotStatus, ...]:
    """Count on from runs that the books had lost: the next one must have a higher number."""
    found = []
    for stray in strays:
        status = observed.slots.get(stray.slot) or SlotStatus(slot=stray.slot)
        if status.generation < stray.generation:
            found.append(replace(status, generation=stray.generation))
    return tuple(found)


def forgivable(observed: Observed) -> Iterator[SlotStatus]:
    """Find the slots whose failures would go on counting."""
    for status in observed.slots.values():
        if status.failures or status.state in (State.FAILED, State.BACKOFF):
            yield status


def as_recorded(recovered: Recovered) -> Declaration:
    """Declare what the books know, for one purpose: to stop it.

    Every slot of it, also of those that never ran: what is not declared would be forgotten.
    """
    observed = recovered.observed
    specs = without_circles({name: _as_recorded(observed, name) for name in observed.by_worker})
    # With what was ordered: who is wanted goes on counting its failures (P8).
    entries = {
        name: Entry(
            spec=spec, override=replace(recovered.overrides.get(name, PLAIN), replicas=None)
        )
        for name, spec in specs.items()
    }
    return replace(
        recovered.declaration, workers=MappingProxyType(entries), closing="stop", paused=False
    )


def _as_recorded(observed: Observed, name: str) -> WorkerSpec:
    slots = observed.of(name)
    terms = (observed.slots[slot].terms for slot in slots)
    known = next(filter(None, terms), WorkerSpec(name=name))
    highest = max(map(slot_index, slots))
    return replace(known, replicas=min(highest, MOST_REPLICAS))  # books may be damaged


def _declaration(
    memory: Memory, companions: Iterable[WorkerSpec], overrides: Mapping[str, Override]
) -> Declaration:
    # Above every number in the books, whatever was lost: an order is never taken for a newer one.
    numbers = [int(memory.meta.get("declaration_version", "0"))]
    for status in memory.slots.values():
        numbers += [status.seen, status.started_seen, status.pardoned]
    numbers += [max(each.nudge, each.kick, each.pardon) for each in overrides.values()]
    return Declaration(
        version=max(numbers),
        config_version=int(memory.meta.get("config_version", "0")),
        paused=memory.meta.get("paused") == "1",
        absent=frozenset(name for name, each in overrides.items() if each.withheld),
        workers=MappingProxyType({spec.name: Entry(spec=spec) for spec in companions}),
    )


def _recalled(
    status: SlotStatus, current: Mapping[str, WorkerSpec], *, same_boot: bool
) -> SlotStatus:
    # One object for equal terms: a thousand workers must not carry their specs twice.
    spec = None if status.terms is None else current.get(status.terms.name)
    if spec is not None and spec == status.terms:
        status = replace(status, terms=spec)
    if same_boot or status.state not in ALIVE | {State.EXITED, State.WAITING}:
        return status
    # Another boot: nothing of it can live, and it did not fail by itself.
    # How long that run lasted is unknown, so it is not counted as one of a series of failures.
    return replace(
        status,
        state=State.STOPPED,
        identity=None,
        stop_asked=True,
        failures=status.failures if status.state is State.WAITING else 0,
        why="the machine was restarted",
    )


def missing(memory: Memory) -> tuple[Event, ...]:
    """Name the events that a power cut took, if the journal knows of any."""
    lost = memory.meta.get("gap")
    if not lost:
        return ()
    first, _, last = lost.partition("-")
    try:
        note = supervisor_note("gap", from_seq=int(first), to_seq=int(last))
    except ValueError:
        return ()  # a damaged row: what is missing is unknown, and no reason not to start
    return (replace(note, severity="warning"),)
