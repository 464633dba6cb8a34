"""Measures a single pass over a healthy home. `make bench` runs it after the other figures."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKERS, ROUNDS, LATEST = 10, 15, 0.5
UPHOLD = [sys.executable, "-m", "uphold"]


def main() -> int:
    """Measure and print; the exit code says whether the figure is below its target."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "uphold.toml")
        config.write_text(
            "".join(f'[workers.w{n}]\ncommand = ["sleep", "100000"]\n' for n in range(WORKERS))
        )
        subprocess.run([*UPHOLD, "-c", config, "once", "-q"], check=True)
        try:
            passes = sorted(passed(config) for _ in range(ROUNDS))
        finally:
            subprocess.run([*UPHOLD, "-c", config, "stop", "-q"], check=True)
    median = statistics.median(passes)
    print(
        f"uphold once, {WORKERS} healthy workers: median {median * 1000:.0f} ms, "
        f"slowest {passes[-1] * 1000:.0f} ms (target: under {LATEST * 1000:.0f} ms)"
    )
    return 0 if median < LATEST else 1


def passed(config: Path) -> float:
    """Time one pass, with the start of the command line."""
    began = time.perf_counter()
    subprocess.run([*UPHOLD, "-c", config, "once", "-q"], check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
