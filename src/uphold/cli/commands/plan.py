"""`uphold plan`: show what the configuration file would change, without changing it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from uphold.cli.changes import change_lines, is_change
from uphold.cli.declared import recalled, with_orders
from uphold.cli.places import Place, locate, require_config
from uphold.cli.reaching import patience_of, reach
from uphold.cli.screens import screen_of
from uphold.cli.speaking import print_document, say
from uphold.errors import EXIT_DONE, NotRunning

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from uphold.core.changes import Change
    from uphold.core.declaring import Entry
    from uphold.core.specs import WorkerSpec
    from uphold.core.statuses import SlotStatus
    from uphold.ports.journals import Memory

EXIT_CHANGES: Final = 2


def declare_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what may follow the verb."""
    parser.add_argument(
        "--exit-code", action="store_true", help="exit with 2 if there is anything to change"
    )


def run(args: argparse.Namespace) -> int:
    """Ask the supervisor to compare the file with what runs; without one, foresee a start."""
    place = locate(args)
    try:
        with reach(place) as connection:
            document = connection.call("plan", patience=patience_of(args))
    except NotRunning:
        document = _from_nothing(place)
    changes = document["changes"]
    if args.json:
        print_document(document)
    else:
        say(args, *change_lines(changes, screen_of(), unchanged=True))
    return EXIT_CHANGES if args.exit_code and any(map(is_change, changes)) else EXIT_DONE


def _from_nothing(place: Place) -> dict[str, Any]:
    from uphold.config.loading import load
    from uphold.wire.views import change_view

    settings = load(require_config(place), environ=os.environ)
    changes = _changes(settings.workers, recalled(place.home))
    return {"schema": 1, "changes": [change_view(each) for each in changes]}


def _changes(specs: Sequence[WorkerSpec], memory: Memory) -> Iterator[Change]:
    """Say what a start would do to each worker: what lives is adopted, not started anew."""
    from uphold.core.changes import Change, preview
    from uphold.core.names import is_companion, worker_of

    entries = with_orders(specs, memory)
    ordered = {name: entry.override for name, entry in entries.items()}
    for fresh in preview({}, specs, ordered):
        yield _again(entries[fresh.name], memory.slots, fresh)
    lost = {worker_of(slot) for slot, status in memory.slots.items() if _lives(status)}
    for name in sorted(lost - entries.keys()):
        if not is_companion(name):
            reason = "no longer in the file: alive, will be stopped"
            yield Change(name=name, action="remove", reason=reason)


def _again(entry: Entry, slots: Mapping[str, SlotStatus], fresh: Change) -> Change:
    """Say what becomes of one worker of which some processes may still live."""
    from dataclasses import replace

    from uphold.core.names import worker_of

    name, wanted = entry.spec.name, entry.slots()
    mine = [status for slot, status in slots.items() if worker_of(slot) == name]
    alive = [status for status in mine if _lives(status)]
    kept = [status for status in alive if status.slot in wanted]
    if not alive:
        failed = [status for status in mine if _stays_failed(entry, status)]
        if fresh.action == "start" and not wanted:
            return replace(fresh, action="none", reason="scaled to 0")
        if fresh.action == "start" and len(failed) == len(wanted):
            return replace(fresh, action="none", reason="failed, stays down")
        return fresh
    if not entry.wanted:
        return replace(fresh, action="stop", reason=f"alive, but {_without_new(fresh.reason)}")
    if not wanted:
        return replace(fresh, action="stop", reason="alive, but scaled to 0")
    changed = _changed_terms(entry.spec, kept)
    if changed is not None and changed.action == "restart":
        return changed
    if len(kept) < len(wanted):
        reason = f"{len(kept)} of {len(wanted)} alive, will be adopted"
        return replace(fresh, action="start", reason=reason)
    if len(kept) < len(alive):
        reason = f"{len(kept)} of {len(alive)} alive will be adopted, the others stopped"
        return replace(fresh, action="update", reason=reason)
    return changed or replace(fresh, action="none", reason="alive, will be adopted")


def _changed_terms(spec: WorkerSpec, kept: Sequence[SlotStatus]) -> Change | None:
    """Compare what lives with what the file says now, as a reload would."""
    from uphold.core.changes import preview
    from uphold.core.declaring import Entry

    found: list[Change] = []
    for status in kept:
        if status.terms is not None and status.terms != spec:
            found += preview({spec.name: Entry(spec=status.terms)}, (spec,))
    return max(found, key=lambda change: change.action == "restart", default=None)


def _stays_failed(entry: Entry, status: SlotStatus) -> bool:
    from uphold.core.changes import begins_anew
    from uphold.core.statuses import State

    override = entry.override
    asked = max(override.nudge, override.kick, override.pardon) > status.seen
    failed = status.state is State.FAILED and status.slot in entry.slots()
    return failed and not asked and not begins_anew(status, entry.spec)


def _lives(status: SlotStatus) -> bool:
    from uphold.host.proctable import boot_id, lives

    process = status.identity
    return (
        process is not None
        and process.boot_id == boot_id()
        and lives(process.pid, process.start_ticks, process.inode)
    )


def _without_new(reason: str) -> str:
    """Leave out that a worker is new: its process is there."""
    return reason.removeprefix("new, ")
