"""Workers that run elsewhere: what their heartbeats tell, and what it means when none come.

`absorb_beat` takes one in, `judge` says how the worker does at some moment. Both are pure; who
listens, and when it is judged again, is the business of `uphold.drivers.remote`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from uphold.core.absorbing import duration_text
from uphold.core.notices import Beat, Refused
from uphold.core.specs import NEVER, Heartbeat, Instant
from uphold.core.statuses import Health

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.core.events import Moment

DEGRADED_AFTER: Final = 2
UNRESPONSIVE_AFTER: Final = 3
"""So many heartbeats missed in a row, and it counts as unresponsive (O-40)."""
UNRESPONSIVE: Final = "unresponsive"
_BEGINNING: Final = 1
"""Numbers up to this one begin a new count: whoever sends them has been started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteStatus:
    """What is known of a remote worker by its heartbeats."""

    since: Instant
    """From when on it is listened to."""
    heard: Instant | None = None
    """When the last heartbeat that counts was made."""
    heard_wall: float = 0.0
    last: Beat | None = None
    seq: int | None = None
    """The number of the last one that had a number."""
    beats: int = 0
    gaps: int = 0
    """How often numbers were missing, and how many of them in all."""
    lost: int = 0
    begun: int = 0
    """How often its numbers began anew."""
    refused: tuple[tuple[str, int], ...] = ()
    """How many were refused, by the reason."""
    progress_at: Instant | None = None
    """When its progress last changed; None: it tells none."""
    unread: str = ""
    """Why nobody can tell what its file says now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How a remote worker does, and when to judge again if nothing is heard."""

    health: Health
    why: str
    missed: int
    again_at: Instant = NEVER


def absorb_beat(
    status: RemoteStatus, beat: Beat, at: Moment, *, age: float = 0.0
) -> RemoteStatus | Refused:
    """Take in a heartbeat that is `age` seconds old; or say why it is not believed."""
    seq, last = beat.seq, status.seq
    if seq is not None and last is not None and seq <= last:
        if seq == last:
            return Refused("repeated", f"number {seq} has been heard already.")
        if seq > _BEGINNING:
            return Refused("old", f"number {seq} comes after number {last} has been heard.")
    heard = Instant(at.mono - max(0.0, age))
    if status.heard is not None and heard < status.heard:
        return Refused("old", "it was made before one that has been heard already.")
    anew = seq is not None and last is not None and seq < last
    lost = 0 if seq is None or last is None or anew else seq - last - 1
    moved = status.last is None or beat.progress != status.last.progress
    progress_at = heard if moved else status.progress_at
    return replace(
        status,
        heard=heard,
        heard_wall=at.wall - max(0.0, age),
        last=beat,
        seq=last if seq is None else seq,
        beats=status.beats + 1,
        gaps=status.gaps + (1 if lost else 0),
        lost=status.lost + lost,
        begun=status.begun + (1 if anew else 0),
        progress_at=None if beat.progress is None else progress_at,
        unread="",
    )


def count_refused(status: RemoteStatus, reason: str) -> RemoteStatus:
    """Count one that was not believed."""
    counted = dict(status.refused)
    counted[reason] = counted.get(reason, 0) + 1
    return replace(status, refused=tuple(counted.items()))


def judge(status: RemoteStatus, rule: Heartbeat, now: Instant) -> Judgement:
    """Say how it does: by how long it is silent, then by what it said last.

    The reason changes only with the verdict, so that hearing the same again is no news.
    """
    last_sign = status.since if status.heard is None else status.heard
    missed = int(max(0.0, now - last_sign) / rule.stale_after)
    if status.unread and missed >= DEGRADED_AFTER:
        why = status.unread.removesuffix(".")
        return Judgement(health=Health.DEGRADED, why=why, missed=missed)
    if missed >= UNRESPONSIVE_AFTER:
        why = _why_unresponsive(status, rule)
        return Judgement(health=Health.UNHEALTHY, why=why, missed=missed)
    again_at = Instant(last_sign + (missed + 1) * rule.stale_after)
    if status.heard is None or status.last is None:
        why = "no heartbeat has come yet"
        return Judgement(health=Health.UNKNOWN, why=why, missed=missed, again_at=again_at)
    health, why = _by_content(status, status.heard, status.last, rule)
    if missed >= DEGRADED_AFTER and health is not Health.UNHEALTHY:
        silent = duration_text(missed * rule.stale_after)
        health, why = Health.DEGRADED, f"no heartbeat for {silent}"
    return Judgement(health=health, why=why, missed=missed, again_at=again_at)


def view(status: RemoteStatus) -> Mapping[str, object]:
    """Give the public record of what its heartbeats told, with wall time in seconds."""
    beat = status.last or Beat(status="")
    return {
        "at": status.heard_wall or None,
        "seq": status.seq,
        "status": beat.status or None,
        "progress": beat.progress,
        "error": beat.error,
        "summary": beat.summary,
        "beats": status.beats,
        "gaps": status.gaps,
        "lost": status.lost,
        "begun_anew": status.begun,
        "refused": dict(status.refused),
    }


def _by_content(
    status: RemoteStatus, heard: Instant, beat: Beat, rule: Heartbeat
) -> tuple[Health, str]:
    """Judge by what it says of itself."""
    if beat.error:
        return Health.UNHEALTHY, f"it says: {beat.error}"
    if not beat.good:
        health = Health.DEGRADED if beat.status == Health.DEGRADED else Health.UNHEALTHY
        return health, f"it says that it is '{beat.status}'"
    if status.progress_at is not None and beat.status != "idle":
        patience = rule.stale_after if rule.stall_after is None else rule.stall_after
        # Between two heartbeats, not until now: who is silent is not known to stand still.
        if heard - status.progress_at >= patience:
            still = f"its progress stands still at {beat.progress:g}"
            return Health.DEGRADED, f"{still} for more than {duration_text(patience)}"
    return Health.HEALTHY, "beating"


def _why_unresponsive(status: RemoteStatus, rule: Heartbeat) -> str:
    silent = duration_text(UNRESPONSIVE_AFTER * rule.stale_after)
    which = "no heartbeat" if status.heard is not None else "not one heartbeat"
    return f"{UNRESPONSIVE}, {which} for more than {silent}"
