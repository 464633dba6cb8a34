"""A look at a home without its supervisor: what was recorded, and what of it is still alive.

Nothing is written and nothing is locked. Every recorded process is looked for by its full
identity, so a number that belongs to somebody else by now counts as gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uphold.cli.records import Recorded, recorded_slots, runtime_of, stop_note_of
from uphold.cli.times import instant_of, now
from uphold.config.finding import declared_names
from uphold.core.names import is_companion, nearest, slot_index, worker_of
from uphold.core.texts import utc_text
from uphold.errors import NoSuchWorker
from uphold.host.proctable import boot_id, lives

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from uphold.host.locks import Ownership

ADOPTABLE: Final = "alive without a supervisor: the next start adopts it"
_GONE: Final = "no process; the supervisor that ran it is gone"


def look_ourselves(
    home: str,
    found: Ownership,
    names: Sequence[str] = (),
    *,
    companions: bool = False,
    config: str | None = None,
) -> dict[str, Any]:
    """Give the status document as far as it can be known without the supervisor.

    Workers stand in the order of the file, as a supervisor lists them; the books keep none.
    """
    runtime = runtime_of(home)
    slots = recorded_slots(home, runtime)
    wanted = _chosen(slots, names, companions=companions)
    if config is not None and len(wanted) > 1:
        order = {name: turn for turn, name in enumerate(declared_names(config))}
        wanted.sort(key=lambda each: order.get(worker_of(each.slot), len(order)))
    at = now()
    return {
        "schema": 1,
        "supervisor": supervisor_record(home, found, runtime),
        "workers": [_row(each, at, boot_id()) for each in wanted],
    }


def anything_alive(home: str) -> bool:
    """Tell whether any recorded process still runs."""
    boot = boot_id()
    return any(_is_alive(each, boot) for each in recorded_slots(home, runtime_of(home)))


def supervisor_record(home: str, found: Ownership, runtime: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the supervisor by what can be proved; what it said of itself comes second."""
    told = runtime.get("supervisor")
    said = told if isinstance(told, dict) else {}
    owner = found.owner
    running = found.standing == "running"
    stopped_at = utc_text(found.stopped_at) if found.stopped_at else None
    return {
        "id": owner.supervisor_id if owner else said.get("id"),
        "name": said.get("name"),
        "ownership": str(found.standing),
        "status": "spawning" if running else _last_status(found),
        "health": "unknown",
        "pid": owner.pid if owner and found.standing != "stopped" else None,
        "started_at": _started_at(found, runtime),
        "stopped_at": None if running else stopped_at or runtime.get("stopped_at"),
        "version": said.get("version"),
        "last_error": last_error(home, found, runtime),
        "home": home,
    }


def last_error(home: str, found: Ownership, runtime: Mapping[str, Any]) -> dict[str, Any] | None:
    """Tell what went wrong last: a failed stop counts if it came after the start."""
    note = stop_note_of(home)
    noted = note.get("error") if note.get("failed") else None
    began = found.owner.since if found.owner else 0.0
    if isinstance(noted, dict) and (instant_of(note.get("at")) or 0.0) >= began:
        return noted
    if found.standing == "corrupt":
        return {"code": "UPH_LOCK_CORRUPT", "message": found.reason}
    said = runtime.get("last_error")
    if isinstance(said, str):
        return {"code": "UPH_FAILED", "message": said}
    return said if isinstance(said, dict) else None


def _started_at(found: Ownership, runtime: Mapping[str, Any]) -> str | None:
    """Tell when it started: the lock knows, unless it names whoever ended what it had left.

    That one writes the same end into the mirror, which still says who had begun before.
    """
    said = runtime.get("started_at")
    if found.owner is None:
        return said if isinstance(said, str) else None
    same_end = (instant_of(runtime.get("stopped_at")) or 0.0) >= found.owner.since
    if found.standing == "stopped" and same_end and instant_of(said) is not None:
        return str(said)
    return utc_text(found.owner.since)


def _last_status(found: Ownership) -> str:
    """Say where a supervisor that is not there stands, in its own words."""
    if found.standing == "stopped":
        return "terminated"
    return "failed" if found.standing == "stale" else "unknown"


def _chosen(slots: Sequence[Recorded], names: Sequence[str], *, companions: bool) -> list[Recorded]:
    known = {worker_of(each.slot) for each in slots}
    for name in names:
        if worker_of(name) not in known:
            meant = nearest(name, known)
            raise NoSuchWorker(
                f"nothing was recorded about a worker '{name}'.",
                remedy=f"Did you mean '{meant}'?" if meant else "`uphold status` lists them all.",
            )
    chosen = [
        each
        for each in slots
        if (each.slot in names or worker_of(each.slot) in names)
        or (not names and (companions or not is_companion(each.slot)))
    ]
    return sorted(chosen, key=lambda each: (worker_of(each.slot), slot_index(each.slot)))


def _is_alive(each: Recorded, boot: str) -> bool:
    return (
        each.pid is not None
        and each.start_ticks is not None
        and each.boot_id == boot
        and lives(each.pid, each.start_ticks, each.inode)
    )


def _row(each: Recorded, at: float, boot: str) -> dict[str, Any]:
    alive = _is_alive(each, boot)
    said = each.said
    began = instant_of(said.get("started_at"))
    return {
        "name": worker_of(each.slot),
        "slot": each.slot,
        "kind": said.get("kind") or "process",
        "team": said.get("team"),
        "admin": said.get("admin") or "enabled",
        "state": "running" if alive else _at_rest(said),
        "health": "unknown",
        "condition": "running" if alive else "error" if said.get("last_error") else "stopped",
        "pid": each.pid if alive else None,
        "generation": int(said.get("generation") or 0),
        "since": said.get("since"),
        "uptime": round(max(0.0, at - began), 3) if alive and began else 0.0,
        "restarts": int(said.get("restarts") or 0),
        "exit": said.get("exit"),
        "last_heartbeat_at": said.get("last_heartbeat"),
        # The journal calls the last proof of life by the name its table has.
        "last_health_at": utc_text(at)
        if alive
        else said.get("last_health_at") or said.get("last_heartbeat_at"),
        "cpu_percent": None,
        "rss_bytes": None,
        "tools": None,
        "last_error": said.get("last_error"),
        "next_attempt_at": None,
        "why": ADOPTABLE if alive else _why_at_rest(each),
    }


def _at_rest(said: Mapping[str, Any]) -> str:
    """Tell how a slot without a process ended, where that outlives its supervisor."""
    state = str(said.get("state"))
    return state if state in ("failed", "exited") else "stopped"


def _why_at_rest(each: Recorded) -> str:
    if each.said.get("stays_down"):
        return f"{each.said['stays_down']}; it stays down when a supervisor starts"
    if each.pid:
        return _GONE  # whatever was wrong with its process is over
    error = each.said.get("last_error")
    if error:
        return str(error.get("message") if isinstance(error, dict) else error)
    return "not running"
