"""A loop that knows when it was held up."""

from __future__ import annotations

import asyncio
import os
import selectors
import subprocess
import sys
import threading
import time

import pytest

from uphold.host import looping
from uphold.host.looping import LoopGuard, WatchedSelector, new_loop


def run(scene, selector):
    with asyncio.Runner(loop_factory=lambda: new_loop(selector)) as runner:
        return runner.run(scene)


@pytest.fixture
def timed(monkeypatch):
    """Give a selector on a clock of the test: each look for news takes 50 s."""
    clock = [100.0]
    monkeypatch.setattr(looping, "monotonic", lambda: clock[0])

    def look(self, timeout=None):
        clock[0] += 50.0
        return []

    monkeypatch.setattr(WatchedSelector, "_some", look)
    selector = WatchedSelector()
    selector.clock = clock
    yield selector
    selector.close()


@pytest.mark.accepts("P26")
def test_a_turn_that_takes_too_long_is_told_with_its_length(timed):
    told = []
    timed.select()
    timed.clock[0] += 9.0
    timed.select()
    timed.blocked = told.append
    for seconds in (0.5, 2.0, 1.5, 0.9):
        timed.clock[0] += seconds
        timed.select()
    assert told == [2.0, 1.5]
    assert timed.take_longest() == 9.0
    assert timed.take_longest() == 0.0


def test_waiting_is_not_blocking(timed):
    told = []
    timed.blocked = told.append
    for _ in range(3):
        timed.select()
    assert (told, timed.take_longest()) == ([], 0.0)


def test_a_real_loop_is_timed():
    selector = WatchedSelector()

    async def scene():
        await asyncio.sleep(0)
        selector.take_longest()
        time.sleep(0.05)
        await asyncio.sleep(0)

    run(scene(), selector)
    assert selector.take_longest() >= 0.05


def test_a_crowd_is_served_in_several_turns_and_everybody_soon():
    selector = WatchedSelector()
    pipes = [os.pipe() for _ in range(200)]
    try:
        for reading, writing in pipes:
            selector.register(reading, selectors.EVENT_READ)
            os.write(writing, b"x")
        turns = [{key.fd for key, _ in selector.select(0)} for _ in range(4)]
        assert [len(turn) for turn in turns] == [64, 64, 64, 64]
        # Nobody reads, so all stay ready; who waited longest still comes first.
        assert set().union(*turns) == {reading for reading, _ in pipes}
    finally:
        for descriptor in (each for pipe in pipes for each in pipe):
            os.close(descriptor)
        selector.close()


def test_a_hang_up_is_news_and_an_empty_look_is_none():
    selector = WatchedSelector()
    reading, writing = os.pipe()
    selector.register(reading, selectors.EVENT_READ)
    assert selector.select(0) == []
    os.close(writing)
    assert [(key.fd, events) for key, events in selector.select(None)] == [
        (reading, selectors.EVENT_READ)
    ]
    os.close(reading)
    selector.close()


def test_a_loop_is_busy_between_two_looks_only():
    selector = WatchedSelector()
    seen = []

    async def scene():
        seen.append((selector.busy, selector.turns))
        await asyncio.sleep(0)
        seen.append((selector.busy, selector.turns))

    run(scene(), selector)
    assert [busy for busy, _ in seen] == [True, True]
    assert seen[1][1] > seen[0][1]


class Stuck:
    """A selector as the guard sees it."""

    def __init__(self):
        self.busy, self.turns = True, 7


@pytest.mark.accepts("P26")
def test_a_loop_that_does_not_turn_is_given_up():
    ended = threading.Event()
    guard = LoopGuard(Stuck(), tick=0.01, end=ended.set)
    assert ended.wait(30.0)
    guard.close()


def test_a_loop_that_waits_or_turns_is_not():
    """Given up after six looks that see no turn: here every one of many sees something else."""
    looks = threading.Semaphore(0)

    class Turning(Stuck):
        @property
        def turns(self):
            self._turns += 1
            looks.release()
            return self._turns

        @turns.setter
        def turns(self, value):
            self._turns = value

    class Waiting(Stuck):
        @property
        def turns(self):
            looks.release()
            return 7

        @turns.setter
        def turns(self, value):
            self.busy = False

    for kind in (Turning, Waiting):
        selector, ended = kind(), threading.Event()
        selector.busy = kind is Turning
        guard = LoopGuard(selector, tick=0.001, end=ended.set)
        for _ in range(30):
            assert looks.acquire(timeout=30.0)
        assert not ended.is_set()
        guard.close()
        guard._thread.join(30.0)
        while looks.acquire(blocking=False):
            pass


HANGING = """
import asyncio, time
from uphold.host.looping import LoopGuard, WatchedSelector, new_loop

async def hang_around():
    await asyncio.sleep(0)
    time.sleep(600)

selector = WatchedSelector()
guard = LoopGuard(selector, tick=0.02)
with asyncio.Runner(loop_factory=lambda: new_loop(selector)) as runner:
    runner.run(hang_around())
"""


@pytest.mark.accepts("P26")
def test_the_end_of_a_hanging_process_says_where_it_hung():
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1
    assert "in hang_around" in done.stderr
