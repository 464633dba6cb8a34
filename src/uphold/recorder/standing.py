"""How the supervisors do that share a database, by the rows they keep there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from uphold.core.supervisors import (
    SupervisorHealth,
    SupervisorJudgement,
    SupervisorRow,
    judge,
    moment_of,
)
from uphold.core.times import utc_or_none
from uphold.recorder.connecting import Store
from uphold.recorder.heartbeats import row_of
from uphold.recorder.schema import SUPERVISORS


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorStanding:
    """What is known of one supervisor, and how it does."""

    row: SupervisorRow
    judgement: SupervisorJudgement

    @property
    def last_beat(self) -> str | None:
        """When it last beat, as RFC 3339; None: never."""
        return utc_or_none(moment_of(self.row.last_heartbeat))

    @property
    def workers(self) -> dict[str, int]:
        """How many of its workers were in which state, when it last said so."""
        told = self.row.metrics.get("workers")
        if not isinstance(told, Mapping):
            return {}
        return {str(key): count for key, count in told.items() if isinstance(count, int)}

    def view(self) -> dict[str, Any]:
        """Give what programs read of it."""
        found = self.judgement
        return {
            "id": self.row.id or None,
            "name": self.row.name,
            "status": self.row.status or None,
            "health": str(found.health),
            "why": found.why,
            "last_heartbeat": self.last_beat,
            "age": None if found.age is None else round(found.age, 3),
            "missed": found.missed,
            "skewed": found.skewed,
            "workers": self.workers,
        }


def supervisors(store: Store, wall: float, sought: str | None = None) -> list[SupervisorStanding]:
    """Say how each supervisor does at this moment, by name; or the ones of one name or id.

    One that is sought and has no row is given too, as `not_found`.
    """
    with store.begin() as connection:
        found = connection.execute(select(SUPERVISORS)).mappings().all()
    rows = sorted((row_of(dict(row)) for row in found), key=lambda row: (row.name, row.id))
    if sought is not None:
        rows = [row for row in rows if sought in (row.name, row.id)]
    if sought is not None and not rows:
        missing = SupervisorRow(id="", name=sought, status="")
        return [SupervisorStanding(row=missing, judgement=judge(None, wall))]
    return [SupervisorStanding(row=row, judgement=judge(row, wall)) for row in rows]


def cells(standing: SupervisorStanding) -> tuple[str, ...]:
    """Give the cells of a line: NAME STATUS HEALTH LAST-BEAT AGE WORKERS WHY."""
    view, age = standing.view(), standing.judgement.age
    counts = ", ".join(f"{count} {state}" for state, count in standing.workers.items())
    beating = standing.judgement.health is SupervisorHealth.HEALTHY
    quiet = beating and not standing.judgement.skewed
    return (
        view["name"],
        view["status"] or "-",
        view["health"],
        (view["last_heartbeat"] or "-"),
        "-" if age is None else f"{age:.0f}s",
        counts or "-",
        "" if quiet else view["why"],
    )


def unwell(standings: list[SupervisorStanding]) -> Iterator[SupervisorStanding]:
    """Give those that somebody should look after."""
    sick = (SupervisorHealth.UNRESPONSIVE, SupervisorHealth.FAILED, SupervisorHealth.UNKNOWN)
    return (each for each in standings if each.judgement.health in sick)
