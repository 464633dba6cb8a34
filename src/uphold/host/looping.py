"""An event loop that knows when it was held up.

What it does between two looks for news is timed, so a block is seen exactly, and an idle loop is
not woken for it. A loop that waits, is stopped or sleeps with the machine is not blocked.
"""

from __future__ import annotations

import asyncio
import faulthandler
import math
import os
import select
import selectors
import threading
from time import monotonic  # noqa: TID251 - on every turn of the loop, where a call more is felt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_TURN: Final = 1.0
"""Seconds without a look for news that are worth a word."""
_AT_ONCE: Final = 64
"""Descriptors that are served in one turn."""
_TICK: Final = 5.0
_TICKS: Final = 6
"""Looks at a loop that does not turn before it is given up: 30 s."""


class WatchedSelector(selectors.DefaultSelector):
    """Tells `blocked` how long a turn of the loop took, if that was long."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked: Callable[[float], None] | None = None
        self.longest = 0.0
        """The longest turn since somebody last asked."""
        self.turns = 0
        self.busy = False
        self._began = monotonic()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for news, as ever."""
        took = monotonic() - self._began
        self.longest = max(self.longest, took)
        if took > LONGEST_TURN and self.blocked is not None:
            self.blocked(took)
        self.busy = False
        try:
            return self._some(timeout)
        finally:
            self._began = monotonic()
            self.turns += 1
            self.busy = True

    def _some(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        """Take some of what is ready; the kernel gives the others first next time.

        A thousand workers that end at once are one turn of 0.2 s otherwise, and whoever asks
        something meanwhile waits for three of them.
        """
        if not hasattr(select, "epoll"):
            return super().select(timeout)
        seconds = -1.0 if timeout is None else max(0.0, math.ceil(timeout * 1e3) * 1e-3)
        try:
            ready = self._selector.poll(seconds, _AT_ONCE)  # type: ignore[attr-defined]
        except InterruptedError:
            return []
        keys = self._fd_to_key  # type: ignore[attr-defined]
        return [
            (key, _events(event) & key.events)
            for fd, event in ready
            if (key := keys.get(fd)) is not None
        ]

    def take_longest(self) -> float:
        """Give the longest turn since the last call."""
        longest, self.longest = self.longest, 0.0
        return longest


def _events(event: int) -> int:
    """Say in the words of `selectors` what epoll says; a hang-up is news for both sides."""
    read = selectors.EVENT_READ if event & ~select.EPOLLOUT else 0
    return read | (selectors.EVENT_WRITE if event & ~select.EPOLLIN else 0)


class LoopGuard:
    """Ends the process if its loop does not turn for half a minute: for whoever starts it again.

    It counts its own wake-ups and no time, so that a process which was stopped is not ended.
    """

    def __init__(
        self,
        selector: WatchedSelector,
        *,
        tick: float = _TICK,
        end: Callable[[], None] | None = None,
    ) -> None:
        self._selector = selector
        self._tick = tick
        self._end = end or _end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop guard", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Watch no more."""
        self._over.set()

    def _watch(self) -> None:
        last, same = -1, 0
        while not self._over.wait(self._tick):
            turns = self._selector.turns
            same = same + 1 if self._selector.busy and turns == last else 0
            last = turns
            if same >= _TICKS:
                self._end()
                return


def new_loop(selector: WatchedSelector) -> asyncio.AbstractEventLoop:
    """Make a loop that looks for news with this selector."""
    return asyncio.SelectorEventLoop(selector)


def _end() -> None:
    faulthandler.dump_traceback(all_threads=True)
    os._exit(1)
