from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.specs import Need, RestartPolicy, Schedule, WorkerSpec
from uphold.daemon.gating import TO_GET_READY, restarts_of, watch
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
NAMES = ("web",)
LONG = 300.0


def judged(*specs: WorkerSpec, names=NAMES, seconds=10.0):
    """Play a story while the gate watches; the story says what the gate must come to."""

    def wrap(story):
        def test():
            async def go():
                stage = await Stage(*(specs or (WEB,))).start()
                await stage.clock.advance(1)
                before = restarts_of(stage.supervisor.snapshot(), names)
                watching = asyncio.create_task(
                    watch(stage.supervisor, stage.clock, names, seconds, before)
                )
                await stage.clock.settle()
                await story(stage, watching)
                watching.cancel()
                await stage.supervisor.abandon()

            asyncio.run(go())

        test.__name__ = story.__name__
        return pytest.mark.accepts("P24")(test)

    return wrap


@judged()
async def test_a_worker_that_stays_up_passes_when_its_time_is_over(stage, watching):
    await stage.clock.advance(9.9)
    assert not watching.done()
    await stage.clock.advance(0.2)
    assert watching.result() is None


@judged()
async def test_one_crash_is_enough_even_if_it_comes_back_at_once(stage, watching):
    await stage.clock.advance(5)
    stage.driver.end("web", code=3)
    await stage.clock.advance(1)
    assert stage.status("web").state == "running"
    assert "web" in watching.result()


@judged(replace(WEB, restart=RestartPolicy.NO))
async def test_a_task_that_has_ended_well_is_fine(stage, watching):
    stage.driver.end("web", code=0)
    await stage.clock.advance(10.1)
    assert watching.result() is None


@judged(replace(WEB, restart=RestartPolicy.NO))
async def test_a_task_that_has_failed_is_not(stage, watching):
    stage.driver.end("web", code=1)
    await stage.clock.advance(1)
    assert watching.result() is not None


@judged(
    replace(WEB, depends_on=(("other", Need.STARTED),)),
    replace(WEB, name="other", autostart=False),
    seconds=1.0,
)
async def test_who_does_not_get_up_fails_after_a_minute(stage, watching):
    assert stage.status("web").state == "waiting"
    await stage.clock.advance(TO_GET_READY - 2)
    assert not watching.done()
    await stage.clock.advance(3)
    assert watching.result() == "web was not up within 60 s"


@judged(seconds=LONG)
async def test_who_is_stopped_or_held_by_a_person_is_no_longer_waited_for(stage, watching):
    await stage.order(orders.PauseWorkers(names=NAMES))
    await stage.clock.advance(2)
    assert watching.result() is None


@judged(WEB, replace(WEB, name="other"), names=("web", "other"), seconds=LONG)
async def test_the_others_are_still_looked_at(stage, watching):
    await stage.order(orders.StopWorkers(names=("other",)))
    await stage.clock.advance(5)
    assert not watching.done()
    stage.driver.end("web", code=3)
    await stage.clock.advance(1)
    assert watching.result().startswith("web ")


@judged(seconds=LONG)
async def test_a_restart_that_a_person_orders_is_no_fault_and_its_time_begins_anew(stage, watching):
    await stage.clock.advance(200)
    await stage.order(orders.RestartWorkers(names=NAMES))
    await stage.clock.advance(200)
    assert stage.status("web").generation == 2
    assert not watching.done()
    await stage.clock.advance(LONG)
    assert watching.result() is None


@judged(seconds=LONG)
async def test_a_changed_file_restarts_it_and_that_is_no_fault_either(stage, watching):
    await stage.clock.advance(100)
    await stage.change(replace(WEB, command=("web", "--new")))
    await stage.clock.advance(10)
    assert stage.status("web").generation == 2
    assert not watching.done()


@judged(seconds=LONG)
async def test_who_is_gone_from_the_file_is_no_longer_waited_for(stage, watching):
    await stage.change(replace(WEB, name="other"))
    await stage.clock.advance(2)
    assert watching.result() is None


@judged(seconds=LONG)
async def test_a_supervisor_that_is_paused_judges_nobody(stage, watching):
    await stage.order(orders.PauseSupervisor())
    await stage.clock.advance(2)
    assert watching.result() is None


@judged(seconds=LONG)
async def test_a_crash_counts_although_a_time_of_peace_had_cleared_the_count(stage, watching):
    await stage.clock.advance(100)
    stage.driver.end("web", signal=11)
    await stage.clock.advance(1)
    assert watching.done()


def test_who_waits_for_its_time_of_the_day_is_up_enough():
    async def go():
        at_night = replace(WEB, schedule=Schedule(cron="0 3 * * *"))
        stage = await Stage(at_night).start()
        assert stage.status("web").state == "waiting"
        watching = asyncio.create_task(watch(stage.supervisor, stage.clock, NAMES, 5.0, {}))
        await stage.clock.advance(6)
        assert watching.result() is None
        await stage.supervisor.abandon()

    asyncio.run(go())
