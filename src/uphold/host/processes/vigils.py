"""Watching the ends of many processes through one descriptor.

The loop knows the one; the kernel keeps the others, for a fraction of what the loop would need
for each in time and memory.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_ONCE: Final = 64
"""Ends told in one turn of the loop: a thousand that come together let others in between."""


class Vigil:
    """Calls whoever waits for the end of a process, once, when its pidfd tells of it."""

    def __init__(self) -> None:
        """Needs the running loop."""
        self._epoll = select.epoll()
        self._waiting: dict[int, Callable[[], None]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._tell)

    def add(self, descriptor: int, ended: Callable[[], None]) -> None:
        """Call `ended` when this process has ended."""
        self._epoll.register(descriptor, select.EPOLLIN)
        self._waiting[descriptor] = ended

    def discard(self, descriptor: int) -> None:
        """Wait for it no more; fine for one that has been told of. Before it is closed, always."""
        if self._waiting.pop(descriptor, None) is not None:
            # A child between fork and exec may hold a copy: closing ours would not end the watch.
            self._epoll.unregister(descriptor)

    def close(self) -> None:
        """Wait for nobody any more."""
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._waiting.clear()
            self._epoll.close()

    def _tell(self) -> None:
        # All of them first: whoever is called may close descriptors, and open others by the same
        # numbers, whose processes live.
        told = [(each, self._waiting.get(each)) for each, _ in self._epoll.poll(0, _AT_ONCE)]
        for descriptor, ended in told:
            if ended is not None and self._waiting.get(descriptor) is ended:
                self.discard(descriptor)
                try:
                    ended()
                except Exception as cause:  # noqa: BLE001 - a boundary: others wait for theirs
                    context = {"message": "the end of a process was mistold", "exception": cause}
                    self._loop.call_exception_handler(context)


def is_possible() -> bool:
    """Tell whether this kernel can watch many at once."""
    return hasattr(select, "epoll")
