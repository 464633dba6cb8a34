"""What a worker with a thousand slots costs: counted in calls, so that no clock is asked."""

from __future__ import annotations

import asyncio
import sys

import pytest

from uphold.core import orders
from uphold.core.planning import plan
from uphold.core.specs import WorkerSpec
from uphold.engine import reconciler
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


def test_what_needs_nothing_is_planned_once_and_again_when_anything_differs(monkeypatch):
    async def go():
        looks = []

        def counting(*values, names, **more):
            looks.append(names)
            return plan(*values, names=names, **more)

        stage = Stage(*(WorkerSpec(name=name, command=(name,)) for name in ("web", "db")))
        await start(stage)
        await stage.clock.advance(600)  # whatever is due some time after a start is over
        monkeypatch.setattr(reconciler, "plan", counting)
        pulses = stage.supervisor.snapshot().reconcile_count
        await stage.clock.advance(600)
        assert stage.supervisor.snapshot().reconcile_count > pulses
        assert looks == []
        stage.driver.drop("db")
        await stage.clock.advance(60)
        assert stage.driver.world.alive.keys() == {"web", "db"}, "found by looking at everything"
        await stage.order(orders.StopWorkers(names=("web",)))
        await stage.clock.advance(60)
        assert stage.driver.world.alive.keys() == {"db"}
        assert None in looks
        await stage.supervisor.abandon()

    asyncio.run(go())
