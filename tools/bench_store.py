"""Measures how fast a full journal is copied to MariaDB and to PostgreSQL, in rows a second.

Private servers with small buffers, as in the tests. `PYTHONPATH=tests python tools/bench_store.py`.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from recorder.ledgers import Desk, event, some, write
from servers import MariaDB, PostgreSQL, running
from uphold.journal.outgoing import BEGINNING
from uphold.ports.journals import Batch

EVENTS = 40_000
ORDERS = 5_000
LEAST = 5_000
"""Rows a second that a replay must reach."""


def main() -> int:
    """Copy the same journal to each server, then all of it again; 1 if that is too slow."""
    slow = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        batches = [some(first, 1000) for first in range(1, ORDERS, 1000)]
        batches += [
            Batch(events=[event(n) for n in range(first, first + 2000)], durable=True)
            for first in range(ORDERS + 1, ORDERS + EVENTS, 2000)
        ]
        write(folder / "journal.db", *batches)
        for kind in (MariaDB, PostgreSQL):
            with running(kind) as server:
                desk = Desk(folder, server.fresh())
                desk.copier.prepare()
                for what, copy in (("first copy", first_copy), ("replay", replay)):
                    began = time.perf_counter()
                    rows = copy(desk)
                    speed = rows / (time.perf_counter() - began)
                    slow += speed < LEAST
                    print(f"{kind.kind:12}{what:12}{rows:>8,} rows{speed:>12,.0f} rows/s")
                desk.store.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'recorder':12}{'at most':12}{memory:>8.0f} MB, the writing of the journal included")
    return 1 if slow else 0


def first_copy(desk: Desk) -> int:
    """Copy everything, as after a long outage."""
    rows = 0
    while True:
        step = desk.copier.copy()
        rows += step.rows
        if not step.full:
            return rows


def replay(desk: Desk) -> int:
    """Copy everything again."""
    rows, cursor = 0, BEGINNING
    while True:
        step, cursor = desk.copier.replay(cursor)
        rows += step.rows
        if not step.full:
            return rows


if __name__ == "__main__":
    sys.exit(main())
