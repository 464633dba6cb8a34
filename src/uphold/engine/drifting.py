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
    # By any of them: one that made it happen while it was of another kind still knows its name.
    in_sight = {
        slot
        for driver in drivers
        for slot, sighting in driver.states().items()
        if sighting.connected or "ending" in sighting.info
    }
    for slot, status in observed.slots.items():
        not_ready_yet = status.state is State.STARTING and status.identity is not None
        if (status.state is State.RUNNING or not_ready_yet) and slot not in in_sight:
            unseen = Exit(code=None, signal=None, at=wall)
            yield Exited(slot=slot, generation=status.generation, exit=unseen)
