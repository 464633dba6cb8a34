"""What a control group limits, in the files of both versions: processes, memory, processors.

Groups themselves are made in `groups`; which limit is whose is said by `core.specs.Limits`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from uphold.host.proctable import read_proc

if TYPE_CHECKING:
    from collections.abc import Collection

    from uphold.core.specs import Limits, WorkerSpec

PERIOD: Final = 100_000
"""Microseconds over which use of the processors is counted; what the kernel itself proposes."""
LEAST_SHARE: Final = 1_000
"""The kernel takes no smaller part of a period."""
LIMITS: Final = {
    "pids": ("processes", "counts processes"),
    "memory": ("memory", "limits memory"),
    "cpu": ("cpu", "limits processors"),
}
"""What each controller is called among the limits, and what a group with it does."""
UNKEPT: Final = {
    "memory": "no control group limits its memory here (limits.memory), so it is watched",
    "cpu": "no control group limits processors here, so it runs without limits.cpu",
}
_FILES: Final = {
    "pids.max": "pids",
    "memory.max": "memory",
    "memory.swap.max": "memory",
    "cpu.max": "cpu",
}
"""Files of the second version in which an earlier start may have left a limit."""


def controllers_of(limits: Limits) -> tuple[str, ...]:
    """Name the controllers that these limits need."""
    needs = {"pids": limits.processes, "memory": limits.memory, "cpu": limits.cpu}
    return tuple(name for name, limit in needs.items() if limit is not None)


def is_firm(spec: WorkerSpec, controller: str) -> bool:
    """Tell whether a worker is not to be started without this one.

    Memory can be watched instead, and without a limit on processors everything still works;
    whoever asks for a group by name wants neither.
    """
    return controller == "pids" or spec.containment == "group"


def write_cap(controller: str, folder: str, limits: Limits) -> None:
    """Have a group keep to a limit; OSError if it cannot."""
    if controller == "pids":
        write_word(f"{folder}/pids.max", str(limits.processes))
    elif controller == "memory":
        _cap_memory(folder, str(limits.memory))
    else:
        assert limits.cpu is not None, "asked for by this limit"
        share = max(LEAST_SHARE, round(limits.cpu * PERIOD))
        if _has(f"{folder}/cpu.max"):
            write_word(f"{folder}/cpu.max", f"{share} {PERIOD}")
        else:
            write_word(f"{folder}/cpu.cfs_period_us", str(PERIOD))
            write_word(f"{folder}/cpu.cfs_quota_us", str(share))


def lift_others(folder: str, limited: Collection[str]) -> None:
    """Take away what only an earlier start has asked for, in a group of the second version."""
    for name, controller in _FILES.items():
        if controller not in limited:
            with suppress(FileNotFoundError):
                write_word(f"{folder}/{name}", "max")


def caps_memory(folder: str) -> bool:
    """Tell whether a group of the second version limits memory."""
    return read_proc(f"{folder}/memory.max").strip() not in (b"", b"max")


def oom_kills(folder: str) -> int:
    """Count how often the kernel has ended a process of a group for want of memory."""
    lines = (read_proc(f"{folder}/{name}") for name in ("memory.events", "memory.oom_control"))
    for line in b"".join(lines).splitlines():
        word, _, count = line.partition(b" ")
        if word == b"oom_kill" and count.isdigit():
            return int(count)
    return 0


def write_word(path: str, word: str) -> None:
    """Write one word to a file of the kernel's."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, word.encode())
    finally:
        os.close(descriptor)


def _cap_memory(folder: str, most: str) -> None:
    """Limit memory, and leave no swap beyond it: a limit is not there to make the disk busy."""
    if _has(f"{folder}/memory.max"):
        write_word(f"{folder}/memory.max", most)
        with suppress(FileNotFoundError):  # a kernel without swap
            write_word(f"{folder}/memory.swap.max", "0")
        with suppress(FileNotFoundError):  # half a tree is no use to anybody
            write_word(f"{folder}/memory.oom.group", "1")
        return
    both = f"{folder}/memory.memsw.limit_in_bytes"
    with suppress(FileNotFoundError):
        write_word(both, "-1")  # never below the other one, so it makes room first
    write_word(f"{folder}/memory.limit_in_bytes", most)
    with suppress(FileNotFoundError):
        write_word(both, most)


def _has(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - text is enough
