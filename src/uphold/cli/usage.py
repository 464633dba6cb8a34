"""What processes use, read from /proc for the rows that are about to be printed.

The supervisor does not spend its time on this; who wants to see it pays for it.
"""

from __future__ import annotations

import os
from typing import Any, Final

from uphold.host.proctable import read_proc

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Reading:
    """One look at a process: processor seconds used, memory, and when it was taken."""

    __slots__ = ("at", "cpu", "rss", "started")

    def __init__(self, *, cpu: float, rss: int, started: float, at: float) -> None:
        self.cpu = cpu
        self.rss = rss
        self.started = started
        """Seconds after boot, as is `at`."""
        self.at = at


def add_usage(
    rows: list[dict[str, Any]], earlier: dict[int, Reading] | None = None
) -> dict[int, Reading]:
    """Fill `cpu_percent` and `rss_bytes`; the readings make the next frame's share exact.

    Without an earlier reading the share is the mean since the process began.
    """
    readings = {}
    earlier = earlier or {}
    uptime = seconds_since_boot()
    for row in rows:
        pid = row.get("pid")
        if pid is None or (reading := read_usage(pid, uptime)) is None:
            continue
        readings[pid] = reading
        row["cpu_percent"] = round(_share(earlier.get(pid), reading), 1)
        row["rss_bytes"] = reading.rss
    return readings


def read_usage(pid: int, uptime: float) -> Reading | None:
    """Look at one process; None if it is gone."""
    # The name before the last bracket may itself contain brackets and spaces.
    fields = read_proc(f"/proc/{pid}/stat", at_once=True).rpartition(b")")[2].split()
    if not fields:
        return None
    return Reading(
        cpu=(int(fields[11]) + int(fields[12])) / _TICKS,
        rss=int(fields[21]) * _PAGE,
        started=int(fields[19]) / _TICKS,
        at=uptime,
    )


def seconds_since_boot() -> float:
    """Read how long the machine has been up."""
    return float((read_proc("/proc/uptime") or b"0").split()[0])


def _share(before: Reading | None, now: Reading) -> float:
    if before is None or before.started != now.started:
        used, passed = now.cpu, now.at - now.started
    else:
        used, passed = now.cpu - before.cpu, now.at - before.at
    return max(0.0, 100 * used / passed) if passed > 0 else 0.0
