"""docs/benchmarks.md, written from a real run."""

# ruff: noqa: E501 - a paragraph of a page is one line

from __future__ import annotations

import datetime as dt
import os
import platform
from pathlib import Path

from benching.tables import GROWTH_HEADER, HEADER, markdown

PAGE = Path(__file__).resolve().parents[2] / "docs/benchmarks.md"

TEXT = """# Benchmarks

Written by `make bench WRITE=1` from one run; all three columns were measured in that run, on the same machine, taking turns: what is compared is of the same minutes.

{machine}

{table}

## Growth

{growth}

Reached: 2.4 at most, or, where the floor itself takes more than twice as long for twice as many, hardly more than the floor (1.1 times its ratio).

## What is compared

- *floor*: the least that Python can do, `tools/benching/floor.py`. It starts processes by `posix_spawn`, watches pidfds with one epoll, starts again what ends, and does nothing else: no state, no logs, no orders. For `status` it is an interpreter that does nothing, for logs it is one `cat` for each worker.
- *supervisord* {supervisord}, with the same interpreter, `startsecs=0` so that it may call a worker running at once, and limits that let it hold all workers.
- *uphold* {uphold}, {install}.

Workers are `sleep`. They are counted from outside: a worker is alive when the kernel shows its command line, not when a supervisor says so. "Reported" means in addition that `uphold start` has come back, or that supervisord's log has called every worker running. The stop of supervisord is measured from SIGTERM to its end, its reload by `supervisorctl update`. Memory is the sum of PSS over the supervisor's own processes, with uphold's pump, two seconds after the start. PSS shares what several Pythons have in common, so it moves with what else runs; compare within a row. CPU is the processor time of the same processes. The flood is {flood:,.0f} MB of lines of 91 bytes from one worker, in files of 50 MB of which three are kept, not compressed.

The targets were set on a machine where the floor's figures were: 1.3 ms for one restart, 0.5 s for all of 1,000, 0.066 s for their stop, 9 ms for an interpreter, 690 MB/s and 0.8 ms for each MB, 0.20 s for the lines. A figure that misses its plain target and would reach it multiplied by the floor of this run is marked *reached, scaled*, with the factor; rows without such a floor take that of an interpreter, measured with as many workers about, in the same minutes. Memory is never scaled, nor is a target that is relative to another column: the speed of the machine is in that already.

Figures are medians, of {rounds} turns: {rounds} starts, two stops, in two of the turns {kills} killed workers, {asks} questions and two reloads each (fewer of supervisord with 1,000 workers, and no more killed than there are). The machine shares its host, whose speed changes within minutes; a median of two turns some minutes apart is the least that says something. Its file system remembers: ext4 passes over files that were removed in the last six minutes, one by one, so a run that follows thousands of removals (another run, the tests) shows starts up to twice as slow, of whoever makes files. Within a run nothing is removed before the last figure is taken.
"""


def machine() -> str:
    """Describe the machine without giving it away."""
    with Path("/proc/meminfo").open() as file:
        memory = int(file.readline().split()[1]) / 1024**2
    load = os.getloadavg()[0]
    return (
        f"{dt.datetime.now(tz=dt.UTC).date()}: {os.cpu_count()} cores, {memory:.0f} GiB, "
        f"Linux {platform.release().split('-')[0]}, {platform.python_implementation()} "
        f"{platform.python_version()}; load at the beginning {load:.1f}."
    )


def write(lines: list[tuple[str, ...]], growing: list[tuple[str, ...]], **facts: object) -> None:
    """Write the page."""
    grown = markdown(GROWTH_HEADER, growing) if growing else "Not measured in this run."
    PAGE.write_text(TEXT.format(table=markdown(HEADER, lines), growth=grown, **facts))
