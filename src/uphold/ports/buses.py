"""The bus: how facts reach whoever listens inside the process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.core.events import Recorded


class Bus(Protocol):
    """Hands recorded events to listeners and never waits for one of them."""

    def publish(self, events: Sequence[Recorded]) -> None:
        """Hand these to every listener; one that is full loses them, counted."""
        ...
