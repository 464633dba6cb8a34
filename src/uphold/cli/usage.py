"""What workers use, read from /proc for the rows that are about to be printed.

A row tells of the whole tree: the main process and everything that descends from it. The
supervisor does not spend its time on this; who wants to see it pays for it.
"""

from __future__ import annotations

from uphold.host.proctable import read_proc
from uphold.host.trees import Use, read_command, read_trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Reading:
    """One look at a tree: processor seconds used, memory, and when it was taken."""

    __slots__ = ("at", "cpu", "rss", "started", "uses")

    def __init__(self, uses: list[Use], at: float) -> None:
        """Sum up `uses`, the main process first, as they were `at` so many seconds after boot."""
        main = uses[0]
        alone = len(uses) == 1
        self.uses = uses
        self.cpu = main.cpu if alone else sum(use.cpu for use in uses)
        self.rss = main.rss if alone else sum(use.rss for use in uses)
        self.started = main.started
        self.at = at


def add_usage(
    rows: list[dict[str, Any]], earlier: dict[int, Reading] | None = None
) -> dict[int, Reading]:
    """Fill `cpu_percent` and `rss_bytes`; the readings make the next frame's share exact.

    Without an earlier reading the share is the mean since the process began.
    """
    earlier = earlier or {}
    uptime = seconds_since_boot()
    trees = read_trees([row["pid"] for row in rows if row.get("pid") is not None])
    readings = {pid: Reading(uses, uptime) for pid, uses in trees.items()}
    for row in rows:
        if (reading := readings.get(row.get("pid") or 0)) is not None:
            row["cpu_percent"] = round(_share(earlier.get(row["pid"]), reading), 1)
            row["rss_bytes"] = reading.rss
    return readings


def add_processes(rows: list[dict[str, Any]], readings: dict[int, Reading]) -> None:
    """List the processes of each row: number, command, share of a processor, memory."""
    for row in rows:
        reading = readings.get(row.get("pid") or 0)
        row["processes"] = [] if reading is None else [_process(u, reading) for u in reading.uses]


def seconds_since_boot() -> float:
    """Read how long the machine has been up."""
    return float((read_proc("/proc/uptime") or b"0").split()[0])


def _process(use: Use, reading: Reading) -> dict[str, Any]:
    passed = reading.at - use.started
    return {
        "pid": use.pid,
        "command": read_command(use.pid),
        "cpu_percent": round(100 * use.cpu / passed, 1) if passed > 0 else 0.0,
        "rss_bytes": use.rss,
    }


def _share(before: Reading | None, now: Reading) -> float:
    if before is None or before.started != now.started:
        used, passed = now.cpu, now.at - now.started
    else:
        used, passed = now.cpu - before.cpu, now.at - before.at
    return max(0.0, 100 * used / passed) if passed > 0 else 0.0
