"""T01: the supervisor is killed at random instants, and its workers too; nothing doubles or is lost.

`warm` forks supervisors that have their imports behind them, so that most kills hit the
moments that matter; `cold` runs `uphold start` as people do. Seasons of kills are in
`crash_seasons.py`, which is a program of its own; `witnessing.py` looks without uphold's code.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from proofs.disks import in_memory
from proofs.proving import Verdict, main

TESTS = Path(__file__).resolve().parent.parent


def warm(count, seed, folder):
    """Kill a forked supervisor `count` times."""
    return crash("warm", count, seed, folder)


def cold(count, seed, folder):
    """Kill what `uphold start` starts `count` times."""
    return crash("cold", count, seed, folder)


def crash(way, count, seed, folder):
    # In memory: an fsync of a real disk costs more than all the rest, and a kill loses no page.
    home = in_memory(folder, f"{way}-")
    program = Path(__file__).with_name("crash_seasons.py")
    # The compiled modules are kept: nobody compiles them at each start.
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    process = subprocess.Popen(
        [sys.executable, program, way, str(count), str(seed), home],
        stdout=subprocess.PIPE,
        text=True,
        env={**environ, "PYTHONPATH": str(TESTS)},
    )
    try:
        said = process.communicate()[0]
    finally:
        process.terminate()  # if we are interrupted; it ends whatever it has started
        process.wait()
        shutil.rmtree(home, ignore_errors=True)
    assert process.returncode == 0, f"seed {seed}: the harness ended with {process.returncode}"
    found = json.loads(said)
    return Verdict(
        count=found["count"],
        violations=tuple(found["violations"]),
        figures=tuple(found["figures"]),
    )


if __name__ == "__main__":
    main({"warm": warm, "cold": cold})
