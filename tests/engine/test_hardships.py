"""What a careful reviewer proved could go wrong, and must not any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.events import Sickened
from uphold.core.specs import Need, RestartPolicy, WorkerSpec
from uphold.core.statuses import Health, State
from uphold.engine.supervisor import Supervisor
from uphold.testing.journals import MemoryJournal
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
ONCE = WorkerSpec(name="once", command=("once",), restart=RestartPolicy.NO)


def on_stage(*specs):
    def wrap(test):
        def run():
            async def go():
                stage = await Stage(*specs).start()
                await test(stage)
                await stage.supervisor.abandon()

            asyncio.run(go())

        run.__name__ = test.__name__
        return run

    return wrap


async def without_journal(stage, remembered):
    """Put a supervisor in place whose journal is lost, though it remembers overrides."""
    await stage.crash()
    stage.journal = MemoryJournal()
    world = replace(stage.supervisor._world, journal=stage.journal, remembered=remembered)
    stage.supervisor = Supervisor(stage.config, world)
    await stage.start()


@on_stage(WEB)
async def test_a_restart_remembered_from_a_lost_journal_is_not_repeated_for_ever(stage):
    for _ in range(3):
        await stage.order(orders.RestartWorkers(names=("web",)))
    await without_journal(stage, {"web": '{"nudge": 57, "held": false, "up": true}'})
    starts = stage.driver.calls.count(("start", "web"))
    await stage.clock.advance(120)
    assert stage.driver.calls.count(("start", "web")) == starts


@on_stage(WEB)
async def test_numbers_of_the_declaration_never_fall_behind_the_books(stage):
    for _ in range(5):
        await stage.order(orders.RestartWorkers(names=("web",)))
    seen = stage.status("web").started_seen
    await stage.crash()
    await stage.start()
    assert stage.supervisor.snapshot().declaration.version > seen
    await stage.order(orders.RestartWorkers(names=("web",)))
    assert stage.status("web").generation == 7


@pytest.mark.accepts("P14")
@on_stage(WEB)
async def test_a_configuration_that_could_not_be_recorded_is_declared_when_it_can(stage):
    stage.journal.unavailable = True
    await stage.change(WEB, ONCE)
    assert "once" not in stage.supervisor.snapshot().workers
    stage.journal.unavailable = False
    await stage.clock.advance(11)
    assert stage.status("once").state is State.RUNNING


@on_stage(ONCE)
async def test_a_restart_ordered_in_the_moment_of_the_exit_is_honoured(stage):
    made = stage.supervisor.desk.order(
        orders.RestartWorkers(names=("once",)), author="ann", origin="test"
    )
    submitting = asyncio.create_task(stage.supervisor.desk.submit(made))
    stage.driver.end("once", 0)
    await stage.clock.advance(1)
    job = await submitting
    assert stage.status("once").generation == 2
    assert job.done.result()[0].ok


@on_stage(ONCE)
async def test_a_start_ordered_while_left_overs_are_being_ended_is_honoured(stage):
    stage.driver.end("once", 0, left_overs=True)
    await stage.clock.settle()
    assert stage.status("once").state is State.STOPPING
    job = await stage.order(orders.StartWorkers(names=("once",)))
    stage.driver.empty("once")
    await stage.clock.advance(1)
    assert stage.status("once").generation == 2
    assert job.done.result()[0].ok


@pytest.mark.accepts("P27")
@on_stage(WorkerSpec(name="web", command=("web",), autostart=False))
async def test_stopped_is_not_answered_before_a_turn_has_looked(stage):
    desk = stage.supervisor.desk
    stage.driver.hang_start("web")
    starting = asyncio.create_task(
        desk.submit(desk.order(orders.StartWorkers(names=("web",)), author="a", origin="t"))
    )
    await asyncio.sleep(0)
    job = await desk.submit(desk.order(orders.StopWorkers(names=("web",)), author="a", origin="t"))
    await stage.clock.settle()
    stage.driver.release_start("web")
    await stage.clock.advance(1)
    assert job.done.result()[0].ok
    assert stage.driver.world.alive == {}
    known = stage.supervisor.snapshot().observed.slots.get("web")
    assert known is None or known.state is State.STOPPED
    await starting


@on_stage(WEB, WorkerSpec(name="api", command=("api",), depends_on=(("web", Need.STARTED),)))
async def test_workers_removed_together_go_in_order_and_at_once(stage):
    await stage.change()
    assert stage.driver.calls[-2:] == [("stop", "api"), ("stop", "web")]
    assert stage.supervisor.snapshot().observed.slots == {}


@on_stage(WEB)
async def test_a_signal_nobody_got_is_not_called_a_success(stage):
    await stage.order(orders.StopWorkers(names=("web",)))
    job = await stage.order(orders.SignalWorkers(names=("web",), signal="HUP"))
    (result,) = job.done.result()
    assert not result.ok
    assert "no process" in result.error


@on_stage(WEB)
async def test_a_shutdown_is_called_done_only_when_it_is(stage):
    stage.driver.ignore_stop("web")
    desk = stage.supervisor.desk
    job = await desk.submit(desk.order(orders.ShutDown(), author="ann", origin="test"))
    await stage.clock.advance(5)
    assert "shutdown.succeeded" not in [entry.action for entry in stage.journal.audit]
    await stage.clock.advance(30)
    assert await stage.supervisor.wait() == 0
    assert "shutdown.succeeded" in [entry.action for entry in stage.journal.audit]
    assert job.row.state == "succeeded"


def test_a_broken_loop_ends_the_supervisor_with_an_error_and_lets_nobody_hang():
    async def go():
        stage = await Stage(WEB).start()

        async def broken(*_):
            raise RuntimeError("a bug")

        stage.supervisor.desk._intake._take = broken
        made = stage.supervisor.desk.order(
            orders.StopWorkers(names=("web",)), author="a", origin="t"
        )
        with pytest.raises(asyncio.CancelledError):
            await stage.supervisor.desk.submit(made)
        assert await stage.supervisor.wait() == 1
        assert stage.supervisor.trouble.code == "UPH_SUPERVISOR_BROKEN"
        assert list(stage.driver.world.alive) == ["web"], "workers notice nothing"

    asyncio.run(go())


@on_stage(WEB, replace(ONCE, essential=True))
async def test_an_essential_end_that_could_not_be_recorded_is_acted_on_when_it_can(stage):
    stage.journal.unavailable = True
    stage.driver.end("once", 0)
    await stage.clock.advance(1)
    assert list(stage.driver.world.alive) == ["web"]
    stage.journal.unavailable = False
    await stage.clock.advance(12)
    assert await stage.supervisor.wait() == 1
    assert stage.driver.world.alive == {}


@pytest.mark.accepts("P11")
@on_stage(WEB)
async def test_facts_are_kept_when_recording_them_raises(stage):
    """A bug between hearing and believing costs a moment, never a fact."""
    write, failures = stage.supervisor._ledger.write, iter([RuntimeError("a bug")])

    async def break_once(batch):
        for error in failures:
            raise error
        return await write(batch)

    stage.supervisor._ledger.write = break_once
    stage.driver.end("web", 3)
    await stage.clock.settle()
    assert stage.status("web").generation == 1, "not believed before it is on record"
    await stage.clock.advance(5)
    assert stage.status("web").generation == 2
    assert stage.status("web").state is State.RUNNING
    told = [
        recorded.event
        for batch in stage.journal.appended
        for recorded in batch.events
        if getattr(recorded.event, "TYPE", "") == "worker.exited"
    ]
    assert [event.exit.code for event in told] == [3], "and told once"


@pytest.mark.accepts("P27")
@on_stage(ONCE)
async def test_a_start_is_not_honoured_by_an_end_that_came_before_it(stage):
    """A turn is held up; meanwhile a run ends, and then somebody orders a start."""
    await stage.clock.advance(5)
    held_up, append = asyncio.Event(), stage.journal.append

    async def append_later(batch):
        await held_up.wait()
        await append(batch)

    stage.journal.append = append_later
    about = {"slot": "once", "generation": 1}
    stage.supervisor._report(Sickened(**about, health=Health.DEGRADED, why="slow"))
    await stage.clock.settle()
    stage.driver.end("once", 0)
    desk = stage.supervisor.desk
    wish = desk.order(orders.StartWorkers(names=("once",)), author="ann", origin="test")
    ordered = asyncio.ensure_future(desk.submit(wish))
    await stage.clock.settle()
    held_up.set()
    job = await ordered
    await stage.clock.advance(1)
    assert stage.status("once").generation == 2
    assert job.results["once"].state == "running"
