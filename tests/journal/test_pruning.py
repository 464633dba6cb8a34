from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.journal.pruning import DAY, Keep
from uphold.journal.reading import JournalReader
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import entry, job, news, play

T0 = 1770301815.0


@pytest.fixture
def pruned(opened, path):
    def run(batch, keep, now):
        removed = []

        async def script():
            journal = opened(keep=keep)
            await journal.append(batch)
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
    assert pruned(batch, Keep(events=30, at_once=20), T0) == [20, 20, 20, 10, 0]
    assert seqs(path) == list(range(71, 101))


def test_old_events_go_by_their_age(pruned, path):
    batch = Batch(events=[news(n) for n in range(1, 101)])
    assert pruned(batch, Keep(events_age=DAY), T0 + 41 + DAY) == [40, 0]
    assert seqs(path) == list(range(41, 101))


def test_the_last_event_stays_so_that_numbers_go_on(pruned, path, opened):
    batch = Batch(events=[news(n) for n in range(1, 11)])
    assert pruned(batch, Keep(events=0, events_age=0.0), T0 + 1000 * DAY) == [9, 0]
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
        journal = opened(keep=Keep(events=100, at_once=500))
        await journal.append(Batch(events=[news(n) for n in range(1, 5001)]))
        pruning = asyncio.ensure_future(journal.prune(T0))
        turns = 0
        while not pruning.done():
            turns += 1
            await asyncio.sleep(0)
        assert await pruning == 500
        assert turns > 1
        await journal.append(Batch(events=[news(5001)]))
        await journal.close()

    play(script)


def test_nothing_is_pruned_by_a_clock_that_went_back(pruned, path):
    assert pruned(Batch(events=[news(1), news(2)], audit=[entry(1)]), Keep(), 0.0) == [0]
    assert seqs(path) == [1, 2]
