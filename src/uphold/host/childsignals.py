"""SIGCHLD, kept for a thread that waits for it instead of being thrown away.

The kernel throws it away where nobody has a handler for it, unless it is blocked in every thread.
Programs inherit what is blocked, so whoever starts one sees to that.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_POSSIBLE: Final = hasattr(signal, "sigtimedwait")  # not on macOS


def keep() -> None:
    """Keep it from now on; to be said in the main thread, before there are others."""
    if _POSSIBLE:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))


def are_kept() -> bool:
    """Tell whether `wait` hears of children that end."""
    return _POSSIBLE and signal.SIGCHLD in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def wait(limit: float) -> None:
    """Wait until a child has ended since this was last asked, or the time is over."""
    signal.sigtimedwait((signal.SIGCHLD,), limit)


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
