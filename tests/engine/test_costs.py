"""What a worker with a thousand slots costs: counted in calls, so that no clock is asked."""

from __future__ import annotations

import asyncio
import sys

import pytest

from uphold.core import orders
from uphold.core.specs import WorkerSpec
from uphold.testing.stages import Stage

FEW, MANY = 100, 1000
FAIR = 1.5
"""Ten times the slots may cost ten times as much, and a little more; not a hundred times."""


async def counted(work):
    """Count the calls of Python functions while something is awaited."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        await work
    finally:
        sys.setprofile(before)
    return calls


async def start(stage):
    await stage.start()
    await stage.clock.advance(1)


async def restart(stage):
    await stage.order(orders.RestartWorkers(names=("web",)))
    await stage.clock.advance(1)


async def crash_all(stage):
    for slot in tuple(stage.driver.world.alive):
        stage.driver.end(slot, 1)
    await stage.clock.advance(5)


async def crash_one(stage):
    stage.driver.end("web.7", 1)
    await stage.clock.settle()


async def story(replicas):
    stage = Stage(WorkerSpec(name="web", command=("web",), replicas=replicas))
    costs = {}
    for act in (start, restart, crash_one, crash_all):
        costs[act.__name__] = await counted(act(stage))
    assert len(stage.driver.world.alive) == replicas
    await stage.supervisor.abandon()
    return costs


@pytest.mark.accepts("P8")
def test_costs_grow_with_the_number_of_slots_and_not_with_its_square():
    few, many = asyncio.run(story(FEW)), asyncio.run(story(MANY))
    for act, calls in many.items():
        assert calls < few[act] * (MANY / FEW) * FAIR, (act, few[act], calls)
