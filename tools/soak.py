"""The long proofs of tests/proofs in one table, on two lanes: some live, the others calculate.

Those that only calculate (on virtual time, or by bytes) take what the others leave of the
machine, which wait most of the time. Each row is a program of its own with a seed that is
printed; `--write` keeps the table in docs/reliability.md. `--scale 0.01` is a rehearsal, `--only
T01` a part. `--parts 20` runs each proof in pieces with seeds of their own and keeps their sum, so
that one that is cut short loses its last piece only; `--parts 20 --more 8` runs eight pieces more
of what the page already has.
"""

from __future__ import annotations

import argparse
import datetime as dt
import fcntl
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

RUNNING: set[subprocess.Popen[str]] = set()
OVER = threading.Event()
"""Somebody has had enough: no further proof begins."""
ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reliability.md"
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"


@dataclass(frozen=True, slots=True)
class Row:
    """One proof of the table."""

    test: str
    what: str
    module: str
    proof: str
    count: int


PROOFS = "tests/proofs"
CALCULATE = ("T02", "T03", "T18")
"""They use a processor and nothing else, so they may run beside real processes, behind them."""
TABLE = (
    Row("T01", "kill -9 at random instants, warm", f"{PROOFS}/crashing.py", "warm", 10_000),
    Row("T01", "kill -9 at random instants, cold", f"{PROOFS}/crashing.py", "cold", 1_000),
    Row(
        "T02",
        "seeds of the simulation, 1 h x 20 workers",
        f"{PROOFS}/simulating.py",
        "seeds",
        20_000,
    ),
    Row("T03", "steps against the reference model", f"{PROOFS}/modelling.py", "steps", 1_000_000),
    # More than there are, so all of them.
    Row("T04a", "kill, EIO, ENOSPC at each call", f"{PROOFS}/crash_points.py", "core", 10_000),
    Row("T04a", "the same, the journal alone", f"{PROOFS}/journal_points.py", "journal", 10_000),
    Row("T04a", "the same, each flag obeyed", f"{PROOFS}/handler_points.py", "flags", 50_000),
    Row("T04c", "power cuts on ext4", f"{PROOFS}/power_cuts.py", "cuts", 2_000),
    Row("T05", "workers that crash for ever", f"{PROOFS}/looping.py", "flapping", 1_000),
    Row("T06", "logs: supervisor killed", f"{PROOFS}/logging_lines.py", "kills", 500),
    Row("T06", "logs: rotations", f"{PROOFS}/logging_lines.py", "rotations", 1_000),
    Row("T06", "logs: seconds of flood", f"{PROOFS}/logging_lines.py", "flood", 60),
    Row("T06", "logs: one-line processes", f"{PROOFS}/logging_lines.py", "one_liners", 10_000),
    Row("T06", "logs: seconds without a reader", f"{PROOFS}/logging_lines.py", "no_reader", 60),
    Row("T07", "trees of each kind ended", f"{PROOFS}/trees.py", "trees", 1_000),
    Row("T08", "forced reuses of a PID", f"{PROOFS}/identities.py", "reuses", 10_000),
    Row("T09", "orphans reaped", f"{PROOFS}/orphans.py", "orphans", 10_000),
    Row("T09", "fork bombs of 400", f"{PROOFS}/orphans.py", "bombs", 20),
    Row("T09", "endless fork bombs, capped", f"{PROOFS}/orphans.py", "capped", 20),
    Row("T09", "frozen workers found", f"{PROOFS}/freezing.py", "frozen", 100),
    Row("T10", "full and read-only disks", f"{PROOFS}/full_disks.py", "disks", 20),
    Row("T11", "clock jumps in every state", f"{PROOFS}/clocks.py", "jumps", 100),
    Row("T15", "hostile flags of 59 kinds", f"{PROOFS}/hostile_flags.py", "hostile", 100_000),
    Row("T15", "flags swapped while claimed", f"{PROOFS}/hostile_flags.py", "swaps", 10_000),
    Row("T13", "MariaDB, recorder killed", f"{PROOFS}/outages.py", "mariadb", 100),
    Row("T13", "PostgreSQL, recorder killed", f"{PROOFS}/outages.py", "postgresql", 100),
    Row("T18", "CPU seconds of configuration fuzz", f"{PROOFS}/fuzzing.py", "config", 3_600),
    Row("T18", "CPU seconds of state fuzz", f"{PROOFS}/fuzzing.py", "state", 3_600),
    Row("T18", "CPU seconds of slot file fuzz", f"{PROOFS}/fuzzing.py", "slots", 3_600),
    Row("T18", "CPU seconds of control frame fuzz", f"{PROOFS}/fuzzing.py", "frames", 3_600),
    Row(
        "T18", "CPU seconds of notice and heartbeat fuzz", f"{PROOFS}/fuzzing.py", "notices", 3_600
    ),
    Row("T20", "seconds of 1,000 workers with churn", f"{PROOFS}/soaking.py", "churn", 3_600),
    Row("T21", "operations of 50 clients", f"{PROOFS}/commanding.py", "operations", 10_000),
    Row("T22", "upgrades with live workers", f"{PROOFS}/upgrading.py", "upgrades", 20),
)
"""The full figures; the gate runs the same proofs with smaller ones."""


def main() -> int:
    """Run the chosen proofs; 0 when none found a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="a test such as T01, or a proof's name")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply every count")
    parser.add_argument("--seed", type=int, help="the same cases again")
    parser.add_argument("--write", action="store_true", help="keep the lines in the page")
    parser.add_argument("--parts", type=int, default=1, help="run each proof in so many pieces")
    parser.add_argument("--more", type=int, help="so many pieces more, added to the line")
    args = parser.parse_args()
    chosen = [r for r in TABLE if not args.only or {r.test, r.proof} & set(args.only)]
    print(
        f"{'test':6}{'what':48}{'count':>10}{'violations':>12}{'seconds':>9}  figures", flush=True
    )
    lanes = [[row for row in chosen if (row.test in CALCULATE) is lane] for lane in (True, False)]
    with ThreadPoolExecutor(len(lanes)) as pool:
        try:
            return 1 if sum(pool.map(lambda lane: go_along(lane, args), lanes)) else 0
        except KeyboardInterrupt:
            OVER.set()
            for each in tuple(RUNNING):
                each.send_signal(signal.SIGINT)
            raise


def go_along(lane: list[Row], args: argparse.Namespace) -> int:
    """Run the proofs of one lane, one after the other; tells how many found something."""
    bad = 0
    for row in lane:
        count = max(1, round(row.count * args.scale / args.parts))
        for part in range(args.parts if args.more is None else args.more):
            seed = secrets.randbelow(2**31) if args.seed is None else args.seed + part
            verdict = prove(row, count, seed)
            if OVER.is_set():
                return bad
            bad += bool(verdict["violations"])
            print(line(row, verdict), flush=True)
            for violation in verdict["violations"][:20]:  # type: ignore[index]
                print(f"      {violation}", file=sys.stderr, flush=True)
            if args.write:
                keep(row, verdict, add=part > 0 or args.more is not None)
    return bad


def prove(row: Row, count: int, seed: int) -> dict[str, object]:
    """Run one proof; a program that says nothing is a violation too."""
    began = time.perf_counter()
    command = [sys.executable, row.module, row.proof, str(count), "--seed", str(seed)]
    finding = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}  # as pytest finds them too
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=finding,
        start_new_session=True,
    ) as running:
        RUNNING.add(running)
        if row.test in CALCULATE:
            step_back(running.pid)
        said, complained = running.communicate()
        RUNNING.discard(running)
    try:
        verdict: dict[str, object] = json.loads(said.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        text = f"seed {seed}: the proof ended with {running.returncode}: {complained[-2000:]}"
        verdict = {"count": 0, "violations": [text], "figures": [], "seed": seed}
    return {**verdict, "seconds": time.perf_counter() - began}


def step_back(pid: int) -> None:
    """Let a process have only what nobody else wants."""
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, pid, 19)
        # Where the kernel shares by sessions, niceness counts only within one.
        Path(f"/proc/{pid}/autogroup").write_text("19")


def line(row: Row, verdict: dict[str, object]) -> str:
    """Write a verdict as a line for the terminal."""
    figures = ", ".join(map(str, verdict["figures"]))  # type: ignore[call-overload]
    found = len(verdict["violations"])  # type: ignore[arg-type]
    count, seconds = verdict["count"], verdict["seconds"]
    return f"{row.test:6}{row.what:48}{count:>10,}{found:>12}{seconds:>9.0f}  {figures}"


def keep(row: Row, verdict: dict[str, object], *, add: bool) -> None:
    """Put or replace the line of this proof in the page, or add this piece to it."""
    # Several soaks may run beside each other, each with its own tests: one core sleeps otherwise.
    with PAGE.open() as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        _keep(row, verdict, add=add)


def _keep(row: Row, verdict: dict[str, object], *, add: bool) -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    table, _, after = rest.partition(END)
    name = f"{row.test} {row.proof}"
    lines = table.strip().splitlines()
    old = next((each for each in lines if each.startswith(f"| {name} |")), None)
    figures = "; ".join(map(str, verdict["figures"]))  # type: ignore[call-overload]
    sums = [verdict["count"], len(verdict["violations"]), round(verdict["seconds"])]  # type: ignore[arg-type,call-overload]
    if old is not None:
        lines.remove(old)
        if add:
            so_far = [int(re.sub(r"\D", "", cell)) for cell in old.split("|")[3:6]]
            sums = [one + more for one, more in zip(so_far, sums, strict=True)]
            figures = f"of the last piece: {figures}"
    today = dt.datetime.now(tz=dt.UTC).date()
    cells = (name, row.what, f"{sums[0]:,}", sums[1], f"{sums[2]} s", figures, today)
    lines.append("| " + " | ".join(map(str, cells)) + " |")
    order = [f"| {r.test} {r.proof} |" for r in TABLE]
    head, body = lines[:2], lines[2:]
    body.sort(key=lambda each: next((i for i, o in enumerate(order) if each.startswith(o)), 999))
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(head + body) + f"\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
