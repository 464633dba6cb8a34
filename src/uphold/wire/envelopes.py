"""The public shape of an event: what journal, socket and streams carry.

A nonce never leaves through here, nor do the terms a worker was started under: they hold
environment values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from uphold.core.events import (
    AbortBegun,
    Adopted,
    Amended,
    Appointed,
    Condemned,
    Event,
    Exited,
    Extended,
    Forgotten,
    GaveUp,
    Gone,
    KillBegun,
    Note,
    Pardoned,
    Ready,
    Recorded,
    Recovered,
    Rested,
    Sickened,
    Skipped,
    StartBegun,
    Started,
    StartFailed,
    StateChanged,
    StopBegun,
    StopFailed,
    WaitBegun,
)
from uphold.core.names import worker_of
from uphold.core.statuses import Exit, Fault, State
from uphold.core.times import utc_text

Payload = dict[str, object]

_TERM: Final = 15


def envelope(recorded: Recorded) -> dict[str, object]:
    """Give the public record of an event, its keys in their fixed order."""
    event = recorded.event
    if isinstance(event, Note):
        kind, entity_type, entity = event.type, event.entity_type, event.entity_id
        payload: Payload = dict(event.payload)
    else:
        kind, entity_type, entity = event.TYPE, "worker", worker_of(event.slot)
        payload = _PAYLOADS[type(event)](event)
    return {
        "seq": recorded.seq,
        "id": recorded.id,
        "type": kind,
        "entity_type": entity_type,
        "entity_id": entity,
        "timestamp": utc_text(recorded.at),
        "severity": severity(event),
        "payload": payload,
        "cause": recorded.cause,
    }


def severity(event: Event) -> str:
    """Say how much a person should care: info, warning or error.

    An exit by SIGTERM is how a requested stop ends; if nobody asked for it, the change of
    state that follows carries the warning.
    """
    if isinstance(event, StateChanged):
        return _SEVERITY_OF_STATE.get(event.after, "info")
    if isinstance(event, Note):
        return event.severity
    if isinstance(event, Exited):
        return "info" if event.exit.code == 0 or event.exit.signal == _TERM else "warning"
    return _SEVERITY_OF_FACT.get(type(event), "info")


def exit_shape(exit_: Exit | None) -> Payload | None:
    """Give the public shape of an exit; both null means that nobody could see it."""
    if exit_ is None:
        return None
    return {"code": exit_.code, "signal": exit_.signal, "at": utc_text(exit_.at)}


def fault_shape(fault: Fault | None) -> Payload | None:
    """Give the public shape of a fault."""
    return None if fault is None else {"code": fault.code, "message": fault.message}


def _begun(event: StartBegun) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "automatic": event.automatic,
        "desired_version": event.seen,
        "why": event.why,
    }


def _process(event: Started | Adopted) -> Payload:
    pid = event.identity.pid or None  # a remote worker has no process here
    return {"slot": event.slot, "generation": event.generation, "pid": pid}


def _start_failed(event: StartFailed) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "error": fault_shape(event.fault),
        "hopeless": event.hopeless,
    }


def _exited(event: Exited) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "exit": exit_shape(event.exit),
        "left_overs": event.left_overs,
    }


def _stop_begun(event: StopBegun | AbortBegun | Ready | Recovered) -> Payload:
    return {"slot": event.slot, "generation": event.generation, "why": event.why}


def _sickened(event: Sickened) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "health": str(event.health),
        "why": event.why,
    }


def _condemned(event: Condemned) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "error": {"code": event.code, "message": event.why},
        "why": event.why,
    }


def _extended(event: Extended) -> Payload:
    return {"slot": event.slot, "generation": event.generation, "seconds": event.seconds}


def _kill_begun(event: KillBegun) -> Payload:
    return {"slot": event.slot, "generation": event.generation}


def _gone(event: Gone) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "proof": event.proof,
        "exit": exit_shape(event.exit),
    }


def _stop_failed(event: StopFailed) -> Payload:
    return {
        "slot": event.slot,
        "generation": event.generation,
        "error": fault_shape(event.fault),
    }


def _reason(event: WaitBegun | GaveUp | Rested) -> Payload:
    return {"slot": event.slot, "why": event.why}


def _next_run(event: Appointed | Skipped) -> Payload:
    return {
        "slot": event.slot,
        "why": event.why,
        "next_run": event.due.text,
        "queued": event.due.owed,
        "skipped": event.due.skipped,
    }


def _slot_only(event: Forgotten | Pardoned | Amended) -> Payload:
    return {"slot": event.slot}


def _changed(event: StateChanged) -> Payload:
    return {
        "slot": event.slot,
        "before": str(event.before),
        "after": str(event.after),
        "why": event.why,
    }


_SEVERITY_OF_STATE: Final = {State.FAILED: "error", State.BACKOFF: "warning"}
_SEVERITY_OF_FACT: Final[dict[type, str]] = {
    StartFailed: "error",
    StopFailed: "error",
    GaveUp: "error",
    KillBegun: "warning",
    Sickened: "warning",
    Condemned: "error",
    AbortBegun: "warning",
    Skipped: "warning",
}

_PAYLOADS: Final[dict[type, Callable[[Any], Payload]]] = {
    StartBegun: _begun,
    Started: _process,
    StartFailed: _start_failed,
    Adopted: _process,
    Exited: _exited,
    StopBegun: _stop_begun,
    KillBegun: _kill_begun,
    Gone: _gone,
    StopFailed: _stop_failed,
    WaitBegun: _reason,
    GaveUp: _reason,
    Rested: _reason,
    Forgotten: _slot_only,
    Pardoned: _slot_only,
    Amended: _slot_only,
    Ready: _stop_begun,
    Recovered: _stop_begun,
    Sickened: _sickened,
    Condemned: _condemned,
    AbortBegun: _stop_begun,
    Extended: _extended,
    Appointed: _next_run,
    Skipped: _next_run,
    StateChanged: _changed,
}
