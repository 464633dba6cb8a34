from __future__ import annotations

import asyncio
import subprocess

import pytest

from uphold.host.processes.reaping import StrangerReaper
from uphold.host.proctable import read_stat
from uphold.testing.waiting import eventually


@pytest.mark.accepts("P16")
def test_only_what_is_nobodys_is_taken():
    """A child in a session of its own that nobody claims is what an orphan looks like to us."""

    async def scene():
        ours = subprocess.Popen(["sh", "-c", "exit 3"])
        claimed = subprocess.Popen(["sh", "-c", "exit 4"], start_new_session=True)
        stranger = subprocess.Popen(["sh", "-c", "exit 5"], start_new_session=True)
        reaper = StrangerReaper({claimed.pid}.__contains__)
        await eventually(lambda: read_stat(stranger.pid) is None)
        stranger.returncode = 0
        reaper.close()
        assert read_stat(ours.pid).dead
        assert (ours.wait(), claimed.wait()) == (3, 4)

    asyncio.run(scene())


@pytest.mark.accepts("P16")
def test_one_who_waits_for_its_own_child_is_not_overtaken():
    async def scene():
        reaper = StrangerReaper(lambda _: False)
        for code in range(5):
            child = subprocess.Popen(["sh", "-c", f"exit {code}"], start_new_session=True)
            assert await asyncio.to_thread(child.wait) == code
        reaper.close()

    asyncio.run(scene())
