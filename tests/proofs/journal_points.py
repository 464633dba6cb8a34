"""T04 for the journal alone: its writer is killed, or told of an error, at every call on its files.

A small program opens a journal of the last version (so it is migrated), writes, prunes, gives
pages back, tidies up its log and closes it. Each point is one call of all that. Afterwards the
file must be whole, the chain of the audit too, and whatever was acknowledged must be there.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from proofs.disks import in_memory
from proofs.faulting import KINDS, Faults
from proofs.proving import Verdict, main
from uphold.journal.audit import verify
from uphold.journal.migrations import MIGRATIONS, migrate
from uphold.journal.pruning import DAY, Keep
from uphold.journal.reading import JournalReader
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import entry, job, news

T0 = 1_770_301_815.0
OWNER = Owner(name="orion", hostname="h", pid=1, id="s-1")
KEEP = Keep(events=40, audit_age=DAY, jobs_age=DAY, at_once=25, spare=4)
TESTS = Path(__file__).parent.parent


class Point(NamedTuple):
    """Where the fault is."""

    kind: str
    at: int

    def __str__(self):
        return f"{self.kind} at call {self.at}"


def live(path):
    """Do everything a journal does, saying aloud what is done: `number` is an audit line."""
    from uphold.errors import StoreUnavailable

    async def script():
        try:
            journal, rescued = open_journal(path, boot_id="b", owner=OWNER, now=T0, keep=KEEP)
        except StoreUnavailable:
            return
        assert rescued is None, rescued
        for number in range(1, 5):
            later = number * 100
            batch = Batch(
                events=[news(later + n) for n in range(60)],
                audit=[entry(later)],
                jobs=[job("failed", T0 + later)],
                durable=True,
            )
            await said(number, journal.append(batch))
            await said("-", journal.append(Batch(events=[news(later + 60)])))
            await said("-", pruned(journal))
            await said("-", tidied(journal))
        await said("closed", journal.close())

    async def pruned(journal):
        while await journal.prune(T0 + DAY + 250):
            pass

    async def tidied(journal):
        await journal._ask(work=journal._committer.checkpoint)

    async def said(what, work):
        try:
            await work
        except StoreUnavailable:
            return
        print(what, flush=True)

    asyncio.run(script())


def old_journal(path):
    """Make a journal of the version before, with many pages of old events."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        migrate(connection, T0, MIGRATIONS[:1])
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO events_t VALUES (?, ?, 'worker.ready', 'worker', 'api',"
            " '2026-02-05T14:30:15.000Z', 'info', ?, NULL)",
            [(n, f"e-{n}", '"' + "x" * 1500 + '"') for n in range(1, 100)],
        )
        connection.execute(
            "INSERT INTO jobs_t (job_id, state, updated_at) VALUES ('o', 'failed', '2026')"
        )
        connection.execute("COMMIT")


def points(count, seed, folder):
    """Try `count` of all points, or all of them."""
    found, tried = [], Counter()
    place = in_memory(folder, "journal-points-")
    faults = Faults(place)
    try:
        old_journal(place / "old.db")
        calls = {kind: strike(place, faults, Point(kind, -1))[1] for kind in ("kill", "torn")}
        population = [
            Point(kind, at)
            for kind in KINDS
            for at in range(1, calls["torn" if kind == "torn" else "kill"] + 1)
        ]
        if count < len(population):
            population = random.Random(seed).sample(population, count)
        for point in population:
            struck, _, wrong = strike(place, faults, point)
            tried["struck" if struck else "not reached"] += 1
            found += [f"seed {seed}, {point} ({struck}): {each}" for each in wrong]
    finally:
        faults.close()
        shutil.rmtree(place)
    return Verdict(
        count=tried["struck"],
        violations=tuple(found),
        figures=(f"{calls['kill']} calls", f"{tried['not reached']} not reached"),
    )


def strike(place, faults, point):
    """Try one point; gives what was struck, the number of calls, and what is wrong afterwards."""
    home = place / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    shutil.copy(place / "old.db", home / "journal.db")
    faults.arm(home, point.kind, point.at)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from proofs.journal_points import live; import sys; live(sys.argv[1])",
            str(home / "journal.db"),
        ],
        env={**os.environ, **faults.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    struck, calls = faults.disarm()
    wrong = [done.stderr[-600:]] if "Traceback" in done.stderr else []
    return struck, calls, wrong + examine(home / "journal.db", done.stdout.split())


def examine(path, said):
    """Look at the file as it was left, then let the next writer go on with it."""
    wrong = look(path, said)

    async def go_on():
        journal, rescued = open_journal(path, boot_id="b", owner=OWNER, now=T0, keep=KEEP)
        if rescued:
            wrong.append(f"set aside: {rescued}")
        await journal.append(Batch(events=[news(900)], audit=[entry(900)], durable=True))
        while await journal.prune(T0 + DAY + 250):
            pass
        await journal.close()

    asyncio.run(go_on())
    return wrong + look(path, said)


def look(path, said):
    """Give what is wrong with what is there."""
    done = [int(word) for word in said if word.isdigit()]
    with JournalReader(path) as reader:
        wrong = [f"{each.at}: {each.text}" for each in verify(reader)]
        events = [event["seq"] for event in reader.events(limit=100_000)]
        audited = {str(line["audit_id"]) for line in reader.audit(limit=1_000)}
        jobs = reader.jobs(limit=1_000)
    # What is older than the limit may have gone; what is acknowledged and young must be there.
    wrong += [f"audit {n} is lost" for n in done if n > 2 and f"audit-{n * 100}" not in audited]
    if done and max(events) < max(done) * 100 + 59:
        wrong.append(f"events up to {max(events)}, although {max(done)} was acknowledged")
    if done and not jobs:
        wrong.append("the last job is lost")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        (whole,) = connection.execute("PRAGMA integrity_check").fetchone()
        revs = [rev for (rev,) in connection.execute("SELECT rev FROM jobs_t")] if done else []
    if whole != "ok":
        wrong.append(f"integrity: {whole}")
    if None in revs or len(set(revs)) != len(revs):
        wrong.append(f"changes of jobs are numbered {revs}")
    return wrong


if __name__ == "__main__":
    main({"journal": points})
