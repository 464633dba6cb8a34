from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from proofs import disks
from uphold.errors import StoreUnavailable
from uphold.journal.audit import verify
from uphold.journal.pruning import DAY, Keep, give_back, used_bytes
from uphold.journal.reading import JournalReader
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import entry, job, news, play

T0 = 1770301815.0


@pytest.fixture
def pruned(opened, path):
    def run(batch, keep, now, first=None):
        removed = []

        async def script():
            journal = opened(keep=first or keep)
            await journal.append(batch)
            journal.settle(keep)
            while not removed or removed[-1]:
                removed.append(await journal.prune(now))
            await journal.close()

        play(script)
        return removed

    return run


def seqs(path):
    with JournalReader(path) as reader:
        return [event["seq"] for event in reader.events(limit=10_000)]


def test_too_many_events_go_oldest_first_a_limited_number_at_once(pruned, path):
    batch = Batch(events=[news(n) for n in range(1, 101)])
    assert pruned(batch, Keep(events=30, at_once=20), T0, first=Keep()) == [20, 20, 20, 10, 0]
    assert seqs(path) == list(range(71, 101))


def test_old_events_go_by_their_age(pruned, path):
    batch = Batch(events=[news(n) for n in range(1, 101)])
    assert pruned(batch, Keep(events_age=DAY), T0 + 41 + DAY) == [40, 0]
    assert seqs(path) == list(range(41, 101))


def test_the_last_event_stays_so_that_numbers_go_on(pruned, path, opened):
    batch = Batch(events=[news(n) for n in range(1, 11)])
    keep = Keep(events=0, events_age=0.0)
    assert pruned(batch, keep, T0 + 1000 * DAY, first=Keep()) == [9, 0]
    assert seqs(path) == [10]
    assert opened().recall().last_seq == 10


def test_finished_jobs_go_by_their_age_and_open_ones_stay(pruned, path):
    states = ("queued", "running", "blocked", "succeeded", "failed", "canceled")
    jobs = [replace(job(state), id=state) for state in states]
    jobs.append(replace(job("failed"), id="last"))
    pruned(Batch(jobs=jobs), Keep(), T0 + 91 * DAY)
    with JournalReader(path) as reader:
        left = [row["job_id"] for row in reader.jobs()]
    # The one that changed last carries the number that goes on.
    assert left == ["queued", "running", "blocked", "last"]


def test_the_audit_is_kept_longest(pruned, path):
    jobs = [replace(job("failed"), id="old"), job("running")]
    batch = Batch(events=[news(1), news(2)], audit=[entry(1)], jobs=jobs)
    pruned(batch, Keep(), T0 + 400 * DAY)
    with JournalReader(path) as reader:
        assert len(reader.audit()) == 1
        assert [row["state"] for row in reader.jobs()] == ["running"]
    assert seqs(path) == [2]


def test_pruning_lets_the_loop_and_the_writing_go_on(opened):
    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(n) for n in range(1, 201)]))
        journal.settle(Keep(events=100, at_once=500))
        pruning = asyncio.ensure_future(journal.prune(T0))
        turns = 0
        while not pruning.done():
            turns += 1
            await asyncio.sleep(0)
        assert await pruning == 100
        assert turns > 1
        await journal.append(Batch(events=[news(201)]))
        await journal.close()

    play(script)


def test_nothing_is_pruned_by_a_clock_that_went_back(pruned, path):
    assert pruned(Batch(events=[news(1), news(2)], audit=[entry(1)]), Keep(), 0.0) == [0]
    assert seqs(path) == [1, 2]


def far_away(path, **copied):
    """Say how far the copy in the shared database has come."""
    folder = path.parent / "spool"
    folder.mkdir(exist_ok=True)
    (folder / "recorder.json").write_text(json.dumps({"copied": copied}))


def meta(path):
    with JournalReader(path) as reader:
        return reader.own_meta()


def bulky(seq):
    return replace(news(seq), cause="x" * 2000)


@pytest.mark.parametrize("together", [1, 50, 700])
def test_a_burst_stays_near_the_limit_without_anybody_asking(opened, path, together):
    async def script():
        journal = opened(keep=Keep(events=1_000, at_once=100))
        for start in range(1, 5_001, together):
            await journal.append(Batch(events=[news(n) for n in range(start, start + together)]))
        await journal.close()

    play(script)
    assert len(seqs(path)) <= 1_000 + 5 * 100 + together


def test_a_little_too_much_goes_in_a_pause(opened, path):
    async def script():
        journal = opened(keep=Keep(events=1_000, at_once=100))
        for start in range(1, 1_301, 50):
            await journal.append(Batch(events=[news(n) for n in range(start, start + 50)]))
        async with asyncio.timeout(60):
            while (await journal.events(limit=1))[0]["seq"] < 301:
                await asyncio.sleep(0.01)
        await journal.close()

    play(script)
    assert len(seqs(path)) == 1_000


def test_without_limits_nothing_goes_unasked(opened, path):
    async def script():
        journal = opened()
        for start in range(1, 101_000, 5_000):
            await journal.append(Batch(events=[news(n) for n in range(start, start + 5_000)]))
        await journal.close()

    play(script)
    with closing(sqlite3.connect(path)) as hand:
        assert hand.execute("SELECT count(*) FROM events_t").fetchone() == (105_000,)


def test_a_file_that_is_too_large_loses_old_events_then_old_jobs_and_never_the_audit(pruned, path):
    batch = Batch(
        events=[bulky(n) for n in range(1, 401)],
        jobs=[replace(job("failed"), id=f"job-{n}", error="x" * 2000) for n in range(200)],
        audit=[replace(entry(n), details={"text": "x" * 2000}) for n in range(100)],
        durable=True,
    )
    pruned(batch, Keep(size=900_000, least=10, at_once=50), T0)
    with JournalReader(path) as reader:
        jobs, audit = reader.jobs(limit=1_000), reader.audit(limit=1_000)
        assert verify(reader) == []
    assert seqs(path) == list(range(391, 401))
    assert 1 < len(jobs) < 200
    assert jobs[-1]["job_id"] == "job-199"
    assert len(audit) == 100
    with closing(sqlite3.connect(path)) as hand:
        assert used_bytes(hand) <= 900_000


def test_an_audit_that_fills_the_file_does_not_take_the_latest_events_away(pruned, path):
    batch = Batch(
        events=[news(n) for n in range(1, 101)],
        audit=[replace(entry(n), details={"text": "x" * 2000}) for n in range(100)],
        durable=True,
    )
    pruned(batch, Keep(size=50_000, least=20), T0)
    assert seqs(path) == list(range(81, 101))


def test_room_is_given_back_and_the_file_becomes_shorter(opened, path):
    async def script():
        journal = opened(keep=Keep(events=10_000))
        await journal.append(Batch(events=[bulky(n) for n in range(1, 4_001)]))
        before = await journal.prune(T0), size_after_rest(journal)
        journal.settle(Keep(events=10))
        while await journal.prune(T0):
            pass
        assert size_after_rest(journal) < before[1] * 0.7
        await journal.close()

    def size_after_rest(journal):
        with closing(sqlite3.connect(path)) as hand:
            hand.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return path.stat().st_size

    play(script)
    assert seqs(path) == list(range(3_991, 4_001))


def test_a_file_of_an_earlier_version_cannot_be_shortened_and_is_used_on(tmp_path):
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as old:
        old.execute("CREATE TABLE t (x)")
        old.executemany("INSERT INTO t VALUES (?)", [("x" * 4_000,) for _ in range(3_000)])
        old.execute("DELETE FROM t")
        assert give_back(old, Keep()) == 0


def test_what_is_not_copied_yet_is_kept(pruned, path):
    far_away(path, events=40, audit=2, jobs=1)
    batch = Batch(
        events=[news(n) for n in range(1, 101)],
        audit=[entry(n) for n in range(5)],
        jobs=[replace(job("failed"), id=f"job-{n}") for n in range(5)],
        durable=True,
    )
    pruned(batch, Keep(events=10, spool=10**9), T0 + 1000 * DAY)
    assert seqs(path) == list(range(41, 101))
    with JournalReader(path) as reader:
        assert [line["audit_id"] for line in reader.audit()] == ["audit-2", "audit-3", "audit-4"]
        assert [row["job_id"] for row in reader.jobs()] == ["job-1", "job-2", "job-3", "job-4"]
        assert verify(reader) == []
    assert "journal.spool_lost" not in meta(path)


@pytest.mark.parametrize("told", [None, b"", b"[1]", b'{"copied": 7}', b"\xff"])
def test_nothing_counts_as_copied_until_somebody_says_so(pruned, path, told):
    if told is not None:
        far_away(path)
        (path.parent / "spool" / "recorder.json").write_bytes(told)
    pruned(Batch(events=[news(n) for n in range(1, 101)]), Keep(events=10, spool=10**9), T0)
    assert len(seqs(path)) == 100


def test_more_than_may_wait_goes_oldest_first_and_is_counted(pruned, path):
    far_away(path, events=40)
    keep = Keep(events=10, spool=8_000)
    pruned(Batch(events=[news(n) for n in range(1, 101)]), keep, T0)
    left = seqs(path)
    assert left == list(range(left[0], 101))
    assert 10 < len(left) < 60
    assert int(meta(path)["journal.spool_lost"]) == 60 - len(left)


def test_what_may_stay_anyway_is_not_lost_for_the_spool(pruned, path):
    pruned(Batch(events=[news(n) for n in range(1, 101)]), Keep(spool=1), T0)
    assert len(seqs(path)) == 100


@pytest.mark.accepts("P14")
@pytest.mark.skipif(disks.why_not() is not None, reason="only root can mount a disk")
def test_a_full_disk_takes_nothing_away_and_pruning_goes_on_when_there_is_room(tmp_path, opened):
    keep = Keep(events=100, at_once=100)
    with disks.mounted("-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", tmp_path / "disk") as disk:
        path = disk / "journal.db"

        async def script():
            journal = opened(where=path)
            await journal.append(
                Batch(events=[bulky(n) for n in range(1, 501)], audit=[entry(1)], durable=True)
            )
            journal.settle(keep)
            fill(disk / "filler")
            refused = 0
            for number in range(20):  # what room the log still has is used up first
                try:
                    if not await journal.prune(T0):
                        break
                except StoreUnavailable:
                    refused += 1
                fill(disk / f"filler-{number}")
            assert refused or len(await journal.events(limit=500)) == 100
            for each in disk.glob("filler*"):
                each.unlink()
            while await journal.prune(T0):
                pass
            await journal.append(Batch(audit=[entry(2)], durable=True))
            await journal.close()

        play(script)
        assert seqs(path) == list(range(401, 501))
        with JournalReader(path) as reader:
            assert verify(reader) == []
            assert len(reader.audit()) == 2


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def test_a_year_of_many_workers_stays_within_the_limits(opened, path):
    """A year in small: a thousandth of the events, of the limits and of the room."""
    limit = 300_000
    largest = 0

    async def script():
        nonlocal largest
        journal = opened(keep=Keep(events=400, size=limit, least=10, at_once=50, spare=8))
        seq = 0
        for day in range(365):
            now = T0 + day * DAY
            batch = Batch(
                events=[replace(news(seq + n, f"w{n}"), at=now) for n in range(1, 12)],
                audit=[replace(entry(day), at=now)],
                jobs=[replace(job("succeeded", now), id=f"job-{day}")],
                durable=True,
            )
            seq += 11
            await journal.append(batch)
            while await journal.prune(now):
                pass
            largest = max(largest, used_bytes(journal._committer._open()))
        await journal.close()

    play(script)
    assert largest <= limit
    with JournalReader(path) as reader:
        events = reader.events(limit=10_000)
        assert len(events) == 30 * 11 + 11, "thirty days of them"
        assert len(reader.jobs(limit=10_000)) == 91
        assert len(reader.audit(limit=10_000)) == 365
        assert verify(reader) == []
