"""T09: a worker that stands still is found by its silence, ended, and comes back; not too early.

Workers beat ten times a second and are stopped with SIGSTOP, some at once. How long each was
left alone is measured from outside: it is ended when three beats are missing, whoever else is.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

from proofs.clocks import BEATER
from proofs.living import lives
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from uphold.testing.waiting import until

STALE_AFTER = 1.0
WATCHDOG = 3 * STALE_AFTER
LIMIT = 1.0
"""Seconds after which it must be ended once its silence is too long."""
TOGETHER = 10
TERMS = f"""
[supervisor]
name = "freezing"
[workers.steady]
command = {json.dumps([sys.executable, "-ISc", BEATER])}
heartbeat = {{ stale_after = "{STALE_AFTER}s" }}
[workers.web]
command = {json.dumps([sys.executable, "-ISc", BEATER])}
replicas = {TOGETHER}
heartbeat = {{ stale_after = "{STALE_AFTER}s" }}
max_restarts = "unlimited"
backoff = {{ first = "0s", base = "10ms", max = "10ms" }}
"""


def frozen(count: int, seed: int, folder: Path, *, limit: float | None = LIMIT) -> Verdict:
    """Freeze `count` workers; `limit` is for how long each may stand still beyond its watchdog."""
    rng = random.Random(seed)
    wrong: list[str] = []
    times: list[float] = []
    with closing(Nursery()) as nursery, closing(Station(folder / "site", nursery)) as station:
        station.declare(TERMS)
        station.start()
        assert station.settle(steady="running"), "it did not start"
        steady = station.rows()["steady"]["pid"]
        while len(times) < count:
            slots = rng.sample(range(1, TOGETHER + 1), min(TOGETHER, count - len(times)))
            names = ["web" if number == 1 else f"web.{number}" for number in slots]
            times += freeze(station, names, rng)
        if station.rows()["steady"]["pid"] != steady:
            wrong.append("one that went on beating was ended")
    if limit is not None and max(times) > WATCHDOG + limit:
        wrong.append(f"one stood still for {max(times):.2f} s")
    if limit is not None and min(times) < WATCHDOG - limit:
        wrong.append(f"one was ended after {min(times):.2f} s already")
    figures = (f"ended after {min(times):.2f} to {max(times):.2f} s of silence",)
    return Verdict(
        count=len(times),
        violations=tuple(f"seed {seed}: {each}" for each in wrong),
        figures=figures,
    )


def freeze(station: Station, names: list[str], rng: random.Random) -> list[float]:
    """Freeze the workers of these slots, and wait for their ends; give how long each stood still."""
    left, taken = {}, []
    for name, pid in until(lambda: beating(station, names), PATIENCE, "workers that beat").items():
        time.sleep(rng.random() * 0.1)
        os.kill(pid, signal.SIGSTOP)
        left[name] = pid, time.monotonic()
    deadline = time.monotonic() + PATIENCE
    while left:
        for name, (pid, since) in tuple(left.items()):
            if not lives(pid):
                taken.append(time.monotonic() - since)
                del left[name]
        assert time.monotonic() < deadline, f"frozen and never found: {left}"
        time.sleep(0.005)
    return taken


def beating(station: Station, names: list[str]) -> dict[str, int] | None:
    """Give the processes of these slots once each has been heard."""
    rows = station.rows()
    found = {name: rows.get(name, {}) for name in names}
    if not all(map(is_heard, found.values())):
        return None
    return {name: row["pid"] for name, row in found.items()}


def is_heard(row: dict[str, str]) -> bool:
    """Tell whether this run, and not the one before it, has been heard."""
    return row.get("state") == "running" and (row["last_heartbeat_at"] or "") > row["since"]


if __name__ == "__main__":
    main({"frozen": frozen})
