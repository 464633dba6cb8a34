"""The gate of an update: whether the workers stay well for a while after it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from uphold.core.health import slot_health
from uphold.core.statuses import Health, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.engine.bus import Subscription
    from uphold.engine.snapshots import Snapshot
    from uphold.engine.supervisor import Supervisor
    from uphold.ports.clocks import Clock

TO_GET_READY: Final = 60.0
"""Seconds that workers may take to be up before an update counts as failed."""
_ILL: Final = frozenset({State.BACKOFF, State.FAILED})
_UP: Final = frozenset({State.RUNNING, State.EXITED})


async def watch(
    supervisor: Supervisor, clock: Clock, names: Sequence[str], seconds: float
) -> str | None:
    """Tell what is wrong with these workers until they have been up for so long; None: nothing.

    Whoever shall not run at all is not waited for.
    """
    wanted = [name for name in names if _wanted(supervisor.snapshot(), name)]
    first = _generations(supervisor.snapshot(), wanted)
    began, up_since = clock.now().mono, None
    news = supervisor.subscribe(1)
    try:
        while wanted:
            snapshot, now = supervisor.snapshot(), clock.now().mono
            problem = _problem(snapshot, wanted, first)
            if problem is not None:
                return problem
            if not _all_up(snapshot, wanted):
                up_since = None
                if now - began >= TO_GET_READY:
                    return f"{', '.join(wanted)} was not up within {TO_GET_READY:g} s"
            else:
                up_since = now if up_since is None else up_since
                if now - up_since >= seconds:
                    return None
            left = 1.0 if up_since is None else seconds - (now - up_since)
            await _next(news, clock, min(1.0, max(0.01, left)))
    finally:
        news.close()
    return None


async def _next(news: Subscription, clock: Clock, seconds: float) -> None:
    """Wait for news, or for time to pass."""
    both = {asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(anext(news))}
    _, pending = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*both, return_exceptions=True)


def _problem(snapshot: Snapshot, names: Sequence[str], first: dict[str, int]) -> str | None:
    observed = snapshot.observed
    for name in names:
        for slot in observed.of(name):
            status = observed.slots[slot]
            if status.state in _ILL:
                return f"{slot} does not stay up: {status.why}"
            if status.generation > first.get(slot, status.generation):
                return f"{slot} was restarted: {status.why}"
            if slot_health(status) is Health.UNHEALTHY:
                return f"{slot} is unhealthy: {status.why}"
    return None


def _wanted(snapshot: Snapshot, name: str) -> bool:
    entry = snapshot.declaration.workers.get(name)
    return entry is not None and entry.wanted


def _generations(snapshot: Snapshot, names: Sequence[str]) -> dict[str, int]:
    observed = snapshot.observed
    return {slot: observed.slots[slot].generation for name in names for slot in observed.of(name)}


def _all_up(snapshot: Snapshot, names: Sequence[str]) -> bool:
    observed = snapshot.observed
    return all(observed.slots[slot].state in _UP for name in names for slot in observed.of(name))
