"""Scheduled workers in the whole engine, on a clock that only moves when told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.test_supervisor import staged, types
from uphold.core import orders
from uphold.core.specs import Need, RestartPolicy, Schedule, WorkerSpec
from uphold.core.statuses import State

JOB = WorkerSpec(
    name="job",
    command=("job",),
    restart=RestartPolicy.NO,
    schedule=Schedule(every=10.0),
)
HOURLY = replace(JOB, schedule=Schedule(cron="0 * * * *"))


def starts(stage):
    return sum(call == ("start", "job") for call in stage.driver.calls)


async def runs(stage, code=0):
    """Let the run that goes on end."""
    assert stage.status("job").state is State.RUNNING
    stage.driver.end("job", code)
    await stage.clock.settle()


@pytest.mark.accepts("B-89")
@staged(JOB)
async def test_runs_again_and_again_without_anybody_looking(stage):
    assert stage.status("job").state is State.WAITING
    for round_number in range(1, 6):
        await stage.clock.advance(10.1)
        assert starts(stage) == round_number
        await runs(stage)
        assert stage.status("job").state is State.WAITING
        assert stage.status("job").restarts == 0


@staged(replace(JOB, schedule=Schedule(every=10.0, at_load=True)))
async def test_at_load_it_runs_at_once_and_not_again_after_a_crash_of_the_supervisor(stage):
    assert starts(stage) == 1
    await runs(stage)
    await stage.crash()
    await stage.start()
    assert starts(stage) == 0
    assert stage.status("job").state is State.WAITING


@staged(JOB)
async def test_a_skipped_run_is_told_and_counted(stage):
    await stage.clock.advance(35)
    assert starts(stage) == 1
    assert types(stage).count("worker.skipped") == 2
    await runs(stage)
    await stage.clock.advance(10)
    assert starts(stage) == 2


@staged(replace(JOB, schedule=Schedule(every=10.0, overlap="queue")))
async def test_a_queued_run_follows_directly(stage):
    await stage.clock.advance(25)
    assert starts(stage) == 1
    await runs(stage)
    assert starts(stage) == 2
    assert types(stage).count("worker.skipped") == 0


@staged(replace(JOB, schedule=Schedule(every=10.0, overlap="kill")))
async def test_a_run_that_is_in_the_way_is_ended_first(stage):
    await stage.clock.advance(20.5)
    assert stage.driver.calls.count(("stop", "job")) == 1
    assert starts(stage) == 2
    assert stage.status("job").state is State.RUNNING


@pytest.mark.accepts("P15")
@staged(HOURLY)
async def test_a_time_of_day_follows_the_clock_on_the_wall(stage):
    stage.clock.jump_wall(3000)  # 00:50
    await stage.clock.advance(599)
    assert starts(stage) == 0
    await stage.clock.advance(2)
    assert starts(stage) == 1
    await runs(stage)
    stage.clock.jump_wall(-1800)  # 00:30 again
    await stage.clock.advance(3600)
    assert starts(stage) == 1, "one o'clock has been served"
    await stage.clock.advance(1900)
    assert starts(stage) == 2


@pytest.mark.accepts("P15", "B-89")
@staged(HOURLY)
async def test_hours_that_the_clock_jumps_over_are_not_made_up_for(stage):
    stage.clock.jump_wall(86400 * 3 + 1800)
    await stage.clock.advance(60)
    assert starts(stage) == 0
    await stage.clock.advance(1800)
    assert starts(stage) == 1


@pytest.mark.accepts("B-89")
@staged(JOB)
async def test_hours_without_a_supervisor_are_not_made_up_for(stage):
    await stage.clock.advance(10.1)
    await runs(stage)
    await stage.crash()
    await stage.clock.advance(7200)
    await stage.start()
    assert starts(stage) == 0
    await stage.clock.advance(10.1)
    assert starts(stage) == 1


@staged(JOB)
async def test_a_run_goes_on_under_the_next_supervisor_and_its_schedule_too(stage):
    await stage.clock.advance(10.1)
    await stage.crash()
    await stage.start()
    assert stage.status("job").state is State.RUNNING
    await runs(stage)
    assert stage.status("job").state is State.WAITING
    await stage.clock.advance(10)
    assert starts(stage) == 1


@staged(JOB)
async def test_a_start_order_runs_it_now_and_a_stop_withholds_it(stage):
    job = await stage.order(orders.StartWorkers(names=("job",)))
    assert starts(stage) == 1
    await runs(stage)
    assert job.row.state == "succeeded"
    await stage.order(orders.StopWorkers(names=("job",)))
    await stage.clock.advance(1000)
    assert starts(stage) == 1
    assert stage.status("job").state is State.STOPPED


@staged(JOB)
async def test_while_the_supervisor_is_paused_nothing_runs_and_nothing_is_made_up_for(stage):
    await stage.order(orders.PauseSupervisor())
    await stage.clock.advance(1000)
    assert starts(stage) == 0
    await stage.order(orders.ResumeSupervisor())
    assert starts(stage) == 0
    await stage.clock.advance(10)
    assert starts(stage) == 1


@staged(replace(JOB, schedule=Schedule(cron="0 0 1 1 *")))
async def test_a_long_wait_is_noted_once_however_often_it_is_looked_at(stage):
    await stage.clock.advance(3600)
    reconciler = stage.supervisor._reconciler
    assert len(reconciler._wakes) <= 2


DB = WorkerSpec(name="db", command=("db",), autostart=False)
NEEDY = replace(JOB, depends_on=(("db", Need.STARTED),))


async def _is_skipped_until_its_dependency_is_there(stage):
    await stage.clock.advance(7200)
    assert types(stage).count("worker.skipped") == 23
    await stage.clock.advance(20)  # the next run is due, and on time for a minute
    await stage.order(orders.StartWorkers(names=("db",)))
    await stage.clock.advance(1)
    assert stage.status("job").state is State.RUNNING


@staged(DB, replace(NEEDY, schedule=Schedule(every=300.0)))
async def test_a_run_without_its_dependency_is_skipped_though_nothing_else_happens(stage):
    await _is_skipped_until_its_dependency_is_there(stage)


@staged(DB, replace(NEEDY, schedule=Schedule(cron="*/5 * * * *")))
async def test_a_time_of_day_without_its_dependency_is_skipped_likewise(stage):
    await _is_skipped_until_its_dependency_is_there(stage)
