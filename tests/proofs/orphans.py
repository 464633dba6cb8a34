"""T09: orphans are let go of, fork bombs end, and a frozen worker can be stopped.

All under a real supervisor, to which orphans come; /proc is looked at from outside.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from journeys.site import Site, eventually, is_gone
from proofs.living import fields, zombies_of
from proofs.proving import Verdict, main
from uphold.host.processes.hierarchies import find_hierarchies

PATIENCE = 240.0
BOMB = 400
CAP = 60
FORKER = """
import os, random, sys, time
count, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))
supervisor, came = os.getppid(), os.open("came", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for number in range(count):
    between, seed = os.fork(), chance.random()
    if between == 0:
        mine = random.Random(seed)
        if os.fork() == 0:
            if mine.random() < 0.3:
                os.setsid()
            time.sleep(0.02 + mine.random() * 0.2)
            os.write(came, b"." if os.getppid() == supervisor else b"?")
        os._exit(0)
    os.waitpid(between, 0)
time.sleep(100000)
"""
BOMBER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
wanted = int(sys.argv[1])
while wanted > 1:
    half = wanted // 2
    if os.fork() == 0:
        wanted = half
        if half % 3 == 0:
            os.setsid()
    else:
        wanted -= half
time.sleep(100000)
"""
ENDLESS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0 and os.getpid() % 3 == 0:
            os.setsid()
    except OSError:
        time.sleep(0.1)
"""


def orphans(count: int, seed: int, folder: Path, *, limit: float = 1.0) -> Verdict:
    """Make `count` orphans; none may stay dead and unreaped for longer than `limit` seconds."""
    site = Site(folder)
    site.workers(forker={"command": [sys.executable, "-ISc", FORKER, str(count), str(seed)]})
    try:
        site.ok("start")
        ages = watch_zombies(site, folder / "came", count)
        wrong = [f"seed {seed}: {each}" for each in freeze_and_stop(site)]
    finally:
        site.close()
    oldest, came = max(ages, default=0.0), (folder / "came").read_bytes().count(b".")
    if oldest > limit:
        wrong.append(f"seed {seed}: a zombie was seen for {oldest:.2f} s")
    if came < count:
        wrong.append(f"seed {seed}: only {came} of {count} orphans came to the supervisor")
    figures = (f"oldest zombie {oldest:.2f} s",)
    return Verdict(count=count, violations=tuple(wrong), figures=figures)


def watch_zombies(site: Site, came: Path, count: int) -> list[float]:
    """Watch until all have been made and none is left; give the age of the oldest at each look.

    Before its end each orphan adds a character to `came`.
    """
    first_seen: dict[tuple[int, str], float] = {}
    ages: list[float] = []
    supervisor = site.pid
    quiet = 0
    deadline = time.monotonic() + PATIENCE + count / 20
    while quiet < 3:
        assert time.monotonic() < deadline, f"orphans or zombies for ever: {first_seen}"
        made = came.exists() and came.stat().st_size >= count
        now = time.monotonic()
        dead = {(pid, each[19]) for pid in zombies_of(supervisor) if (each := fields(pid))}
        first_seen = {each: first_seen.get(each, now) for each in dead}
        ages.append(max((now - since for since in first_seen.values()), default=0.0))
        quiet = quiet + 1 if made and not dead else 0
        time.sleep(0.1)
    return ages


def freeze_and_stop(site: Site) -> list[str]:
    """Freeze a worker with SIGSTOP; a stop must end it all the same."""
    pid = site.worker("forker")["pid"]
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: fields(pid)[:1] == ["T"], PATIENCE, "a frozen worker")
    site.ok("stop", "forker", timeout=PATIENCE)
    return [] if is_gone(pid) else ["a frozen worker outlived its stop"]


def bombs(count: int, seed: int, folder: Path, *, limit: float = 1.0) -> Verdict:
    """Stop a worker that has become 400 deaf processes, `count` times, within its grace and `limit`."""
    rng = random.Random(seed)
    site = Site(folder)
    bomber = [sys.executable, "-ISc", BOMBER, str(BOMB)]
    site.workers(bomb={"command": bomber, "stop": {"grace": "100ms"}})
    wrong, times = [], []
    try:
        site.ok("start")
        for number in range(count):
            wanted = rng.choice((BOMB, BOMB, BOMB // 2))  # some are stopped while they still grow
            eventually(lambda w=wanted: len(shrapnel(site)) >= w, PATIENCE, "a bomb")
            began = time.monotonic()
            site.ok("stop", "bomb", timeout=PATIENCE)
            times.append(time.monotonic() - began - 0.1)
            wrong += [f"seed {seed}, bomb {number}: {pid} lives" for pid in shrapnel(site)]
            site.ok("start", "bomb", timeout=PATIENCE)
        site.ok("stop", timeout=PATIENCE)
    finally:
        site.close()
    if max(times) > limit:
        wrong.append(f"seed {seed}: a bomb was gone only after {max(times):.2f} s")
    figures = (f"slowest {max(times):.2f} s with the command itself",)
    return Verdict(count=count, violations=tuple(wrong), figures=figures)


def capped(count: int, seed: int, folder: Path, *, limit: float = 1.0) -> Verdict:
    """Stop a worker that forks for ever and may be `CAP` processes; it never is one more."""
    if not find_hierarchies().counts:
        return Verdict(count=0, figures=("nothing counts processes here",))
    site = Site(folder)
    terms = {"stop": {"grace": "100ms"}, "limits": {"processes": CAP}}
    site.workers(bomb={"command": [sys.executable, "-ISc", ENDLESS], **terms})
    wrong, times, rng = [], [], random.Random(seed)
    try:
        site.ok("start")
        for number in range(count):
            eventually(lambda: len(shrapnel(site)) >= CAP, PATIENCE, "a bomb that is full")
            time.sleep(rng.random() * 0.2)
            grown = len(shrapnel(site))
            if grown > CAP:
                wrong.append(f"seed {seed}, bomb {number}: {grown} processes instead of {CAP}")
            began = time.monotonic()
            site.ok("stop", "bomb", timeout=PATIENCE)
            times.append(time.monotonic() - began - 0.1)
            wrong += [f"seed {seed}, bomb {number}: {pid} lives" for pid in shrapnel(site)]
            site.ok("start", "bomb", timeout=PATIENCE)
        site.ok("stop", timeout=PATIENCE)
    finally:
        site.close()
    if max(times) > limit:
        wrong.append(f"seed {seed}: a capped bomb was gone only after {max(times):.2f} s")
    figures = (f"never above {CAP}", f"slowest {max(times):.2f} s with the command itself")
    return Verdict(count=count, violations=tuple(wrong), figures=figures)


def shrapnel(site: Site) -> list[int]:
    """Find the processes of the bomb that live."""
    found = []
    for pid in site.processes():
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"SIG_IGN" in command and not is_gone(pid):
            found.append(pid)
    return found


if __name__ == "__main__":
    main({"orphans": orphans, "bombs": bombs, "capped": capped})
