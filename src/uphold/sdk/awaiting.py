"""Being asked to stop, for coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from uphold.sdk.asking import BlockingStopping


class Stopping:
    """Says when a worker is to stop: await it, sleep on it, or ask it.

    `await stopping` returns when it is time; `await stopping.wait(5)` is a sleep of five
    seconds that ends early then; `stopping.is_set()` asks. It belongs to one event loop;
    threads use `stopping.blocking`.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.blocking = BlockingStopping()
        """The same for code that blocks in a thread of its own."""

    def is_set(self) -> bool:
        """Tell whether it is time to stop."""
        return self._event.is_set()

    def __call__(self) -> bool:
        """Tell whether it is time to stop."""
        return self._event.is_set()

    def __await__(self) -> Generator[Any, None, bool]:
        return self.wait().__await__()

    async def wait(self, seconds: float | None = None) -> bool:
        """Sleep so long, or until it is time to stop; True if it is."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return self._event.is_set()
        return True

    def set(self) -> None:
        """Say that it is time to stop, from the loop it belongs to."""
        self._event.set()
        self.blocking.set()
