"""Who lives, seen without uphold's help: by the variables a process was born with."""

from __future__ import annotations

import os
from pathlib import Path


def marked(mark: str) -> list[int]:
    """Find every living process that was born with this variable, as `NAME=value`."""
    wanted = mark.encode()
    return [pid for pid in numbers() if wanted in variables(pid) and lives(pid)]


def numbers() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def variables(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def fields(pid: int) -> list[str]:
    """Read what follows the name in /proc/PID/stat: state, parent, group, session and so on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def lives(pid: int) -> bool:
    """Tell whether a process runs or could run again (a zombie could not)."""
    found = fields(pid)
    return bool(found) and found[0] not in "ZX"


def zombies_of(parent: int) -> list[int]:
    """Find the dead children that a process has not let go of yet."""
    found = ((pid, fields(pid)) for pid in numbers())
    return [pid for pid, each in found if each and each[0] == "Z" and int(each[1]) == parent]


def cpu_seconds(pid: int) -> float:
    """Give the CPU time a process has used, children not counted."""
    found = fields(pid)
    return (int(found[11]) + int(found[12])) / os.sysconf("SC_CLK_TCK") if found else 0.0
