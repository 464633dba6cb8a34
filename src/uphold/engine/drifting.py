"""Drift: what is believed to run and does not, whatever the events said (M-13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.core.events import Exited
from uphold.core.statuses import Exit, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from uphold.core.absorbing import Observed
    from uphold.ports.drivers import Driver


def drifted(observed: Observed, drivers: Iterable[Driver], wall: float) -> Iterator[Exited]:
    """Find slots that are believed to be up, ready or not, and that no driver sees."""
    seen = {slot: sight for driver in drivers for slot, sight in driver.states().items()}
    for slot, status in observed.slots.items():
        sighting = seen.get(slot)
        told_soon = sighting is not None and (sighting.connected or "ending" in sighting.info)
        not_ready_yet = status.state is State.STARTING and status.identity is not None
        if (status.state is State.RUNNING or not_ready_yet) and not told_soon:
            unseen = Exit(code=None, signal=None, at=wall)
            yield Exited(slot=slot, generation=status.generation, exit=unseen)
