"""Processes of this machine: started, held, found again, ended and reaped.

How a process is held is chosen here, once, by the system we are on.
"""

import sys

if sys.platform == "linux":
    from uphold.host.processes.linux import (
        Process,
        become_reaper,
        can_reap,
        close_on_exec,
        containment,
        find,
        hold_child,
        hold_sighted,
        is_reaper,
    )
elif sys.platform == "win32":  # unverified, and other parts still need Unix
    from uphold.host.processes.windows import (
        Process,
        become_reaper,
        can_reap,
        close_on_exec,
        containment,
        find,
        hold_child,
        hold_sighted,
        is_reaper,
    )
else:
    from uphold.host.processes.posix import (
        Process,
        become_reaper,
        can_reap,
        close_on_exec,
        containment,
        find,
        hold_child,
        hold_sighted,
        is_reaper,
    )

__all__ = [
    "Process",
    "become_reaper",
    "can_reap",
    "close_on_exec",
    "containment",
    "find",
    "hold_child",
    "hold_sighted",
    "is_reaper",
]
