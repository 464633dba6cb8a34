"""Measures how soon a flag is claimed, and its receipt written. `make bench` runs it.

A real daemon and a share in a temporary folder; both figures are seen from outside, as whoever
drops the flag sees them.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FLAGS, POLL, PATIENCE = 20, 0.2, 30.0
CLAIMED, ANSWERED = POLL + 0.1, 0.05
"""Targets, in seconds."""
UPHOLD = [sys.executable, "-m", "uphold"]
FOLDERS = (
    *("00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS"),
    *("Worker_Inbox", "Worker_Outbox"),
)
CONFIG = f"""
[inbox]
share = "share"
poll_every = "{POLL * 1000:.0f}ms"
[workers.watcher]
command = ["sleep", "100000"]
"""


def main() -> int:
    """Measure and print; the targets stand beside the figures."""
    with tempfile.TemporaryDirectory() as folder:
        config, share = Path(folder, "uphold.toml"), Path(folder, "share")
        config.write_text(CONFIG)
        for name in FOLDERS:
            (share / name).mkdir(parents=True)
        subprocess.run([*UPHOLD, "-c", config, "start", "-q"], check=True)
        try:
            claims, seen = dropped(share)
            ends = ended(config)
        finally:
            subprocess.run([*UPHOLD, "-c", config, "stop", "-q"], check=True)
    print(f"{FLAGS} flags, the inbox looked at every {POLL * 1000:.0f} ms:")
    show("from its rename into the inbox to its claim", claims, CLAIMED)
    answers = [at - ends[task] for task, at in seen.items()]
    show("from the end of its job to its receipt", answers, ANSWERED)
    return 0


def dropped(share: Path) -> tuple[list[float], dict[str, float]]:
    """Drop flags one by one; give how long each lay there, and when its receipt was seen."""
    claims, seen = [], {}
    for number in range(FLAGS):
        time.sleep(random.uniform(0, POLL))  # anywhere between two looks
        task = f"task_20260101_000000_{number:04d}"
        handler = "resume_watcher" if number % 2 else "pause_watcher"
        path = share / "Worker_Inbox" / f"supervisor_{handler}_{task}.flag"
        flag = {"task_id": task, "handler": handler, "worker_id": "watcher"}
        part = path.with_suffix(".tmp")
        part.write_text(json.dumps(flag))
        part.rename(path)
        lay = time.perf_counter()
        wait_until(lambda path=path: not path.exists())
        claims.append(time.perf_counter() - lay)
        start = f"supervisor_result_{handler}_{task}_"
        wait_until(
            lambda start=start: any(n.startswith(start) for n in os.listdir(share / FOLDERS[-1]))
        )
        seen[task] = time.time()
    return claims, seen


def wait_until(true: Callable[[], bool]) -> None:
    """Look every millisecond until something is true."""
    until = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > until:
            raise SystemExit(f"nothing happened within {PATIENCE:g} s")
        time.sleep(0.001)


def ended(config: Path) -> dict[str, float]:
    """Give when the job of each task ended, by the journal."""
    asked = [*UPHOLD, "-c", config, "jobs", "--json", "-n", str(2 * FLAGS)]
    told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    rows = (json.loads(line) for line in told.splitlines())
    return {
        row["task_id"]: datetime.fromisoformat(row["finished_at"]).timestamp()
        for row in rows
        if row["task_id"] is not None and row["finished_at"] is not None
    }


def show(what: str, figures: Sequence[float], target: float) -> None:
    """Print a line."""
    print(
        f"  {what}: median {statistics.median(figures) * 1000:.0f} ms, "
        f"worst {max(figures) * 1000:.0f} ms (target: {target * 1000:.0f} ms)"
    )


if __name__ == "__main__":
    sys.exit(main())
