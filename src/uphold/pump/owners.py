"""Who the pump works for: the supervisor that owns the home, watched through a pidfd.

The lock file names it. A process number alone proves nothing (numbers are used again), so the
start tick must agree too, and it is looked at *after* the pidfd is open. Without any lock file
(a start by hand) the parent is the owner.
"""

from __future__ import annotations

import os

from uphold.pump.settings import parse_json, read_whole

_START_TICKS = 19
"""Where field 22 of /proc/PID/stat stands when one counts from behind the name."""


def find_owner(home: int) -> int | None:
    """Open a pidfd of the supervisor this home belongs to; None if there is none alive."""
    try:
        told = parse_json(read_whole(home, "lock"))
    except FileNotFoundError:
        parent = os.getppid()
        return watch(parent) if parent > 1 else None
    except (OSError, ValueError):
        return None
    if not isinstance(told, dict) or told.get("boot_id") not in {None, boot_id()}:
        return None
    pid, ticks = told.get("pid"), told.get("start_ticks")
    return watch(pid, ticks) if type(pid) is int and type(ticks) is int else None


def watch(pid: int, ticks: int | None = None) -> int | None:
    """Open a pidfd of a live process, if it is the one that started at this tick."""
    try:
        owner = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return None
    if ticks is not None and start_ticks(pid) != ticks:
        os.close(owner)
        return None
    return owner


def start_ticks(pid: int) -> int | None:
    """Tell when a process started, in clock ticks since boot; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as source:  # noqa: PTH123 - no pathlib
            fields = source.read(4096).rpartition(b")")[2].split()
        return None if fields[0] == b"Z" else int(fields[_START_TICKS])
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> str:
    """Name this boot of the machine."""
    with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as source:  # noqa: PTH123
        return source.read(64).decode().strip()
