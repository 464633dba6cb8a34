"""Ends of processes are told once each, whatever happens to the others."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import contextmanager
from functools import partial

import pytest

from uphold.host.processes.vigils import Vigil

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="pidfds are Linux's own")
LIMIT = 10.0


@contextmanager
def sleepers(number):
    """Give pidfds of so many children that sleep."""
    pids = [os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ) for _ in range(number)]
    descriptors = [os.pidfd_open(pid) for pid in pids]
    try:
        yield descriptors
    finally:
        for pid, descriptor in zip(pids, descriptors, strict=True):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(descriptor)


def end(descriptor):
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)


async def until(condition):
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.002)


def test_every_end_is_told_once_also_of_more_than_fit_into_one_turn():
    async def scene():
        vigil, told = Vigil(), []
        with sleepers(150) as descriptors:
            for descriptor in descriptors:
                vigil.add(descriptor, partial(told.append, descriptor))
            for descriptor in descriptors[:149]:
                end(descriptor)
            await until(lambda: len(told) >= 149)
            await asyncio.sleep(0)
            assert sorted(told) == sorted(descriptors[:149])
            vigil.close()

    asyncio.run(scene())


def test_who_was_let_go_is_not_told_of_although_it_ended_before():
    async def scene():
        vigil, told = Vigil(), []
        with sleepers(2) as (first, second):
            vigil.add(first, partial(vigil.discard, second))
            vigil.add(second, partial(vigil.discard, first))
            end(first)
            end(second)
            os.waitid(os.P_PIDFD, first, os.WEXITED | os.WNOWAIT)
            os.waitid(os.P_PIDFD, second, os.WEXITED | os.WNOWAIT)
            vigil.add(last := os.pidfd_open(os.getpid()), partial(told.append, "us"))
            await until(lambda: len(vigil._waiting) == 1)
            vigil.discard(last)
            vigil.discard(last)
            os.close(last)
            vigil.close()
            vigil.close()
        assert told == []

    asyncio.run(scene())


def test_whoever_gets_the_number_of_one_that_ended_is_not_taken_for_it():
    """The first who is called closes the second's descriptor; a living process gets its number."""

    async def scene():
        vigil, told = Vigil(), []
        with sleepers(2) as (first, second), sleepers(1) as (living,):
            spare = os.dup(second)

            def ended():
                vigil.discard(second)
                os.close(second)
                os.dup2(living, second)
                vigil.add(second, partial(told.append, "one that lives"))

            vigil.add(first, ended)
            vigil.add(second, partial(told.append, "the second"))
            for each in (first, second):
                end(each)
                os.waitid(os.P_PIDFD, each, os.WEXITED | os.WNOWAIT)
            await until(lambda: first not in vigil._waiting)
            await asyncio.sleep(0)
            vigil.close()
            os.dup2(spare, second)
            os.close(spare)
        assert "one that lives" not in told

    asyncio.run(scene())


def test_one_listener_that_fails_is_reported_and_the_others_hear():
    async def scene():
        mistakes, told = [], []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: mistakes.append(str(context["exception"]))
        )
        vigil = Vigil()

        def fail():
            raise ValueError("no")

        with sleepers(2) as (first, second):
            vigil.add(first, fail)
            vigil.add(second, partial(told.append, second))
            end(first)
            end(second)
            await until(lambda: told and mistakes)
            assert (mistakes, told) == (["no"], [second])
            vigil.close()

    asyncio.run(scene())


def test_after_its_end_nothing_is_told():
    async def scene():
        vigil, told = Vigil(), []
        with sleepers(1) as (only,):
            vigil.add(only, partial(told.append, only))
            end(only)
            os.waitid(os.P_PIDFD, only, os.WEXITED | os.WNOWAIT)
            vigil.close()
            for _ in range(3):
                await asyncio.sleep(0)
        assert told == []

    asyncio.run(scene())
