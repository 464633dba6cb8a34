"""What differs between two declarations, and which differences need a restart (ruling 45)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from uphold.core.declaring import Entry, follow_file
from uphold.core.names import is_companion
from uphold.core.overrides import PLAIN, Override, after_absence, reason
from uphold.core.restarts import still_comes_back
from uphold.core.specs import Kind, WorkerSpec
from uphold.core.statuses import Admin, SlotStatus, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RESTARTING: Final = frozenset(
    {
        "command",
        "kind",
        "python",
        "shell",
        "working_dir",
        "user",
        "group",
        "umask",
        "environment",
        "pass_environment",
        "clear_environment",
        "limits",
        "containment",
        "logs.mode",
        "logs.split",
    }
)
_TABLES: Final = frozenset({"logs", "stop", "backoff"})
"""What every spec has; tables that may be missing are named whole."""


def differences(before: WorkerSpec, after: WorkerSpec) -> tuple[str, ...]:
    """Name every key that differs, tables key by key."""
    if before is after or before == after:
        return ()
    found: list[str] = []
    for spec_field in fields(WorkerSpec):
        name = spec_field.name
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if name in _TABLES:
            found += [
                f"{name}.{inner.name}"
                for inner in fields(old)
                if getattr(old, inner.name) != getattr(new, inner.name)
            ]
        else:
            found.append(name)
    return tuple(found)


def restarting(before: WorkerSpec, after: WorkerSpec) -> tuple[str, ...]:
    """Name the differing keys that only a new process can honour."""
    keys = differences(before, after)
    if keys and after.kind is Kind.MCP:
        return keys
    told = _told_of_heartbeats(before) != _told_of_heartbeats(after)
    return tuple(key for key in keys if key in _RESTARTING or (key == "heartbeat" and told))


def outgrown(status: SlotStatus, spec: WorkerSpec) -> tuple[str, ...]:
    """Name the differing keys that a live run cannot go on with.

    One that is not ready yet may need a descriptor to say so by, and that is handed out at birth.
    """
    assert status.terms is not None
    keys = restarting(status.terms, spec)
    if keys or status.state is not State.STARTING:
        return keys
    return ("ready",) if _needs_descriptor(status.terms, spec) else ()


def _needs_descriptor(before: WorkerSpec, after: WorkerSpec) -> bool:
    """Tell whether readiness is told by a descriptor that a run on earlier terms was not given."""
    if after.ready is None or after.ready.way != "fd":
        return False
    given = None if before.ready is None else (before.ready.way, before.ready.target)
    return given != ("fd", after.ready.target)


def _told_of_heartbeats(spec: WorkerSpec) -> object:
    """Give what a worker has been told of its heartbeats in its environment."""
    terms = spec.heartbeat
    return None if terms is None or spec.remote else terms.file or terms.stale_after


def at_next_run(before: WorkerSpec, after: WorkerSpec) -> bool:
    """Tell whether a change is for the next run: a job on a schedule is not cut off by an edit."""
    return before.schedule is not None and after.schedule is not None


def begins_anew(status: SlotStatus, spec: WorkerSpec) -> bool:
    """Tell whether a slot that has ended is started again because its terms are now these."""
    if status.terms is None or status.terms == spec:
        return False
    if status.state is State.EXITED and status.exit is not None and still_comes_back(status, spec):
        return True
    return status.state is State.FAILED or bool(restarting(status.terms, spec))


def asked_again(entry: Entry, status: SlotStatus) -> str | None:
    """Say why a slot that has ended may start afresh: a person or a changed file wants it."""
    override = entry.override
    if override.nudge > status.started_seen:
        return reason(override, "nudge")
    if override.kick > status.seen:
        return reason(override, "kick")
    if entry.spec.schedule is not None:
        return None  # what the file changed is for its next run
    if status.terms is None or not begins_anew(status, entry.spec):
        return None
    keys = restarting(status.terms, entry.spec)
    return f"changed: {', '.join(keys)}" if keys else "its terms changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a new file means for one worker."""

    name: str
    action: str
    """none, start, stop, restart, update, remove."""
    reason: str
    keys: tuple[str, ...] = ()


def preview(
    before: Mapping[str, Entry],
    after: Sequence[WorkerSpec],
    ordered: Mapping[str, Override] | None = None,
) -> tuple[Change, ...]:
    """Say what declaring these specs would do, worker by worker, in file order.

    `ordered` is what people ordered earlier for workers that are not declared now, because no
    supervisor runs.
    """
    orders = ordered or {}
    found = [_change(before.get(spec.name), spec, orders.get(spec.name, PLAIN)) for spec in after]
    kept = {spec.name for spec in after}
    found += [
        Change(name=name, action="remove", reason="no longer in the file")
        for name in before
        if name not in kept and not is_companion(name)
    ]
    return tuple(found)


def _change(entry: Entry | None, spec: WorkerSpec, ordered: Override) -> Change:
    if entry is None:
        return _fresh(Entry(spec=spec, override=after_absence(ordered, spec)))
    keys = differences(entry.spec, spec)
    if not keys:
        return Change(name=spec.name, action="none", reason="unchanged")
    shown = ", ".join(keys)
    wanted = follow_file(entry, spec).wanted
    if entry.wanted and not wanted:
        return Change(name=spec.name, action="stop", reason=f"changed: {shown}", keys=keys)
    if not entry.wanted:
        action = "start" if wanted else "update"
        return Change(name=spec.name, action=action, reason=f"changed: {shown}", keys=keys)
    needs = restarting(entry.spec, spec)
    if needs and at_next_run(entry.spec, spec):
        reason = f"with its next run: {shown}"
        return Change(name=spec.name, action="update", reason=reason, keys=keys)
    if needs:
        return Change(
            name=spec.name, action="restart", reason=f"changed: {', '.join(needs)}", keys=keys
        )
    unless = "; restarts it if it is not ready yet" if _needs_descriptor(entry.spec, spec) else ""
    reason = f"applies in place: {shown}{unless}"
    return Change(name=spec.name, action="update", reason=reason, keys=keys)


_WITHHELD: Final = {
    Admin.QUARANTINED: "new, quarantined until approved",
    Admin.DISABLED: "new, disabled",
    Admin.ENABLED: "new, started only on request",
}


def _fresh(entry: Entry) -> Change:
    name = entry.spec.name
    schedule = entry.spec.schedule
    if entry.wanted and schedule is not None and not schedule.at_load:
        return Change(name=name, action="none", reason="new, waits for its first run")
    if entry.wanted:
        return Change(name=name, action="start", reason="new")
    if entry.override.withheld:
        return Change(name=name, action="none", reason="what it runs from is being changed")
    if entry.ordered_down:
        return Change(name=name, action="none", reason=entry.ordered_down)
    return Change(name=name, action="none", reason=_WITHHELD[entry.admin])
