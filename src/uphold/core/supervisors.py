"""How a supervisor does, as far as its row in a database tells.

A dead supervisor writes nothing, so its silence has to speak: `judge` is pure, and whoever reads
a row says what time it is. Times may come from another machine, whose clock need not be right.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from uphold.core.absorbing import duration_text
from uphold.core.names import is_companion
from uphold.core.statuses import SupervisorStatus
from uphold.core.times import parse_utc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.core.absorbing import Observed

UNRESPONSIVE_AFTER: Final = 3
"""So many heartbeats missed in a row, and it counts as unresponsive (O-40)."""
USUAL_INTERVAL: Final = 30.0
INTERVAL_KEY: Final = "heartbeat_every"
"""Where a supervisor's metrics say how often it beats."""
REASON_KEY: Final = "error"
"""Where the metrics of a failed one say why."""
SKEW_TOLERATED: Final = 2.0
"""Seconds by which two clocks may differ before somebody should look at them (E-41)."""


class SupervisorHealth(StrEnum):
    """What can be said about a supervisor by somebody who only reads its row."""

    HEALTHY = "healthy"
    UNKNOWN = "unknown"
    UNRESPONSIVE = "unresponsive"
    NOT_FOUND = "not_found"
    PAUSED = "paused"
    FAILED = "failed"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorRow:
    """What `supervisors_t` holds about one supervisor, as far as it matters here."""

    id: str
    name: str = ""
    status: str = SupervisorStatus.SPAWNING
    last_heartbeat: str | float | None = None
    """As text in any way a database prints it, or in seconds."""
    metrics: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorJudgement:
    """How it does, and what that is founded on."""

    health: SupervisorHealth
    why: str
    age: float | None = None
    """Seconds since its last heartbeat, never below 0; None: there is none."""
    missed: int = 0
    skewed: bool = False
    """Its last heartbeat lies in our future: one of the two clocks is wrong."""

    @property
    def gone(self) -> bool:
        """Tell whether nobody is there who would mind if its rows were written by others."""
        return self.health in _GONE


_GONE: Final = frozenset(
    {
        SupervisorHealth.UNRESPONSIVE,
        SupervisorHealth.NOT_FOUND,
        SupervisorHealth.FAILED,
        SupervisorHealth.TERMINATED,
    }
)


def judge(row: SupervisorRow | None, now: float) -> SupervisorJudgement:
    """Say how a supervisor does by its row at this moment; None: there is no row."""
    if row is None:
        return SupervisorJudgement(health=SupervisorHealth.NOT_FOUND, why="it has no row")
    beat = moment_of(row.last_heartbeat)
    age, skewed = (None, False) if beat is None else age_at(beat, now)
    interval = interval_of(row.metrics)
    missed = 0 if age is None else int(age / interval)
    health, why = _verdict(row, age, missed, interval)
    if skewed:
        ahead = duration_text(beat - now) if beat is not None else ""
        why = f"{why}; its last heartbeat lies {ahead} in the future: compare the clocks"
    return SupervisorJudgement(health=health, why=why, age=age, missed=missed, skewed=skewed)


def _verdict(
    row: SupervisorRow, age: float | None, missed: int, interval: float
) -> tuple[SupervisorHealth, str]:
    if row.status == SupervisorStatus.FAILED:
        reason = row.metrics.get(REASON_KEY)
        return SupervisorHealth.FAILED, str(reason or "it ended by a mistake")
    if row.status == SupervisorStatus.TERMINATED:
        return SupervisorHealth.TERMINATED, "it was told to end"
    if age is None:
        unreadable = row.last_heartbeat not in (None, "")
        why = "its last heartbeat is no time" if unreadable else "it has never beaten"
        return SupervisorHealth.UNKNOWN, why
    if missed >= UNRESPONSIVE_AFTER:
        # Paused too: a paused one beats, so a silent one is not merely paused.
        why = f"no heartbeat for {duration_text(age)}, one is due every {duration_text(interval)}"
        return SupervisorHealth.UNRESPONSIVE, why
    if row.status == SupervisorStatus.PAUSED:
        return SupervisorHealth.PAUSED, "it watches and does not act"
    return SupervisorHealth.HEALTHY, "beating"


def age_at(beat: float, now: float) -> tuple[float, bool]:
    """Give the age of a heartbeat, never below 0, and whether the clocks disagree too much."""
    age = now - beat
    return max(0.0, age), age < -SKEW_TOLERATED


def moment_of(value: str | float | None) -> float | None:
    """Read a moment however it was stored; without a zone it is UTC. None: it tells nothing."""
    if value is None or isinstance(value, bool):
        return None
    try:
        found = parse_utc(value) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found > 0 else None


def interval_of(metrics: Mapping[str, object]) -> float:
    """Say how often it beats by its own word, or as often as supervisors usually do."""
    told = metrics.get(INTERVAL_KEY)
    if isinstance(told, bool) or not isinstance(told, int | float):
        return USUAL_INTERVAL
    return float(told) if math.isfinite(told) and told > 0 else USUAL_INTERVAL


def metrics_of(observed: Observed, every: float, lag: float) -> dict[str, object]:
    """Say what a heartbeat tells besides life: how often it comes, and how the workers are."""
    states = Counter(
        str(status.state) for slot, status in observed.slots.items() if not is_companion(slot)
    )
    return {INTERVAL_KEY: every, "loop_lag": round(lag, 4), "workers": dict(sorted(states.items()))}
