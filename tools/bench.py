"""Measures uphold beside a floor of bare `posix_spawn`, and prints one table.

Timings belong here and never into tests. Run it on a quiet machine: `make bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UPHOLD = [str(Path(sys.executable).parent / "uphold")]
COMMAND = "sleep 100000"


def main() -> int:
    """Measure for each N and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=[10, 100, 1000])
    sizes = parser.parse_args().sizes
    print(f"{'':34}" + "".join(f"{f'N = {n}':>14}" for n in sizes))
    columns = [measure(size) for size in sizes]
    for row in columns[0]:
        print(f"{row:34}" + "".join(f"{column[row]:>14}" for column in columns))
    return 0


def measure(size: int) -> dict[str, str]:
    """Take all figures for one number of workers."""
    floor = bare_start(size)
    with tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder:
        site = Bench(Path(folder), size)
        started = timed(lambda: site.run("start"))
        try:
            return site.figures(started, floor)
        finally:
            site.run("stop")


class Bench:
    """One home with N workers that do nothing."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        config = "".join(f'[workers.w{n}]\ncommand = "{COMMAND}"\n' for n in range(size))
        (folder / "uphold.toml").write_text(config)

    def run(self, *words: str) -> str:
        """Run the command line and give what it printed."""
        command = [*UPHOLD, "-c", str(self.folder / "uphold.toml"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def figures(self, started: float, floor: float) -> dict[str, str]:
        """Take the figures of a running home; the stop is the last."""
        supervisor = json.loads((self.folder / ".uphold/lock").read_text())["pid"]
        settle()
        ticks = cpu_ticks(supervisor)
        time.sleep(5)
        idle = (cpu_ticks(supervisor) - ticks) / os.sysconf("SC_CLK_TCK")
        memory = pss(supervisor) + sum(pss(pid) for pid in pumps(self.folder))
        status = statistics.median(timed(lambda: self.run("status")) for _ in range(7))
        restarts = [self.restart_time(n) for n in range(0, self.size, max(1, self.size // 20))]
        settle()
        stop = timed(lambda: self.run("stop"))
        return {
            "start, from the command line (s)": f"{started:.2f}",
            "  floor: bare posix_spawn (s)": f"{floor:.2f}",
            "one killed -> replaced, median (ms)": f"{statistics.median(restarts) * 1000:.1f}",
            "status, wall (ms)": f"{status * 1000:.0f}",
            "memory, supervisor + pump (MiB PSS)": f"{memory / 1024:.1f}",
            "idle CPU over 5 s (s)": f"{idle:.2f}",
            "stop (s)": f"{stop:.2f}",
        }

    def restart_time(self, number: int) -> float:
        """Kill one worker and wait until the slot's file names another process."""
        lock = self.folder / f".uphold/slots/w{number}.lock"
        pid = int(lock.read_text().split()[3])
        began = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        while int(lock.read_text().split()[3]) in (0, pid):
            if time.perf_counter() - began > 10:
                break
        return time.perf_counter() - began


def bare_start(size: int) -> float:
    """Start as many processes with nothing around them, and end them again."""
    began = time.perf_counter()
    argv = COMMAND.split()
    pids = [os.posix_spawnp(argv[0], argv, os.environ) for _ in range(size)]
    descriptors = [os.pidfd_open(pid) for pid in pids]
    took = time.perf_counter() - began
    for pid, descriptor in zip(pids, descriptors, strict=True):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(descriptor)
    return took


def timed(work: object) -> float:
    """Say how long something took."""
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began


def settle() -> None:
    """Let what was begun come to rest."""
    time.sleep(1.5)


def cpu_ticks(pid: int) -> int:
    """Read the processor time a process has used."""
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after[11]) + int(after[12])


def pss(pid: int) -> int:
    """Read the memory a process accounts for, in KiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def pumps(folder: Path) -> list[int]:
    """Find the pump of this home."""
    wanted = f"{folder}/.uphold".encode()
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            cmdline = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in cmdline and any(word.endswith(b"pump/__main__.py") for word in cmdline):
            found.append(int(entry))
    return found


if __name__ == "__main__":
    sys.exit(main())
