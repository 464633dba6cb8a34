"""Measures what the runner of a Python worker adds to a bare interpreter: time, processor, memory.

The worker does nothing. It is timed until it says that it is ready, the bare interpreter until
it has ended. `python tools/bench_runner.py`, on a quiet machine.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROUNDS = 20
MOST_SECONDS = 0.150
MOST_BYTES = 12_000_000
WORKER = """
import uphold
class Nothing(uphold.Worker):
    async def setup(self): pass
    async def run(self, stopping): await stopping
    def health(self): return uphold.Health()
"""
BARE = "import sys; sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()"


class Figure(NamedTuple):
    """What one process cost until it was up."""

    seconds: float
    processor: float
    memory: int


def main() -> int:
    """Measure in turns, print the medians, and fail if too much is added."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "nothing.py").write_text(WORKER, encoding="utf-8")
        pairs = [(bare(folder), hosted(folder)) for _ in range(ROUNDS)]
    first, second = (medians(each) for each in zip(*pairs, strict=True))
    added = Figure(*(b - a for a, b in zip(first, second, strict=True)))
    for name, figure in (("bare interpreter", first), ("runner", second), ("added", added)):
        print(
            f"{name:18}{figure.seconds * 1000:8.1f} ms{figure.processor * 1000:8.1f} ms cpu"
            f"{figure.memory / 1e6:8.1f} MB"
        )
    return int(added.seconds > MOST_SECONDS or added.memory > MOST_BYTES)


def bare(folder: str) -> Figure:
    """Start an interpreter that does nothing."""
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", BARE], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.read(1)
        figure = look(child.pid, begun)
        child.kill()
    return figure


def hosted(folder: str) -> Figure:
    """Host a worker that does nothing."""
    address = f"@uphold-bench-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind("\0" + address[1:])
        begun = time.monotonic()
        words = [sys.executable, "-P", "-m", "uphold.runner", "nothing:Nothing"]
        with subprocess.Popen(
            words, cwd=folder, env={**os.environ, "NOTIFY_SOCKET": address}
        ) as child:
            ear.recv(4096)
            figure = look(child.pid, begun)
            child.kill()
    return figure


def look(pid: int, begun: float) -> Figure:
    """See what a process has cost so far."""
    seconds = time.monotonic() - begun
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    rss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:"))
    return Figure(seconds, ticks / os.sysconf("SC_CLK_TCK"), rss * 1024)


def medians(figures: tuple[Figure, ...]) -> Figure:
    """Take the middle of each."""
    return Figure(*(statistics.median(each) for each in zip(*figures, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
