"""When the supervisor itself has come to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from uphold.core.names import is_companion
from uphold.core.statuses import ALIVE

if TYPE_CHECKING:
    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration


class Ending(NamedTuple):
    """A shutdown that has come true as far as it can."""

    error: str | None


def ending(declaration: Declaration, observed: Observed) -> Ending | None:
    """Say whether a shutdown is complete: nothing alive, or only what cannot be killed."""
    if declaration.closing is None:
        return None
    if declaration.closing == "keep":
        return Ending(None)
    alive = [status for status in observed.slots.values() if status.state in ALIVE]
    if not alive:
        return Ending(None)
    workers = [status for status in alive if not is_companion(status.slot)] or alive
    faults = [
        status.error.message for status in workers if status.error is not None and status.killed
    ]
    return Ending("; ".join(faults)) if len(faults) == len(workers) else None
