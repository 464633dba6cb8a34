"""Looking at processes from outside: who is alive, what they weigh, what they have used.

Nothing here asks a supervisor anything; all of it is read from the kernel.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from pathlib import Path

DEADLINE = 120.0
BIRTH = 1.0
"""Seconds after which a number that was given out has a process, if it ever had one."""
LOWEST = 300
"""Numbers of processes begin here again when they have reached their highest."""


class Census:
    """Counts the workers of one measurement by the word they are given, cheaply.

    The kernel tells the last number it gave out; only numbers given out since the last look
    are looked at, so that waiting for one process among thousands costs little.
    """

    def __init__(self, word: str) -> None:
        self._beginning = b"sleep\0" + word.encode()
        self._last = _last_number()
        self._unclear: dict[int, float] = {}
        """Numbers that may become ours, and until when even one without a process may."""
        self.alive: set[int] = set()
        for name in filter(str.isdigit, os.listdir("/proc")):
            self._look_at(int(name))

    def look(self) -> None:
        """Find workers that were born since the last look."""
        last = _last_number()
        waiting, self._unclear = self._unclear, {}
        for pid, until in waiting.items():
            self._look_at(pid, until)
        soon = time.perf_counter() + BIRTH
        for pid in _between(self._last, last):
            self._look_at(pid, soon)
        self._last = last

    def wait_for(self, count: int, *, pause: float = 0.001) -> None:
        """Wait until this many were born, counted from the last `forget`."""
        end = time.perf_counter() + DEADLINE
        while len(self.alive) < count:
            self.look()
            if time.perf_counter() > end:
                raise TimeoutError(f"only {len(self.alive)} of {count} workers came up")
            time.sleep(pause)

    def forget(self, *pids: int) -> None:
        """Count no longer those that are about to be killed."""
        self.alive.difference_update(pids)

    def wait_gone(self) -> None:
        """Wait until none is left."""
        end = time.perf_counter() + DEADLINE
        while any(map(self._is_ours, self.alive)) and time.perf_counter() < end:
            time.sleep(0.001)

    def _look_at(self, pid: int, until: float = 0.0) -> None:
        if self._is_ours(pid):
            self.alive.add(pid)
        elif time.perf_counter() < until or Path(f"/proc/{pid}").exists():
            # A number is given out before its process can be seen, and between birth and exec
            # that looks like whoever started it.
            self._unclear[pid] = until

    def _is_ours(self, pid: int) -> bool:
        return cmdline(pid).startswith(self._beginning)


def cmdline(pid: int) -> bytes:
    """Read a command line; nothing for what is gone or dead."""
    try:
        descriptor = os.open(f"/proc/{pid}/cmdline", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def run(command: list[str]) -> None:
    """Run a command to its end; it must end well."""
    popen = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for_end(popen)
    if popen.returncode:
        raise subprocess.CalledProcessError(popen.returncode, command)


def wait_for_end(popen: subprocess.Popen[bytes]) -> None:
    """Wait for the very moment: `Popen.wait` with a limit looks only every 50 ms."""
    descriptor = os.pidfd_open(popen.pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], DEADLINE)
    finally:
        os.close(descriptor)
    if not ready:
        popen.kill()
        raise TimeoutError(f"{popen.args!r} did not end")
    popen.wait()


def cpu(pids: list[int]) -> float:
    """Read the processor time processes have used, all their threads included, in seconds."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in pids)


def pss(pids: list[int]) -> float:
    """Read the memory processes account for, in MiB."""
    found = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                found += int(line.split()[1])
    return found / 1024


def _last_number() -> int:
    return int(Path("/proc/loadavg").read_text().split()[4])


def _between(before: int, last: int) -> list[int]:
    if last >= before:
        return list(range(before + 1, last + 1))
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    return [*range(before + 1, highest), *range(LOWEST, last + 1)]
