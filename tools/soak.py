"""The longer proofs: what `make test` does in short form, many times over, in one table.

Everything random is drawn from a seed that the failing test prints.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HARNESS = ROOT / "tests/drivers/crash_harness.py"
REPEATED = (
    ("kills of the journal's writer", "tests/journal/test_writing.py", "kill", 30),
    ("kills of the pump", "tests/pump/test_running.py", "kill", 30),
    ("properties of the planner", "tests/core/test_properties.py", "", 1),
    ("lives of the real daemon", "tests/journeys/test_lives.py", "", 1),
)


def main() -> int:
    """Run every proof and print test, count, violations and time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000, help="kills of the driver's process")
    parser.add_argument("--rounds", type=int, default=10, help="how often the rest is repeated")
    args = parser.parse_args()
    print(f"{'proof':38}{'count':>8}{'violations':>12}{'seconds':>10}", flush=True)
    bad = row("kills of a supervisor while it starts", args.kills, lambda: crash(args.kills))
    for name, path, chosen, each in REPEATED:
        bad += row(
            name,
            each * args.rounds,
            lambda p=path, c=chosen: sum(pytest(p, c) for _ in range(args.rounds)),
        )
    return 1 if bad else 0


def row(name: str, count: int, proof: object) -> int:
    """Run one proof and print its line."""
    began = time.perf_counter()
    bad: int = proof()  # type: ignore[operator]
    print(f"{name:38}{count:>8}{bad:>12}{time.perf_counter() - began:>10.0f}", flush=True)
    return bad


def crash(kills: int) -> int:
    """Kill a process that starts workers at random instants; the harness checks after each."""
    seed = str(secrets.randbelow(2**31))
    with tempfile.TemporaryDirectory(prefix="uphold-soak-") as folder:
        done = subprocess.run(
            [sys.executable, str(HARNESS), folder, str(kills), seed],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or done.stdout.strip():
        print(f"seed {seed}: {done.stdout}{done.stderr}", file=sys.stderr)
        return 1
    return 0


def pytest(path: str, chosen: str) -> int:
    """Run some tests once, in a new random order."""
    command = [sys.executable, "-m", "pytest", "-n", "2", str(ROOT / path)]
    done = subprocess.run(
        command + (["-k", chosen] if chosen else []),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
