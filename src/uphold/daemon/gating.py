"""The gate of an update: whether the workers stay well for a while after it.

People go first: whoever they stop, hold or restart meanwhile is no fault of the update.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from uphold.core.health import slot_health
from uphold.core.statuses import Health, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.engine.bus import Subscription
    from uphold.engine.jobs import Job
    from uphold.engine.snapshots import Snapshot
    from uphold.engine.supervisor import Supervisor
    from uphold.ports.clocks import Clock

TO_GET_READY: Final = 60.0
"""Seconds that workers may take to be up before an update counts as failed."""
_ILL: Final = frozenset({State.BACKOFF, State.FAILED})
_UP: Final = frozenset({State.RUNNING, State.EXITED})


def restarts_of(snapshot: Snapshot, names: Sequence[str]) -> dict[str, int]:
    """Note how often each slot has come back by itself so far, before it is started."""
    observed = snapshot.observed
    return {slot: observed.slots[slot].restarts for name in names for slot in observed.of(name)}


async def watch(
    supervisor: Supervisor,
    clock: Clock,
    names: Sequence[str],
    seconds: float,
    restarts: dict[str, int],
) -> str | None:
    """Tell what is wrong with these workers until they have been up for so long; None: nothing.

    Whoever shall not run at all is not waited for. `restarts` is how it was before the start.
    """
    up_since = down_since = None
    news = supervisor.subscribe(1)
    try:
        while wanted := _wanted(supervisor.snapshot(), names):
            snapshot, now = supervisor.snapshot(), clock.now().mono
            problem = _problem(snapshot, wanted, restarts)
            if problem is not None:
                return problem
            down = [name for name in wanted if not _is_up(snapshot, name)]
            if down:
                up_since, down_since = None, now if down_since is None else down_since
                if now - down_since >= TO_GET_READY:
                    return f"{', '.join(down)} was not up within {TO_GET_READY:g} s"
            else:
                up_since, down_since = now if up_since is None else up_since, None
                if now - up_since >= seconds:
                    return None
            left = 1.0 if up_since is None else seconds - (now - up_since)
            await _next(news, clock, min(1.0, max(0.01, left)))
    finally:
        news.close()
    return None


async def ended(job: Job, clock: Clock, within: float | None) -> bool:
    """Wait for the end of an order; False if time is up, and it goes on without us."""
    if within is None:
        await job.done
        return True
    limit = asyncio.ensure_future(clock.sleep(within))
    both: set[asyncio.Future[Any]] = {job.done, limit}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        limit.cancel()
    return job.done.done()


async def _next(news: Subscription, clock: Clock, seconds: float) -> None:
    """Wait for news, or for time to pass."""
    both = {asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(anext(news))}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


def _problem(snapshot: Snapshot, names: Sequence[str], restarts: dict[str, int]) -> str | None:
    """Say who does not do well; `restarts` remembers how often each had come back by itself."""
    observed = snapshot.observed
    for name in names:
        for slot in observed.of(name):
            status = observed.slots[slot]
            if status.state in _ILL:
                return f"{slot} does not stay up: {status.why}"
            # Fewer than before: a time of peace, or a person, has cleared the count.
            restarts[slot] = min(status.restarts, restarts.get(slot, status.restarts))
            if status.restarts > restarts[slot]:
                return f"{slot} was restarted: {status.why}"
            if slot_health(status) is Health.UNHEALTHY:
                return f"{slot} is unhealthy: {status.why}"
    return None


def _wanted(snapshot: Snapshot, names: Sequence[str]) -> list[str]:
    declaration = snapshot.declaration
    if declaration.paused:
        return []  # nobody is started before the supervisor acts again
    entries = declaration.workers
    return [name for name in names if name in entries and entries[name].wanted]


def _is_up(snapshot: Snapshot, name: str) -> bool:
    observed = snapshot.observed
    entry = snapshot.declaration.workers[name]
    # On a schedule, to wait for its time is all that can be asked of it.
    fine = _UP if entry.spec.schedule is None else {*_UP, State.WAITING}
    slots = [observed.slots.get(slot) for slot in entry.slots()]
    return all(status is not None and status.state in fine for status in slots)
