"""Measures what moving worker output costs, beside a floor of plain `cat` in the same run.

`flood` is one worker that writes as fast as it can, `lines` are many that write a little,
`memory` is what the pump weighs. Each gives figures by name, for whoever prints the tables.
Processor time is read from each process's own clock, so a busy machine blurs it less than it
blurs the throughput.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uphold.pump

PROGRAM = Path(uphold.pump.__file__).with_name("__main__.py")
UPHOLD = Path(sys.executable).with_name("uphold")
BLOCK = 65536
FLOOD = """
import os, sys
block = (b"x" * 99 + b"\\n") * 1024
left = int(sys.argv[1])
while left > 0:
    left -= os.write(1, block[:65536 - 36])
"""
"""Whole lines, about as many as a pipe holds, again and again."""
LINES = """
import os, random, sys, time
pause = float(sys.argv[1])
due = time.monotonic() + random.random() * pause
while True:
    time.sleep(max(0.0, due - time.monotonic()))
    os.write(1, b"a line as a worker writes it now and then, with about eighty characters in it\\n")
    due += pause
"""
Figures = dict[str, float]


def main() -> int:
    """Take all figures and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["flood", "lines", "memory"])
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    takes: dict[str, Callable[[], Figures]] = {
        "flood": lambda: flood(megabytes=args.megabytes, rounds=args.rounds),
        "lines": lambda: lines(seconds=args.seconds),
        "memory": memory,
    }
    for what in args.what:
        for name, figure in takes[what]().items():
            print(f"{what}: {name:52}{figure:>12.3f}", flush=True)
    return 0


def flood(*, megabytes: int = 2000, rounds: int = 5) -> Figures:
    """Let one worker write that much, to `cat` and to the pump by turns; medians.

    The pump has its default settings. Compression begins when the flood is over; what it costs
    is a figure of its own, and so is the sum.
    """
    floor: list[tuple[float, float]] = []
    pump: list[tuple[float, float, float]] = []
    for _ in range(rounds):
        floor.append(flood_to_cat(megabytes))
        pump.append(flood_to_pump(megabytes))
    speeds, costs = (median(column) for column in zip(*floor, strict=True))
    speed, cost, packing = (median(column) for column in zip(*pump, strict=True))
    return {
        "cat (MB/s)": speeds,
        "pump (MB/s)": speed,
        "pump / cat": median([p[0] / f[0] for p, f in zip(pump, floor, strict=True)]),
        "cat, CPU (ms per MB)": costs,
        "pump, CPU (ms per MB)": cost,
        "pump / cat, CPU": median([p[1] / f[1] for p, f in zip(pump, floor, strict=True)]),
        "pump, CPU of compressing what is kept (s)": packing,
        "pump with compression, CPU (ms per MB)": cost + packing * 1000 / megabytes,
    }


def lines(*, workers: int = 100, per_second: int = 1000, seconds: float = 10.0) -> Figures:
    """Let many workers write a little, to one `cat` each and then to uphold; CPU per 10 s."""
    pause = str(workers / per_second)
    with tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder:
        floor = lines_to_cats(Path(folder), workers, pause, seconds)
    with tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder:
        supervisor, pump = lines_to_uphold(Path(folder), workers, pause, seconds)
    tenth = 10.0 / seconds
    return {
        "cat, one each, CPU per 10 s (s)": floor * tenth,
        "supervisor, CPU per 10 s (s)": supervisor * tenth,
        "pump, CPU per 10 s (s)": pump * tenth,
        "supervisor + pump, CPU per 10 s (s)": (supervisor + pump) * tenth,
        "(supervisor + pump) / cat": (supervisor + pump) / floor,
    }


def memory(*, few: int = 10, many: int = 1000) -> Figures:
    """Weigh the pump with few and with many FIFOs that have all been written to; idle CPU too."""
    light, _ = weigh(few)
    heavy, idle = weigh(many)
    return {
        "bare interpreter (MiB PSS)": weigh_interpreter() / 1024,
        f"pump, {few} FIFOs (MiB PSS)": light / 1024,
        f"pump, {many} FIFOs (MiB PSS)": heavy / 1024,
        "for each FIFO more (KiB)": (heavy - light) / (many - few),
        "idle, CPU over 5 s (s)": idle,
    }


def flood_to_cat(megabytes: int) -> tuple[float, float]:
    """Give throughput and processor time per megabyte of `cat`."""
    with tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder:
        fifo = Path(folder, "fifo")
        os.mkfifo(fifo)
        held = os.open(fifo, os.O_RDWR)
        with Path(folder, "log").open("wb") as log, fifo.open("rb") as source:
            cat = subprocess.Popen(["cat"], stdin=source, stdout=log)
        time.sleep(0.1)
        before, began = cpu(cat.pid), time.perf_counter()
        write_flood(held, megabytes)
        wait_until_empty(held)
        took = time.perf_counter() - began
        spent = cpu(cat.pid) - before
        os.close(held)
        cat.wait()
    return megabytes / took, spent * 1000 / megabytes


def flood_to_pump(megabytes: int) -> tuple[float, float, float]:
    """Give throughput, processor time per megabyte, and processor time of the compression."""
    with (
        tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder,
        pump_of(Path(folder), ["web.out"]) as (pump, (held,)),
    ):
        logs = Path(folder, "logs")
        os.write(held, b"the first line\n")
        wait_for(lambda: any(logs.iterdir()))
        time.sleep(0.1)
        before, began = cpu(pump), time.perf_counter()
        write_flood(held, megabytes)
        wait_until_empty(held)
        took = time.perf_counter() - began
        spent = cpu(pump) - before
        wait_for(lambda: any(logs.glob("*.gz")) and not any(map(is_plain, logs.iterdir())))
        time.sleep(0.1)
        packing = cpu(pump) - before - spent
    return megabytes / took, spent * 1000 / megabytes, packing


def lines_to_cats(folder: Path, workers: int, pause: str, seconds: float) -> float:
    """Give the processor time of as many `cat` as there are workers."""
    writers, cats, held = [], [], []
    for number in range(workers):
        fifo = folder / f"{number}.fifo"
        os.mkfifo(fifo)
        held.append(os.open(fifo, os.O_RDWR))
        with (folder / f"{number}.log").open("wb") as log, fifo.open("rb") as source:
            cats.append(subprocess.Popen(["cat"], stdin=source, stdout=log))
        command = [sys.executable, "-ISc", LINES, pause]
        writers.append(subprocess.Popen(command, stdout=held[-1]))
    try:
        time.sleep(3)
        before = sum(cpu(cat.pid) for cat in cats)
        time.sleep(seconds)
        return sum(cpu(cat.pid) for cat in cats) - before
    finally:
        for process in writers + cats:
            process.kill()
            process.wait()
        for fd in held:
            os.close(fd)


def lines_to_uphold(folder: Path, workers: int, pause: str, seconds: float) -> tuple[float, float]:
    """Give the processor time of a supervisor and of its pump."""
    config = folder / "uphold.toml"
    command = json.dumps([sys.executable, "-ISc", LINES, pause])
    config.write_text(f"[workers.web]\ncommand = {command}\nreplicas = {workers}\n")
    order = [str(UPHOLD), "-c", str(config)]
    subprocess.run([*order, "start"], check=True, stdout=subprocess.DEVNULL)
    try:
        time.sleep(3)
        supervisor = json.loads((folder / ".uphold/lock").read_text())["pid"]
        pump = int((folder / ".uphold/slots/@pump.lock").read_text().split()[3])
        before = cpu(supervisor), cpu(pump)
        time.sleep(seconds)
        return cpu(supervisor) - before[0], cpu(pump) - before[1]
    finally:
        subprocess.run([*order, "stop"], check=False, stdout=subprocess.DEVNULL)


def weigh(count: int) -> tuple[int, float]:
    """Give the memory of a pump that has so many FIFOs, in KiB, and what it does at rest."""
    names = [f"w{number}.out" for number in range(count)]
    with (
        tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder,
        pump_of(Path(folder), names) as (pump, held),
    ):
        for _ in range(3):
            for fd in held:
                os.write(fd, b"a line\n" * 10)
            time.sleep(0.3)
        wait_for(lambda: len(list(Path(folder, "logs").glob("*.log"))) == count)
        time.sleep(2.5)
        before = cpu(pump)
        time.sleep(5)
        return pss(pump), cpu(pump) - before


def weigh_interpreter() -> int:
    """Give the memory of an interpreter that does nothing, in KiB."""
    code = "import sys; sys.stdin.read()"
    command = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as bare:
        time.sleep(1)
        return pss(bare.pid)


@contextmanager
def pump_of(home: Path, names: list[str]) -> Iterator[tuple[int, list[int]]]:
    """Run a pump for a home with these FIFOs; gives its PID and the FIFOs, held open."""
    (home / "run").mkdir(mode=0o700)
    (home / "logs").mkdir(mode=0o700)
    held = []
    for name in names:
        os.mkfifo(home / "run" / name, 0o600)
        held.append(os.open(home / "run" / name, os.O_RDWR))
    with subprocess.Popen([sys.executable, "-I", "-S", str(PROGRAM), str(home)]) as pump:
        try:
            wait_for((home / "run/pump.sock").exists)
            time.sleep(0.3)
            yield pump.pid, held
        finally:
            pump.send_signal(signal.SIGTERM)
            pump.wait()
            for fd in held:
                os.close(fd)


def write_flood(fifo: int, megabytes: int) -> None:
    """Have a process write so much, as fast as somebody takes it."""
    command = [sys.executable, "-ISc", FLOOD, str(megabytes * 1_000_000)]
    subprocess.run(command, stdout=fifo, check=True)


def wait_until_empty(fifo: int) -> None:
    """Wait until all that was written has been taken."""
    while int.from_bytes(fcntl.ioctl(fifo, 0x541B, b"\0\0\0\0"), "little"):
        time.sleep(0.001)


def wait_for(true: Callable[[], object], within: float = 120.0) -> None:
    """Poll until something is true."""
    until = time.monotonic() + within
    while not true():
        if time.monotonic() > until:
            raise TimeoutError("it did not become true in time")
        time.sleep(0.02)


def is_plain(path: Path) -> bool:
    """Tell whether this is a rotated file that is not compressed."""
    return path.suffix[1:].isdecimal()


def cpu(pid: int) -> float:
    """Read the processor time a process has used, its ended threads included, in seconds."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def pss(pid: int) -> int:
    """Read the memory a process accounts for, in KiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def median(values: object) -> float:
    """Give the middle one."""
    return statistics.median(values)  # type: ignore[arg-type, type-var]


if __name__ == "__main__":
    sys.exit(main())
