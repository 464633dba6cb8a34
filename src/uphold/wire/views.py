"""What programs see of a snapshot: plain mappings with the names of the public interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from uphold.core.explaining import why
from uphold.core.health import condition, slot_health, trouble
from uphold.core.names import is_companion, worker_of
from uphold.core.restarts import due, exhausted, still_comes_back
from uphold.core.schedules import next_run_at
from uphold.core.statuses import ALIVE, SlotStatus, State
from uphold.core.times import utc_or_none, utc_text
from uphold.wire.envelopes import exit_shape, fault_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from uphold.core.absorbing import Observed
    from uphold.core.changes import Change
    from uphold.core.declaring import Declaration, Entry
    from uphold.core.events import Moment
    from uphold.core.specs import WorkerSpec
    from uphold.core.vitals import Vital

    Row = dict[str, object]


_SUMMARY: Final = 50
_TABLES: Final = ("environment", "labels", "depends_on")


def rows(
    declaration: Declaration, observed: Observed, now: Moment, *, companions: bool = False
) -> Iterator[Row]:
    """Give one row per slot, declared workers first, in the order of the file."""
    for name, entry in declaration.workers.items():
        if is_companion(name) and not companions:
            continue
        yield from worker_rows(name, entry, observed, now)
    for name in observed.by_worker:
        if name not in declaration.workers and (companions or not is_companion(name)):
            yield from worker_rows(name, None, observed, now)


def worker_rows(name: str, entry: Entry | None, observed: Observed, now: Moment) -> Iterator[Row]:
    """Give the rows of one worker: its declared slots, then any others still known."""
    declared = {} if entry is None else dict.fromkeys(entry.slots())
    for slot in declared:
        yield row(entry, observed.slots.get(slot) or SlotStatus(slot=slot), now)
    known = observed.of(name)
    for slot in known:
        if slot not in declared:
            yield row(entry, observed.slots[slot], now)
    if entry is not None and not declared and not known:
        # It would vanish, and nobody could see how to get it back.
        none = row(entry, SlotStatus(slot=name), now)
        way_back = f"scaled to 0; back with: uphold scale {name}=1"
        yield none | {"why": way_back} if entry.wanted else none


def row(entry: Entry | None, status: SlotStatus, now: Moment) -> Row:
    """Give the public record of one slot, as in `status --json`."""
    spec = status.terms if entry is None else entry.spec
    # While it lives under our eyes, that is proved at every moment: the kernel would tell.
    proved = now.wall if _has_main_process(status) else status.proved_wall
    return {
        "name": worker_of(status.slot),
        "slot": status.slot,
        "kind": "process" if spec is None else str(spec.kind),
        "team": None if spec is None else spec.team,
        "admin": "disabled" if entry is None else str(entry.admin),
        "state": str(status.state),
        "health": str(slot_health(status)),
        "condition": str(condition(status)),
        "pid": None if status.identity is None else status.identity.pid or None,
        "generation": status.generation,
        "since": utc_or_none(status.since_wall),
        "uptime": round(max(0.0, now.mono - status.started_at), 3) if _has_process(status) else 0.0,
        "restarts": status.restarts,
        "exit": exit_shape(status.exit),
        "last_heartbeat_at": None,
        "last_health_at": utc_or_none(proved),
        "cpu_percent": None,
        "rss_bytes": None,
        "tools": None,
        "last_error": fault_shape(trouble(status)),
        "next_attempt_at": _next_attempt(entry, status, now),
        "why": why(entry, status, now.mono),
    }


def with_vitals(rows: list[Row], vitals: Mapping[str, Vital]) -> list[Row]:
    """Add the latest signs of life to the rows of those that give any."""
    for each in rows if vitals else ():
        vital = vitals.get(str(each["slot"]))
        if vital is None:
            continue
        each["last_heartbeat_at"] = utc_or_none(vital.beat_wall)
        if each["state"] == State.STARTING and vital.answer:
            each["why"] = f"{each['why']}: {vital.answer}"
        if each["state"] == State.RUNNING and vital.said:
            each["why"] = f"{each['why']}; it says: {vital.said}"
    return rows


def health_report(row: Row) -> Row:
    """Sum up how a worker does, and what a person may do about it."""
    name, detail = row["name"], str(row["why"])
    if row["admin"] != "enabled":
        verbs = {"paused": "resume", "disabled": "enable", "quarantined": "approve"}
        action = f"uphold {verbs.get(str(row['admin']), 'why')} {name}"
    elif row["health"] in ("degraded", "unhealthy"):
        action = f"uphold logs {name}; uphold restart {name}"
    else:
        action = ""
    summary = f"{row['state']}, {row['health']}"
    if row["last_error"] is not None:
        summary = detail
    return {
        "level": row["health"],
        "admin_state": row["admin"],
        "summary": summary if len(summary) <= _SUMMARY else f"{summary[: _SUMMARY - 1]}…",
        "detail": detail,
        "action": action,
    }


def plain(value: object) -> Any:
    """Turn a frozen value of ours into plain mappings and lists."""
    return msgspec.to_builtins(value)


def spec_view(spec: WorkerSpec) -> Row:
    """Show declared terms with tables as tables: names lead to values, and give away secrets."""
    view: Row = plain(spec)
    for key in _TABLES:
        view[key] = dict(getattr(spec, key))
    return view


def change_view(change: Change) -> Row:
    """Show what a new file means for one worker."""
    return {
        "name": change.name,
        "action": change.action,
        "reason": change.reason,
        "keys": list(change.keys),
    }


def _has_process(status: SlotStatus) -> bool:
    return status.state in ALIVE and status.identity is not None


def _has_main_process(status: SlotStatus) -> bool:
    """Tell whether it lives itself: a stop goes on for what its main process has left behind."""
    return _has_process(status) and (status.state is not State.STOPPING or status.exit is None)


def _next_attempt(entry: Entry | None, status: SlotStatus, now: Moment) -> str | None:
    if entry is None or not entry.wants(status.slot):
        return None
    spec = entry.spec
    tried_again = still_comes_back(status, spec) and not exhausted(status, spec)
    if status.state is not State.BACKOFF or not tried_again:
        return utc_or_none(next_run_at(entry, status, now))
    return utc_text(now.wall + max(0.0, due(status, spec) - now.mono))
