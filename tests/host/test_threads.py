from __future__ import annotations

import asyncio

import pytest

from uphold.host.threads import aside, in_thread


def test_what_goes_wrong_in_a_thread_is_told_to_whoever_waits():
    async def scene():
        def fail():
            raise OSError(24, "no descriptor")

        with pytest.raises(OSError, match="no descriptor"):
            await in_thread(fail)
        assert await in_thread(lambda: 42) == 42

    asyncio.run(scene())


def test_what_nobody_waits_for_is_done_all_the_same():
    async def scene():
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        aside(lambda: loop.call_soon_threadsafe(done.set))
        await asyncio.wait_for(done.wait(), 10)

    asyncio.run(scene())


def test_without_threads_it_is_done_at_once(monkeypatch):
    def no_more(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", no_more)
    done = []
    aside(lambda: done.append(True))
    assert done == [True]
