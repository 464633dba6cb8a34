"""The test kit can make everything go wrong that goes wrong in the world."""

from __future__ import annotations

import asyncio

import pytest

from uphold.core import orders
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import State
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))


@pytest.mark.accepts("E-45")
def test_faults_can_be_injected_and_the_supervisor_goes_on():
    async def scene():
        stage = await Stage(WEB).start()
        stage.driver.end("web", code=3)  # a worker fails
        await stage.clock.advance(2.0)
        assert stage.status("web").restarts == 1
        stage.driver.ignore_stop("web")  # a process ignores TERM: its stop is slow
        await stage.order(orders.StopWorkers(names=("web",)))
        await stage.clock.advance(10.0)
        assert stage.status("web").state is State.STOPPING
        await stage.clock.advance(25.0)
        assert stage.status("web").state is State.STOPPED
        stage.journal.unavailable = True  # the heartbeat cannot be written
        await stage.clock.advance(60.0)
        assert stage.supervisor.trouble is not None
        stage.journal.unavailable = False
        await stage.clock.advance(60.0)
        assert stage.supervisor.trouble is None
        slow = stage.supervisor.subscribe(1)  # a listener that is too slow: events are dropped
        for _ in range(5):
            await stage.order(orders.StartWorkers(names=("web",)))
            await stage.order(orders.StopWorkers(names=("web",)))
            await stage.clock.advance(40.0)
        first = await anext(slow)
        assert first.event.type == "gap"
        await stage.supervisor.abandon()

    asyncio.run(scene())
