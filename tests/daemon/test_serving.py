"""Parts of the composition root that can be looked at by themselves."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from uphold.daemon.serving import _report_failure


class Lines:
    """A log that keeps what it was told."""

    def __init__(self):
        self.lines = []

    def write(self, level, event, message):
        self.lines.append((level, event, message))


@pytest.mark.parametrize(
    ("running", "told"), [(True, ["wait ended: it was cancelled"]), (False, [])]
)
def test_a_helper_that_ends_by_a_mistake_is_logged_and_one_that_ends_with_us_is_not(running, told):
    async def go():
        log = Lines()

        async def die():
            raise ValueError("a bug")

        async def wait():
            await asyncio.Event().wait()

        tasks = [
            asyncio.create_task(die(), name="mirror"),
            asyncio.create_task(wait(), name="wait"),
        ]
        for task in tasks:
            task.add_done_callback(partial(_report_failure, log, lambda: running))
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
        return log.lines

    messages = ["mirror ended: ValueError('a bug')", *told]
    assert asyncio.run(go()) == [("CRITICAL", "supervisor.broken", each) for each in messages]
