"""T06: every line a worker writes is in its log, once and whole, whatever dies meanwhile.

Workers write numbered lines under a real supervisor with a real pump; the logs are read back
without uphold's help. A worker that had got SIGPIPE would never say that it is done.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import TimeoutExpired

from journeys.site import Site, eventually, is_gone
from proofs.living import cpu_seconds
from proofs.proving import Verdict, main
from pump.homes import PumpHome, content, places

WRITER = """
import os, sys, time
pause, size = float(sys.argv[1]), int(sys.argv[2])
os.chdir(sys.argv[3])
number = 0
while not os.path.exists("enough"):
    out = b"".join([b"%012d %s\\n" % (n, b"x" * (n * 7 % 90)) for n in range(number, number + size)])
    number += size
    while out:
        out = out[os.write(1, out):]
    if pause:
        time.sleep(pause)
with open("done.new", "w") as file:
    file.write(str(number))
os.rename("done.new", "done")
time.sleep(100000)
"""
PATIENCE = 240.0
ONE_LINE = """
[ -e enough ] && exec sleep 100000
echo "$UPHOLD_SLOT $UPHOLD_NONCE end"
echo "$UPHOLD_SLOT $UPHOLD_NONCE end" >> runs
"""
ROTATIONS_KEPT = 500
MOST_CPU = 0.20
"""What of a core a flood of 100 MB/s may cost, supervisor and pump together."""


def kills(count: int, seed: int, folder: Path) -> Verdict:
    """Kill the supervisor `count` times, and now and then the pump too."""
    rng = random.Random(seed)
    with writing(folder, pause=0.005, size=50, max_size="1MB", keep=1000) as site:
        pid = site.worker("web")["pid"]
        for _ in range(count):
            time.sleep(rng.random() * 0.2)
            victims = [site.pid, *pumps(site)] if rng.random() < 0.3 else [site.pid]
            rng.shuffle(victims)
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            eventually(lambda dead=victims: all(map(is_gone, dead)), PATIENCE)
            site.ok("start")
        kept_its_process = site.worker("web")["pid"] == pid
        number = finish(site)
    wrong = check(site, number, f"seed {seed}")
    if not kept_its_process:
        wrong.append(f"seed {seed}: the worker was disturbed")
    return Verdict(count=count, violations=tuple(wrong), figures=(f"{number:,} lines",))


def rotations(count: int, seed: int, folder: Path) -> Verdict:
    """Rotate a log `count` times, compressed every second time, with the pump killed at random."""
    rng = random.Random(seed)
    done, wrong, lines = 0, [], 0
    while done < count:
        home = PumpHome(folder / f"pump{done}")
        home.configure(max_size=10_000, keep=1000, compress=bool(done // ROTATIONS_KEPT % 2))
        wanted = min(ROTATIONS_KEPT, count - done)
        try:
            home.worker(home.fifo("web.out"), WRITER, 0.001, 50, home.path)
            while len(places(home.logs, "web.log")) <= wanted:
                pump = home.started()
                try:
                    pump.wait(rng.uniform(0.0, 0.5))
                except TimeoutExpired:
                    pump.kill()
                pump.wait()
            home.started()
            number = finish_writer(home.path)
            home.stop()
            done += len(places(home.logs, "web.log")) - 1
            wrong += check_files(places(home.logs, "web.log"), number, f"seed {seed}")
            lines += number
        finally:
            home.close()
    return Verdict(count=done, violations=tuple(wrong), figures=(f"{lines:,} lines",))


def flood(count: int, seed: int, folder: Path, *, limit: float | None = MOST_CPU) -> Verdict:
    """Write as fast as the pump moves for `count` seconds; only the newest files are kept."""
    with writing(folder, pause=0, size=1000, max_size="50MB", keep=3) as site:
        before, began = cpu_seconds(site.pid), time.monotonic()
        pumped = sum(map(cpu_seconds, pumps(site)))
        time.sleep(count)
        took = time.monotonic() - began
        supervisor = (cpu_seconds(site.pid) - before) / took
        pump = (sum(map(cpu_seconds, pumps(site))) - pumped) / took
        number = finish(site)
    wrong = check(site, number, f"seed {seed}", from_the_first=False)
    speed = number * 58.5 / took / 1e6
    cost = (supervisor + pump) * 100 / speed
    if limit is not None and cost >= limit:
        wrong.append(f"seed {seed}: at 100 MB/s it costs {cost:.0%} of a core")
    figures = (
        f"{speed:.0f} MB/s",
        f"CPU of the supervisor {supervisor:.1%}",
        f"of the pump {pump:.0%}",
    )
    return Verdict(count=count, violations=tuple(wrong), figures=figures)


def one_liners(count: int, seed: int, folder: Path) -> Verdict:
    """Let `count` runs of many slots write one line each and exit at once."""
    site = Site(folder)
    slots = min(50, 2 + count // 20)
    endless = {"restart": "always", "max_restarts": 10**6}
    at_once = {"first": "0s", "base": "10ms", "max": "10ms"}
    terms = {"command": ONE_LINE, "shell": True, "replicas": slots, "backoff": at_once}
    site.workers(web={**terms, **endless, "logs": {"max_size": "1MB", "keep": 1000}})
    runs = folder / "runs"
    try:
        site.ok("start")
        eventually(lambda: runs.exists() and runs.read_bytes().count(b"\n") >= count, PATIENCE * 4)
        (folder / "enough").touch()
        settled = f"all {slots} slots at rest"
        eventually(lambda: len(sleeping(site)) == slots, PATIENCE, settled)
        site.ok("stop", timeout=PATIENCE)
    finally:
        site.close()
    said = Counter(runs.read_bytes().splitlines())
    kept: Counter[bytes] = Counter()
    for index in range(1, slots + 1):
        log = "web.log" if index == 1 else f"web.{index}.log"
        for path in places(site.home / "logs", log):
            kept.update(content(path).splitlines())
    wrong = [f"seed {seed}: lost: {line!r}" for line in said - kept]
    wrong += [f"seed {seed}: doubled or torn: {line!r}" for line in kept - said]
    return Verdict(count=said.total(), violations=tuple(wrong), figures=(f"{slots} slots",))


def no_reader(count: int, seed: int, folder: Path) -> Verdict:
    """Stop the pump for `count` seconds while the worker goes on writing; then kill it too."""
    with writing(folder, pause=0.001, size=50, max_size="10MB", keep=1000) as site:
        eventually(lambda: site.log("web"), PATIENCE)
        (pump,) = pumps(site)
        os.kill(pump, signal.SIGSTOP)
        time.sleep(count)
        alive = site.worker("web")["state"] == "running"
        os.kill(pump, signal.SIGCONT)
        size = len(site.log("web"))
        eventually(lambda: len(site.log("web")) > size, PATIENCE)
        os.kill(pump, signal.SIGKILL)
        eventually(lambda: pumps(site) not in ([], [pump]), PATIENCE, "another pump")
        number = finish(site)
    wrong = check(site, number, f"seed {seed}")
    if not alive:
        wrong.append(f"seed {seed}: the worker did not outlive the silence of its reader")
    return Verdict(count=count, violations=tuple(wrong), figures=(f"{number:,} lines",))


@contextmanager
def writing(folder: Path, *, pause: float, size: int, max_size: str, keep: int) -> Iterator[Site]:
    """Have a worker write numbered lines under a supervisor; everything has ended afterwards."""
    site = Site(folder)
    command = [sys.executable, "-ISc", WRITER, str(pause), str(size), str(folder)]
    logs = {"max_size": max_size, "keep": keep, "compress": False}
    site.workers(web={"command": command, "logs": logs})
    try:
        site.ok("start")
        yield site
    finally:
        site.close()


def finish(site: Site) -> int:
    """Let the writer come to its end, stop everything, and give how many lines it wrote."""
    number = finish_writer(site.folder)
    site.ok("stop", timeout=PATIENCE)
    return number


def finish_writer(folder: Path) -> int:
    (folder / "enough").touch()
    done = folder / "done"
    eventually(done.exists, PATIENCE, "the writer has written its last line")
    return int(done.read_text())


def check(site: Site, number: int, seed: str, *, from_the_first: bool = True) -> list[str]:
    files = places(site.home / "logs", "web.log")
    return check_files(files, number, seed, from_the_first=from_the_first)


def check_files(
    files: list[Path], number: int, seed: str, *, from_the_first: bool = True
) -> list[str]:
    """Read numbered lines back; name the first thing that is wrong."""
    expected = 0 if from_the_first else None
    for path in files:
        for line in content(path).splitlines():
            found = number_of(line)
            if found is None:
                return [f"{seed}: torn line in {path.name}: {line!r}"]
            if expected is not None and found != expected:
                what = "doubled" if found < expected else "lost"
                return [f"{seed}: {what} in {path.name}: {found} where {expected} should be"]
            expected = found + 1
    return [] if expected == number else [f"{seed}: the log ends at {expected}, not at {number}"]


def number_of(line: bytes) -> int | None:
    digits, _, padding = line.partition(b" ")
    if len(digits) != 12 or not digits.isdigit():
        return None
    return int(digits) if padding == b"x" * (int(digits) * 7 % 90) else None


def pumps(site: Site) -> list[int]:
    return [
        pid
        for pid in site.processes()
        if b"/pump/__main__.py" in command_of(pid) and not is_gone(pid)
    ]


def sleeping(site: Site) -> list[int]:
    return [pid for pid in site.processes() if command_of(pid).startswith(b"sleep\0")]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main(
        {
            "kills": kills,
            "rotations": rotations,
            "flood": flood,
            "one_liners": one_liners,
            "no_reader": no_reader,
        }
    )
