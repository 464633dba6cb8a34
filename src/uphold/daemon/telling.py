"""Keeping logs and mirror in step with what happens: a moment later, since acting comes first."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

from uphold.core.events import Recorded
from uphold.daemon.mirroring import alike, pause_between, runtime_view
from uphold.daemon.narrating import narrate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from uphold.engine.bus import Subscription
    from uphold.engine.snapshots import Snapshot
    from uphold.engine.supervisor import Supervisor
    from uphold.host.logbooks import Logbook
    from uphold.host.mirrors import RuntimeMirror
    from uphold.ports.clocks import Clock

_BEFORE_STORIES: Final = 0.02
_LONGEST_SILENCE: Final = 1.0
"""In a rush logs and mirror are behind by so much at most; the journal never is."""
_STORIES_AT_ONCE: Final = 100


async def tell_stories(
    supervisor: Supervisor,
    news: Subscription,
    others: Sequence[Callable[[Recorded], None]],
    book: Logbook,
    clock: Clock,
) -> None:
    """Write events into the logs, a moment after they happened: acting on them comes first."""
    while await news.wait():
        if supervisor.snapshot().declaration.closing is None:
            await _calm(supervisor, clock, _BEFORE_STORIES)
        while recorded := news.take_waiting(_STORIES_AT_ONCE):
            book.write_all(entry for each in recorded if (entry := narrate(each)) is not None)
            for hear, each in product(others, recorded):
                hear(each)
            await asyncio.sleep(0)  # a thousand workers have much to tell: others come first


async def reflect(
    supervisor: Supervisor,
    mirror: RuntimeMirror,
    about: Callable[[], dict[str, object]],
    clock: Clock,
) -> None:
    """Keep runtime.json in step, without letting it cost more than a small share of the time."""
    shown, trouble = supervisor.snapshot(), supervisor.trouble
    mirror.show(partial(runtime_view, shown, about()))
    async for _ in supervisor.subscribe(1):
        if alike(supervisor.snapshot(), shown) and supervisor.trouble == trouble:
            continue
        # First the pause: what has just begun must not wait while a thread writes about it.
        await _calm(supervisor, clock, _pause(supervisor.snapshot()))
        shown, trouble = supervisor.snapshot(), supervisor.trouble
        mirror.show(partial(runtime_view, shown, about()))


def _pause(seen: Snapshot) -> float:
    # Whoever ends soon is written down once, at the end.
    least = 0.0 if seen.declaration.closing is None else _LONGEST_SILENCE
    return max(least, pause_between(len(seen.observed.slots)))


async def _calm(supervisor: Supervisor, clock: Clock, seconds: float) -> None:
    """Wait so long, and in a rush a little longer: what is told can wait for what is done."""
    latest = clock.now().mono + _LONGEST_SILENCE
    await clock.sleep(seconds)
    while supervisor.busy and clock.now().mono < latest:
        await clock.sleep(_BEFORE_STORIES)
