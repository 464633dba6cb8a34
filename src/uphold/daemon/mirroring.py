"""Keeps runtime.json in step with the snapshot, for people and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from uphold.core.health import slot_health, trouble
from uphold.core.times import utc_or_none
from uphold.wire.envelopes import fault_shape
from uphold.wire.overrides import ABSENT, encode_override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uphold.core.statuses import SlotStatus
    from uphold.engine.snapshots import Snapshot

_AT_LEAST: Final = 0.05
_PER_SLOT: Final = 0.00025


def pause_between(slots: int) -> float:
    """Say how long to wait between two writings, so that they stay a small share of the time."""
    return max(_AT_LEAST, slots * _PER_SLOT)


def alike(one: Snapshot, other: Snapshot) -> bool:
    """Tell whether both look the same in runtime.json: a look that found nothing new is no news."""
    return (
        one.observed is other.observed
        and one.declaration is other.declaration
        and (one.status, one.last_error) == (other.status, other.last_error)
    )


def runtime_view(
    snapshot: Snapshot, supervisor: dict[str, object], stopped_at: float | None = None
) -> dict[str, object]:
    """Give the content of runtime.json: fixed keys in a fixed order."""
    running = stopped_at is None
    overrides = dict.fromkeys(sorted(snapshot.declaration.absent), ABSENT) | {
        name: text
        for name, entry in snapshot.declaration.workers.items()
        if (text := encode_override(entry.override)) is not None
    }
    return {
        "running": running,
        "pid": supervisor["pid"] if running else None,
        "started_at": supervisor["started_at"],
        "stopped_at": utc_or_none(stopped_at),
        "last_error": supervisor["last_error"],
        "supervisor": supervisor,
        "workers": _Views(snapshot),
        "overrides": overrides,
    }


def ended_view(
    last: Mapping[str, object],
    snapshot: Snapshot,
    stopped_at: float,
    overrides: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """Give the content of runtime.json once somebody else ended what its writer left behind.

    Whoever ends left-overs declares nothing, so `overrides` is what people ordered by the
    journal, which knows of an order before the mirror does. None: it is lost, and the mirror's
    word stands.
    """
    supervisor = last.get("supervisor")
    at = utc_or_none(stopped_at)
    ended = {"ownership": "stopped", "status": "terminated", "stopped_at": at}
    return {
        **last,
        "running": False,
        "pid": None,
        "stopped_at": at,
        "supervisor": {**supervisor, **ended} if isinstance(supervisor, dict) else ended,
        "workers": _Views(snapshot),
        **({} if overrides is None else {"overrides": dict(sorted(overrides.items()))}),
    }


class _Views(Mapping[str, dict[str, object]]):
    """What each slot shows, made when it is asked for: of a thousand that is a MiB at once.

    They come in the order of the file; those that are no longer in it come last.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._observed = snapshot.observed
        self._declared = snapshot.declaration.workers

    def __getitem__(self, slot: str) -> dict[str, object]:
        return _slot_view(self._observed.slots[slot])

    def __len__(self) -> int:
        return len(self._observed.slots)

    def __iter__(self) -> Iterator[str]:
        observed, declared = self._observed, self._declared
        for name in (*declared, *(name for name in observed.by_worker if name not in declared)):
            yield from observed.of(name)


def _slot_view(status: SlotStatus) -> dict[str, object]:
    identity = status.identity
    return {
        "state": str(status.state),
        "health": str(slot_health(status)),
        "pid": None if identity is None else identity.pid or None,
        "last_heartbeat": utc_or_none(status.proved_wall),
        "last_error": fault_shape(trouble(status)),
        "restarts": status.restarts,
        "generation": status.generation,
        "start_ticks": None if identity is None else identity.start_ticks,
        "boot_id": None if identity is None else identity.boot_id,
        "since": utc_or_none(status.since_wall),
    }
