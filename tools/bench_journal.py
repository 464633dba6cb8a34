"""Measures what recording costs: events per second, what it adds to a restart, and its size.

`make bench` runs it after the other figures; run it on a quiet machine. A real journal is
compared with one in memory, by the batches that the engine hands in for a restart, so that only
the recording differs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from uphold.core.events import Exited, Recorded, StartBegun, Started
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Exit, Identity, SlotStatus, State
from uphold.journal.pruning import Keep
from uphold.journal.rows import Owner
from uphold.journal.writing import SqliteJournal, open_journal
from uphold.ports.journals import Batch, Journal
from uphold.testing.journals import MemoryJournal

OWNER = Owner(name="bench", hostname="h", pid=1)
TERMS = WorkerSpec(name="worker-1", command=("sleep", "1"))
WALL = 1_767_225_600.0
YEAR = 365 * 86400.0
WORKERS = 1_000
EVENTS_PER_RESTART = 8
"""exited, disconnected, starting, connected, ready, and the changes of state between them."""


def main() -> int:
    """Measure and print; the target stands beside each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--restarts", type=int, default=3_000)
    args = parser.parse_args()
    print(f"{'the journal':46}{'figure':>16}  target", flush=True)
    with tempfile.TemporaryDirectory(prefix="uphold-bench-") as folder:
        asyncio.run(batches(Path(folder), args.events))
        asyncio.run(restarts(Path(folder), args.restarts))
    return 0


def say(what: str, figure: str, target: str = "") -> None:
    """Print one row."""
    print(f"{what:46}{figure:>16}  {target}", flush=True)


async def batches(folder: Path, events: int) -> None:
    """Write events in batches of 500, and look at the file as it grows; then the limits at work."""
    keep = Keep(events=10**9, size=10**12)
    journal = opened(folder / "batches" / "journal.db", keep)
    sizes = []
    spent = 0.0
    for start in range(1, events + 1, 500):
        batch = Batch(events=[exited(n) for n in range(start, start + 500)], durable=True)
        began = time.perf_counter()
        await journal.append(batch)
        spent += time.perf_counter() - began
        if (start // 500 + 1) % max(1, events // 2_000) == 0:
            await journal._ask(work=journal._committer.checkpoint)  # noqa: SLF001
            sizes.append((start + 499, journal.path.stat().st_size))
    say("events per second, batches of 500, durable", f"{events / spent:,.0f}", "≥ 5,000")
    for count, size in sizes:
        say(f"bytes per event after {count:,}", f"{size / count:.0f}", "the same")
    mean = sizes[-1][1] / sizes[-1][0]
    await limits(journal, events)
    await journal.close()
    year(mean)


async def limits(journal: SqliteJournal, events: int) -> None:
    """Go on at the limit: for every row that comes one goes."""
    journal.settle(Keep(events=events))
    spent, more = 0.0, min(events, 20_000)
    for start in range(events + 1, events + more, 100):
        batch = Batch(events=[exited(n) for n in range(start, start + 100)])
        began = time.perf_counter()
        await journal.append(batch)
        spent += time.perf_counter() - began
    say("events per second at the limit, batches of 100", f"{more / spent:,.0f}", "≥ 5,000")


def year(mean: float) -> None:
    """Compute what a year of 1,000 workers leaves, each restarted once a day, at the defaults."""
    keep = Keep()
    a_day = WORKERS * EVENTS_PER_RESTART + 86400 / 30
    total = a_day * 365
    kept = min(keep.events, a_day * keep.events_age / 86400)
    say("events in a year, 1,000 workers", f"{total:,.0f}", "a restart each per day")
    say("  without limits", f"{total * mean / 2**20:,.0f} MiB")
    say("  kept under the default limits", f"{kept:,.0f}", f"≤ {keep.events:,}")
    say("  their size", f"{kept * mean / 2**20:,.0f} MiB", f"< {keep.size / 2**20:.0f} MiB")


async def restarts(folder: Path, count: int) -> None:
    """Time the batches of restarts, from the report to the moment it may be told."""
    memory = await restart_times(MemoryJournal(), count)
    real = opened(folder / "restarts" / "journal.db", Keep(events=2_000))
    written = await restart_times(real, count)
    await real.close()
    for name, which in (("p50", 50), ("p99", 99)):
        added = at(written, which) - at(memory, which)
        target = "< 1 ms" if which == 99 else ""
        say(f"added to a restart by recording, {name}", f"{added * 1000:.3f} ms", target)


async def restart_times(journal: Journal, count: int) -> list[float]:
    """Record the three batches of a restart, as the engine hands them in, again and again."""
    times = []
    for number in range(count):
        seq = number * 3 + 1
        facts = (exited(seq), begun(seq + 1), started(seq + 2))
        began = time.perf_counter()
        for fact in facts:
            await journal.append(Batch(events=[fact], slots=[slot(number)]))
        times.append(time.perf_counter() - began)
        if number % 20 == 0:
            await asyncio.sleep(0.002)  # checkpoints and pruning have their turn as in real life
    return times


def at(times: list[float], percent: int) -> float:
    """Give a percentile."""
    return statistics.quantiles(times, n=100)[percent - 1]


def opened(path: Path, keep: Keep) -> SqliteJournal:
    """Open a fresh journal."""
    path.parent.mkdir()
    return open_journal(path, boot_id="b", owner=OWNER, now=WALL, keep=keep)[0]


def exited(seq: int) -> Recorded:
    """Make an event of the usual length."""
    ending = Exit(code=1, signal=None, at=WALL)
    event = Exited(slot=f"worker-{seq % WORKERS}", generation=seq, exit=ending)
    return Recorded(seq=seq, id=f"{seq:032x}", at=WALL + seq, event=event)


def begun(seq: int) -> Recorded:
    """Make the intent of a start."""
    event = StartBegun(
        slot="worker-1",
        generation=seq,
        nonce=f"{seq:032x}",
        terms=TERMS,
        seen=1,
        automatic=True,
        why="it ended",
    )
    return Recorded(seq=seq, id=f"{seq:032x}", at=WALL + seq, event=event)


def started(seq: int) -> Recorded:
    """Make the fact of a start."""
    event = Started(slot="worker-1", generation=seq, identity=identity())
    return Recorded(seq=seq, id=f"{seq:032x}", at=WALL + seq, event=event)


def identity() -> Identity:
    """Make a process."""
    return Identity(pid=4242, start_ticks=7, boot_id="b", inode=9, nonce="0" * 32)


def slot(generation: int) -> SlotStatus:
    """Make the row of a slot."""
    return SlotStatus(
        slot="worker-1",
        state=State.RUNNING,
        since=Instant(1.0),
        since_wall=WALL,
        generation=generation,
        nonce="0" * 32,
        identity=identity(),
        terms=TERMS,
        why="up and ready",
    )


if __name__ == "__main__":
    raise SystemExit(main())
