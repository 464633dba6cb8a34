"""What a supervisor does to its own process before anything else.

Whatever it was started with must not reach its workers, and its workers must get what it was
started with: both are settled here, once.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import NamedTuple

from uphold.host import childsignals
from uphold.host.processes import become_reaper, close_on_exec, posix


class Birthright(NamedTuple):
    """What the supervisor was started with, and hands on to its workers."""

    nofile: tuple[int, int]
    sub_reaper: bool
    """Orphaned descendants of workers come to us."""


def birth() -> Birthright:
    """Make this process fit to start workers. Called once, in the main thread."""
    _fill_standard_descriptors()
    if not close_on_exec(3):
        posix.close_on_exec(3)
    # Inherited as ignored, it would let the kernel throw away every exit status.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    childsignals.keep()
    for name in [name for name in os.environ if name.startswith("UPHOLD_")]:
        del os.environ[name]
    return Birthright(nofile=resource.getrlimit(resource.RLIMIT_NOFILE), sub_reaper=become_reaper())


def _fill_standard_descriptors() -> None:
    """Give 0 to 2 a meaning: the next file opened must not become somebody's output."""
    while (descriptor := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
