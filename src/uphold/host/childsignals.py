"""SIGCHLD, kept for a thread that waits for it instead of being thrown away.

The kernel throws it away where nobody has a handler for it, unless it is blocked in every thread.
Programs inherit what is blocked, so whoever starts one sees to that.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_kept = False


def keep() -> None:
    """Keep it from now on; to be said in the main thread, before there are others."""
    global _kept  # noqa: PLW0603 - a mask is of the process too
    if sys.platform == "linux":  # others may throw away what is blocked
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        _kept = True


def are_kept() -> bool:
    """Tell whether `wait` hears of children that end: not where only a caller's thread is deaf."""
    return _kept


def wait(limit: float) -> bool:
    """Wait until a child has ended since this was last asked; False when the time is over."""
    return signal.sigtimedwait((signal.SIGCHLD,), limit) is not None


def send() -> None:
    """Have whoever waits look."""
    os.kill(os.getpid(), signal.SIGCHLD)


@contextmanager
def as_usual() -> Iterator[None]:
    """Let a program be started on this thread that does not inherit what is blocked here."""
    if not are_kept():
        yield
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        send()  # one that came meanwhile is lost
