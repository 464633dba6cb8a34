"""Finding again what an earlier supervisor started.

A recorded process that still answers to its identity needs no more. For the others the slot's
own file is read and the process table is looked at, once for all of them. Nothing is ended here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.core.names import worker_of
from uphold.core.specs import WorkerSpec
from uphold.host.clock import boot_id
from uphold.host.processes import Process, find, hold_sighted
from uphold.host.processes.slotlocks import SlotRecord, is_held, read_record
from uphold.host.proctable import read_nonce
from uphold.ports.drivers import Trace

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from uphold.host.homes import Home
    from uphold.host.processes.scanning import Scanner, Snapshot
    from uphold.ports.clocks import Clock

_BETWEEN_FORK_AND_EXEC: Final = 3.0
"""How long a held lock whose holder shows no nonce may be a process that is just being born."""
_STEP: Final = 0.05


class Lead(NamedTuple):
    """All that may lead to the processes of one slot."""

    trace: Trace
    generation: int
    process: Process | None
    """The recorded main process, if it can be held: alive, or ended and not yet let go."""
    nonces: tuple[str, ...] = ()
    """Of runs on this boot, the latest first."""
    unnamed: frozenset[str] = frozenset()
    """Those of runs of which only the intent was recorded."""


class Verdict(NamedTuple):
    """What has become of a slot: its living main process, or whether anything else is left."""

    lead: Lead
    process: Process | None = None
    left_overs: bool = False


class Finder:
    """Looks for the processes of a home."""

    def __init__(self, home: Home, clock: Clock, scanner: Scanner) -> None:
        self._home = home
        self._clock = clock
        self._scanner = scanner

    def follow(self, trace: Trace) -> Lead:
        """Hold the recorded main process if that is possible; else gather what leads further."""
        process = None if trace.identity is None else find(trace.identity)
        if process is not None and process.alive():
            return Lead(trace, trace.generation, process)
        record = read_record(self._home.slot_lock(trace.slot))
        if record is None:
            return _lead(trace, None, process)
        known = None if record.identity is None else find(record.identity)
        if known is not None and process is not None:
            process.close()
        return _lead(trace, record, known or process)

    async def sort_out(self, leads: Sequence[Lead]) -> list[Verdict]:
        """Find out what has become of each, with as few looks at the process table as possible."""
        verdicts = [Verdict(lead) for lead in leads if not self._worth_a_look(lead)]
        open_leads = [lead for lead in leads if self._worth_a_look(lead)]
        limit = self._clock.now().mono + _BETWEEN_FORK_AND_EXEC
        while open_leads:
            snapshot = await self._scanner.look()
            last_try = self._clock.now().mono >= limit
            waiting = []
            for lead in open_leads:
                verdict = _seen(lead, snapshot)
                held = is_held(self._home.slot_lock(lead.trace.slot))
                if verdict is None and held and not last_try:
                    waiting.append(lead)
                else:
                    verdicts.append(verdict or Verdict(lead, left_overs=held))
            open_leads = waiting
            if open_leads:
                await self._clock.sleep(_STEP)
        return verdicts

    async def look(self, lead: Lead) -> Verdict | None:
        """Look once; None if nothing of the slot is visible."""
        return _seen(lead, await self._scanner.look())

    async def strays(self, known: Collection[str]) -> list[Trace]:
        """Find slots that live although no trace tells of them (the journal was lost)."""
        paths = sorted(self._home.slots.glob("*.lock"))
        slots = [path.name.removesuffix(".lock") for path in paths]
        unknown = [slot for slot in slots if slot not in known]
        found = []
        snapshot: Snapshot | None = None
        for slot in unknown:
            lock = self._home.slot_lock(slot)
            record = read_record(lock)
            if record is not None and record.boot_id != boot_id():
                record = None
            if is_held(lock):
                found.append(await self._held_stray(slot, record))
            elif record is not None:
                snapshot = snapshot or await self._scanner.look()
                if snapshot.members((record.nonce,), None):
                    found.append(_trace(slot, record))
        return found

    async def _held_stray(self, slot: str, record: SlotRecord | None) -> Trace:
        if record is not None:
            return _trace(slot, record)
        nonces = (
            read_nonce(pid) for pid in await self._scanner.holders(self._home.slot_lock(slot))
        )
        nonce = next((nonce for nonce in nonces if nonce), "")
        return _trace(slot, SlotRecord(0, nonce, boot_id()))

    def _worth_a_look(self, lead: Lead) -> bool:
        """Tell whether anything of it may live: not after the machine restarted meanwhile."""
        return bool(lead.nonces) or is_held(self._home.slot_lock(lead.trace.slot))


def _seen(lead: Lead, snapshot: Snapshot) -> Verdict | None:
    """Judge a slot by what was seen of it: its main process, something else, or nothing."""
    for nonce in lead.nonces:
        seen = snapshot.leader(nonce) if nonce in lead.unnamed else None
        process = None if seen is None else hold_sighted(seen.pid, seen.start_ticks, nonce)
        if process is not None:
            return Verdict(lead, process)
    if snapshot.members(lead.nonces, None):
        return Verdict(lead, left_overs=True)
    return None


def _lead(trace: Trace, record: SlotRecord | None, process: Process | None) -> Lead:
    """Join what the books and the slot's own file say; what another boot left is void."""
    named, unnamed = [], []
    if trace.identity is not None:
        if trace.identity.boot_id == boot_id():
            named += [trace.identity.nonce, trace.nonce]
    elif record is None or record.nonce != trace.nonce:
        unnamed.append(trace.nonce)
    if record is not None and record.boot_id == boot_id():
        (unnamed if record.identity is None else named).insert(0, record.nonce)
    generation = max(trace.generation, 0 if record is None else record.generation)
    nonces = tuple(dict.fromkeys(nonce for nonce in (*unnamed, *named) if nonce))
    return Lead(trace, generation, process, nonces, frozenset(unnamed) - {*named, ""})


def _trace(slot: str, record: SlotRecord) -> Trace:
    return Trace(
        slot=slot,
        generation=record.generation,
        nonce=record.nonce,
        identity=record.identity,
        spec=WorkerSpec(name=worker_of(slot)),
    )
