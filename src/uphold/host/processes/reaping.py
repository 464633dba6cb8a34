"""Reaping strangers: orphaned descendants of workers that came to us as their sub-reaper.

Never `waitpid(-1)`: each zombie is looked at first and taken only if it is nobody's. Children
that code of this process started in our own session belong to that code, and so do those
whose number is claimed.
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.host import childsignals
from uphold.host.proctable import main_children, read_stat

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY: Final = 0.55
_AGAIN: Final = 0.35
"""A zombie is taken when it is seen a second time: it gets a chance, and 1 s at most."""
_IN_ANY_CASE: Final = 30.0


class StrangerReaper:
    """Takes zombies that nobody waits for, within a second.

    On a thread of its own that waits for SIGCHLD: a handler would be called for each of a
    thousand children that end together, and fill the loop's wake-up pipe, and a signal that
    matters would be lost; those that wait for a thread are one. In a process where SIGCHLD is not
    kept for us there is a timer instead. A look is one system call, but the kernel goes through
    all children for it.
    """

    def __init__(self, claimed: Callable[[int], bool]) -> None:
        self._claimed = claimed
        self._seen: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._is_told = childsignals.are_kept()
        self._over = threading.Lock()  # waiting for it is cheaper than for an event
        self._over.acquire()
        threading.Thread(target=self._watch, name="reaper", daemon=True).start()

    def close(self) -> None:
        """Stop looking."""
        if self._over.locked():
            self._over.release()
            if self._is_told:
                childsignals.send()

    def _watch(self) -> None:
        pause = _AGAIN
        while not self._over.acquire(timeout=pause):
            if self._seen or _dead_child() is not None:
                pause = _AGAIN
                try:
                    self._loop.call_soon_threadsafe(self._look)
                except RuntimeError:  # the loop is closed
                    return
                continue
            pause = _EVERY
            if self._is_told:
                # One that came since the look above is pending, and ends this at once.
                childsignals.wait(_IN_ANY_CASE)

    def _look(self) -> None:
        if not self._over.locked():
            return  # called just before the end
        zombies = {pid for pid in _children() if self._is_stranger(pid)}
        for pid in zombies & self._seen:
            with suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
        self._seen = zombies - self._seen

    def _is_stranger(self, pid: int) -> bool:
        if self._claimed(pid):
            return False
        stat = read_stat(pid)
        return stat is not None and stat.dead and stat.session != os.getsid(0)


def has_orphans(claimed: Callable[[int], bool]) -> bool:
    """Tell whether anything alive has come to us as its sub-reaper.

    Whatever lives of a tree whose root we started and reaped is one of these, or descends from
    one: parents that end leave their children to us. They come to the main thread.
    """
    for pid in main_children():
        if not claimed(pid):
            stat = read_stat(pid)
            if stat is not None and not stat.dead:
                return True
    return False


def _children() -> list[int]:
    """List our children if one is dead."""
    dead = _dead_child()
    return [] if dead is None else main_children() or [dead]


def _dead_child() -> int | None:
    """Name a child that is dead and not reaped yet."""
    try:
        dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if dead is None else dead.si_pid
