"""The board: where the current snapshot hangs, and whence news go out.

The only place that replaces the snapshot. What happened is written into the ledger first,
then the snapshot is replaced, then listeners hear of it (record before belief).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uphold.core.altering import alter
from uphold.core.statuses import SupervisorStatus
from uphold.engine.bus import LocalBus
from uphold.engine.snapshots import Snapshot
from uphold.ports.journals import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration
    from uphold.core.events import Event, Recorded
    from uphold.engine.ledger import Caused, Ledger


class Board:
    """One frozen snapshot at a time, versions strictly rising, and a bus."""

    def __init__(self) -> None:
        self.bus = LocalBus()
        self._snapshot = Snapshot()

    @property
    def snapshot(self) -> Snapshot:
        """What is wanted and known right now."""
        return self._snapshot

    @property
    def declaration(self) -> Declaration:
        """What is wanted right now."""
        return self._snapshot.declaration

    def change(self, **changes: Any) -> None:
        """Put up the next snapshot, with these differences."""
        self._snapshot = alter(
            self._snapshot,
            version=self._snapshot.version + 1,
            **changes,
        )

    def declare(self, declaration: Declaration, recorded: Sequence[Recorded]) -> None:
        """Believe a declaration that has been recorded."""
        paused = SupervisorStatus.PAUSED if declaration.paused else SupervisorStatus.ACTIVE
        self.change(declaration=declaration, status=paused)
        self.bus.publish(recorded)

    def believe(self, observed: Observed, recorded: Sequence[Recorded]) -> None:
        """Believe what was observed and has been recorded."""
        self.change(observed=observed)
        self.bus.publish(recorded)

    async def tell(
        self, ledger: Ledger, news: Sequence[Event | Caused], also: Batch | None = None
    ) -> None:
        """Record news (together with other rows, if any) and let them out."""
        recorded = ledger.number(news)
        await ledger.write(replace(also or Batch(), events=recorded))
        self.bus.publish(recorded)
