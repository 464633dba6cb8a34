"""Telling facts to whoever listens, in the order in which they became known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uphold.core.events import SlotFact
    from uphold.ports.drivers import Listener


class Listeners:
    """Those who hear every fact of a driver."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Tell it everything from now on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Tell it nothing more; one that never listened is fine."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def tell(self, fact: SlotFact) -> None:
        """Tell a fact to all; one who raises is reported and keeps nobody else from hearing."""
        for listener in tuple(self._listeners):
            try:
                listener(fact)
            except Exception as cause:  # noqa: BLE001 - a boundary: whatever a listener does wrong
                context = {"message": "a listener failed on a fact", "exception": cause}
                asyncio.get_running_loop().call_exception_handler(context)
