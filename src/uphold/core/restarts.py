"""When an ended run is followed by another: the delays and the giving up (P8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never
from zlib import crc32

from uphold.core.specs import Backoff, Instant, RestartPolicy, WorkerSpec
from uphold.core.statuses import State

if TYPE_CHECKING:
    from uphold.core.statuses import Exit, SlotStatus

_MOST_DOUBLINGS: Final = 32
_HASH_RANGE: Final = 0xFFFFFFFF


def succeeded(end: Exit, spec: WorkerSpec) -> bool:
    """Tell whether a run ended well. An end nobody saw is a failure."""
    return end.code is not None and end.code in spec.success_exit_codes


def comes_back(end: Exit, spec: WorkerSpec) -> bool:
    """Tell whether the restart policy wants another run after this end."""
    return _wants_another(spec, well=succeeded(end, spec))


def still_comes_back(status: SlotStatus, spec: WorkerSpec) -> bool:
    """Tell whether a slot that has ended is wanted again under terms that may be new to it."""
    if status.exit is None:
        return True  # it never ran: no policy is about that
    return _wants_another(spec, well=not _condemned(status) and succeeded(status.exit, spec))


def tries_again(status: SlotStatus) -> bool:
    """Tell whether a slot waits in the middle of a series of failures, for its next try."""
    owed = status.due is None or status.due.owed
    return status.state is State.WAITING and status.failures > 0 and owed


def ended_well(status: SlotStatus) -> bool:
    """Tell whether the last run of a slot has ended, and well; no reset makes a bad end good."""
    if status.exit is None or status.terms is None or _condemned(status):
        return False
    return succeeded(status.exit, status.terms)


def _condemned(status: SlotStatus) -> bool:
    """Tell whether a run was ended because it did badly, however it took that."""
    return status.finding is not None and bool(status.finding.code)


def _wants_another(spec: WorkerSpec, *, well: bool) -> bool:
    match spec.restart:
        case RestartPolicy.NO:
            return False
        case RestartPolicy.ON_FAILURE:
            return not well
        case RestartPolicy.ALWAYS:
            return True
        case _:
            assert_never(spec.restart)


def failures_after(status: SlotStatus, ended_at: Instant, spec: WorkerSpec) -> int:
    """Count the unstable runs in a row, the one that just ended included."""
    return 1 if was_stable(status, ended_at, spec) else status.failures + 1


def was_stable(status: SlotStatus, ended_at: Instant, spec: WorkerSpec) -> bool:
    """Tell whether a run that ends now lasted long enough to end a series of failures."""
    return status.identity is not None and ended_at - status.started_at >= spec.stable_after


def exhausted(status: SlotStatus, spec: WorkerSpec) -> bool:
    """Tell whether trying again is pointless or no longer allowed."""
    if status.hopeless:
        return True
    return spec.max_restarts is not None and status.failures > spec.max_restarts


def due(status: SlotStatus, spec: WorkerSpec) -> Instant:
    """Say when the next automatic start of a slot in back-off may happen."""
    delay = delay_after(status.failures, spec.backoff)
    spread = spec.backoff.jitter * _jitter(status.slot, status.generation)
    return Instant(status.since + delay * (1.0 + spread))


def delay_after(failures: int, backoff: Backoff) -> float:
    """Say how long to wait after this many failures in a row, before jitter."""
    if failures <= 1:
        return backoff.first
    doublings = min(failures - 2, _MOST_DOUBLINGS)
    return min(backoff.max, backoff.base * 2.0**doublings)


def _jitter(slot: str, generation: int) -> float:
    """Spread starts without chance: a number in [-1, 1] that only slot and generation decide."""
    return crc32(f"{slot}:{generation}".encode()) / _HASH_RANGE * 2.0 - 1.0
