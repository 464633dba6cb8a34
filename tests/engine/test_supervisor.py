"""The whole engine over fakes, on virtual time."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from itertools import pairwise

import pytest

from uphold.core import orders
from uphold.core.orders import Refusal
from uphold.core.specs import Backoff, RestartPolicy, StopRule, WorkerSpec
from uphold.core.statuses import State, SupervisorStatus
from uphold.engine.supervisor import Supervisor
from uphold.ports.drivers import Trace
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
DB = WorkerSpec(name="db", command=("db",))


def staged(*specs):
    """Run an async test on a started stage with these specs."""

    def wrap(test):
        def run():
            async def go():
                stage = await Stage(*specs).start()
                await test(stage)
                if stage.supervisor.snapshot().status is not SupervisorStatus.TERMINATED:
                    await stage.supervisor.abandon()

            asyncio.run(go())

        run.__name__ = test.__name__
        run.__doc__ = test.__doc__
        return run

    return wrap


def types(stage):
    return [
        getattr(recorded.event, "TYPE", None) or recorded.event.type
        for batch in stage.journal.appended
        for recorded in batch.events
    ]


@pytest.mark.accepts("M-01", "M-02", "M-46")
def test_a_new_supervisor_knows_nothing_and_has_done_nothing():
    stage = Stage(WEB)
    snapshot = stage.supervisor.snapshot()
    assert (snapshot.version, len(snapshot.workers)) == (0, 0)
    assert stage.driver.calls == []
    assert stage.config.listeners == 0


@pytest.mark.accepts("M-03", "M-15", "M-39", "M-40", "M-46")
@staged(WEB)
async def test_start_subscribes_and_brings_up_what_is_declared(stage):
    assert stage.config.listeners == 1
    assert stage.driver.calls == [("start", "web")]
    assert stage.status("web").state is State.RUNNING
    told = types(stage)
    assert (
        told.index("worker.added") < told.index("worker.starting") < told.index("worker.connected")
    )
    assert "worker.state_changed" in told


@pytest.mark.accepts("M-04", "M-31", "O-04", "O-10", "O-13", "B-92")
@staged(WEB, DB)
async def test_stop_ends_everything_and_dispatches_nothing_afterwards(stage):
    listener = stage.supervisor.subscribe()
    assert await stage.supervisor.stop() == 0
    assert stage.driver.world.alive == {}
    assert stage.config.listeners == 0
    calls = list(stage.driver.calls)
    stage.config.change()
    await stage.clock.advance(120)
    assert stage.driver.calls == calls
    heard = [recorded async for recorded in listener]
    assert heard[-1].event.type == "supervisor.stopped"
    assert stage.supervisor.snapshot().status is SupervisorStatus.TERMINATED


@pytest.mark.accepts("M-11", "M-13")
@staged(WEB)
async def test_when_wish_and_fact_agree_a_reconcile_changes_nothing(stage):
    calls = list(stage.driver.calls)
    await stage.clock.advance(95)
    assert stage.driver.calls == calls
    assert stage.supervisor.snapshot().reconcile_count == 3


@pytest.mark.accepts("M-09", "M-07", "M-08")
@staged(WEB)
async def test_a_worker_record_has_its_eleven_fields_and_they_move(stage):
    before = stage.supervisor.snapshot().workers["web"]
    await stage.clock.advance(31)
    after = stage.supervisor.snapshot().workers["web"]
    assert after.reconcile_count == before.reconcile_count + 1
    assert after.last_reconcile > before.last_reconcile
    assert (after.name, after.config, after.enabled, after.quarantined) == ("web", WEB, True, False)
    assert after.connected
    assert after.connection_info[0].identity.pid
    assert after.last_seen
    assert after.tool_count == 0
    assert after.desired_version == 1


@pytest.mark.accepts("M-13", "B-26", "P11")
@staged(WEB)
async def test_drift_behind_our_back_is_found_within_thirty_seconds(stage):
    stage.driver.drop("web")
    await stage.clock.advance(31)
    assert stage.status("web").state is State.RUNNING
    assert stage.status("web").generation == 2
    assert stage.driver.calls.count(("start", "web")) == 2


@pytest.mark.accepts("M-12", "M-20", "M-41")
@staged(WEB, DB)
async def test_a_changed_worker_is_restarted_at_once_and_alone(stage):
    await stage.change(WorkerSpec(name="web", command=("web", "-v")), DB)
    assert stage.driver.calls == [
        ("start", "web"),
        ("start", "db"),
        ("stop", "web"),
        ("start", "web"),
    ]
    assert "reconciliation.complete" in types(stage)
    assert stage.supervisor.snapshot().workers["web"].desired_version == 2
    assert stage.supervisor.snapshot().workers["db"].desired_version == 1


@pytest.mark.accepts("M-06", "M-10", "B-37")
@staged(WEB)
async def test_a_new_configuration_reaches_the_driver_only_through_recorded_actions(stage):
    stage.journal.appended.clear()
    calls = len(stage.driver.calls)
    await stage.change(WorkerSpec(name="web", command=("web", "-v")))
    begun = [
        type(recorded.event).__name__
        for batch in stage.journal.appended
        for recorded in batch.events
        if type(recorded.event).__name__ in ("StopBegun", "StartBegun")
    ]
    assert begun == ["StopBegun", "StartBegun"]
    assert stage.driver.calls[calls:] == [("stop", "web"), ("start", "web")]


@staged(WEB)
async def test_events_name_the_order_they_follow_from(stage):
    job = await stage.order(orders.RestartWorkers(names=("web",)))
    caused = {
        (getattr(r.event, "TYPE", None) or r.event.type)
        for batch in stage.journal.appended
        for r in batch.events
        if r.cause == job.order.id
    }
    assert {"order.accepted", "worker.stopping", "worker.starting", "order.done"} <= caused | {
        "order.done"
    }


@pytest.mark.accepts("M-18", "M-46")
@staged(WEB)
async def test_a_worker_disabled_in_the_file_is_stopped_and_stays_known(stage):
    await stage.change(WorkerSpec(name="web", command=("web",), enabled=False))
    assert stage.driver.world.alive == {}
    assert stage.status("web").state is State.STOPPED
    assert not stage.supervisor.snapshot().workers["web"].enabled


@pytest.mark.accepts("M-21", "M-46")
@staged(WEB, DB)
async def test_a_worker_removed_from_the_file_is_stopped_and_forgotten(stage):
    await stage.change(DB)
    assert list(stage.driver.world.alive) == ["db"]
    assert "web" not in stage.supervisor.snapshot().workers
    assert "web" not in stage.supervisor.snapshot().observed.slots
    assert "web" not in stage.journal.recall().slots
    assert "worker.removed" in types(stage)


@pytest.mark.accepts("M-24", "M-25")
@staged(DB)
async def test_one_failing_start_stops_no_other_and_is_tried_again(stage):
    stage.driver.fail_start("web")
    await stage.change(WEB, DB)
    assert stage.status("db").state is State.RUNNING
    assert stage.status("web").state is State.RUNNING, "the first retry is immediate"
    assert stage.status("web").restarts == 1
    assert "reconciliation.failed" not in types(stage)


@pytest.mark.accepts("M-26", "M-48", "B-34", "B-25")
@staged(DB)
async def test_a_hanging_start_delays_nobody(stage):
    stage.driver.hang_start("web")
    await stage.change(WEB, DB)
    assert stage.status("web").state is State.STARTING
    await stage.order(orders.RestartWorkers(names=("db",)))
    assert stage.status("db").generation == 2
    assert stage.supervisor.snapshot().workers["db"].connected
    stage.driver.release_start("web")
    await stage.clock.settle()
    assert stage.status("web").state is State.RUNNING


@pytest.mark.accepts("M-33", "M-34", "M-35", "M-36", "B-28", "B-32")
@staged(WEB)
async def test_a_snapshot_never_changes_and_versions_only_rise(stage):
    old = stage.supervisor.snapshot()
    seen = [old.version]
    text = repr(old)
    await stage.change(WEB, DB)
    seen.append(stage.supervisor.snapshot().version)
    stage.driver.end("web", 1)
    await stage.clock.advance(5)
    seen.append(stage.supervisor.snapshot().version)
    assert seen == sorted(set(seen))
    assert repr(old) == text
    with pytest.raises(TypeError):
        old.observed.slots["web"] = None
    with pytest.raises(AttributeError):
        old.workers["web"].config.name = "x"


@pytest.mark.accepts("M-32", "M-47")
@staged(WEB, DB)
async def test_many_threads_read_snapshots_while_everything_changes(stage):
    stop = threading.Event()
    broken = []

    def read():
        last = 0
        while not stop.is_set():
            snapshot = stage.supervisor.snapshot()
            if snapshot.version < last:
                broken.append((last, snapshot.version))
            last = snapshot.version
            for name in snapshot.workers:
                if name not in snapshot.declaration.workers:
                    broken.append(name)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(60):
        await stage.change(*(WEB, DB)[: 1 + turn % 2])
    stop.set()
    for reader in readers:
        reader.join()
    assert broken == []


@pytest.mark.accepts("M-42", "M-38")
@staged(WEB)
async def test_every_listener_hears_everything_and_leaves_alone(stage):
    one, two = stage.supervisor.subscribe(), stage.supervisor.subscribe()
    stage.driver.end("web", 1)
    await stage.clock.settle()
    one.close()
    await stage.change(WEB, DB)
    two.close()
    heard_by_one = [recorded async for recorded in one]
    heard_by_two = [recorded async for recorded in two]
    assert heard_by_two[: len(heard_by_one)] == heard_by_one
    assert len(heard_by_two) > len(heard_by_one) > 0


@pytest.mark.accepts("M-43", "P11")
@staged(WEB)
async def test_a_listener_that_never_reads_loses_with_a_counted_gap(stage):
    lazy = stage.supervisor.subscribe(most=3)
    for _ in range(5):
        stage.driver.end("web", 0)
        await stage.clock.advance(70)
    lazy.close()
    first, *rest = [recorded async for recorded in lazy]
    assert first.event.type == "gap"
    assert first.event.payload["lost"] > 3
    assert rest[0].seq == first.event.payload["to_seq"] + 1
    assert stage.status("web").state is State.RUNNING


@pytest.mark.accepts("P10", "B-37")
@staged(WEB)
async def test_an_order_is_on_disk_before_it_takes_effect(stage):
    stage.journal.unavailable = True
    answer = await stage.order(orders.StopWorkers(names=("web",)))
    assert isinstance(answer, Refusal)
    assert answer.code == "UPH_AUDIT_UNWRITABLE"
    assert stage.status("web").state is State.RUNNING
    stage.journal.unavailable = False
    job = await stage.order(orders.StopWorkers(names=("web",)))
    assert [entry.action for entry in stage.journal.audit][-2:] == ["stop", "stop.succeeded"]
    assert stage.journal.jobs[job.row.id].state == "succeeded"
    durable = [batch for batch in stage.journal.appended if batch.audit and batch.durable]
    assert durable


@pytest.mark.accepts("P14", "E-43")
@staged(WEB)
async def test_a_journal_that_cannot_be_written_stops_no_supervision(stage):
    stage.journal.unavailable = True
    stage.driver.end("web", 1)
    await stage.clock.settle()
    assert stage.status("web").state is State.RUNNING
    assert stage.status("web").generation == 2
    assert stage.supervisor.trouble
    stage.journal.unavailable = False
    await stage.clock.advance(40)
    assert stage.supervisor.trouble is None
    numbers = [event["seq"] for event in await stage.journal.events(limit=10_000)]
    assert numbers == list(range(1, len(numbers) + 1)), "late, but whole"
    assert stage.journal.recall().slots["web"].generation == 2


@staged(WEB)
async def test_a_supervisor_that_ends_on_a_full_disk_leaves_no_task_behind(stage):
    stage.journal.unavailable = True
    await stage.supervisor.abandon()
    await stage.clock.settle()
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name() == "mend"] == []


@pytest.mark.accepts("P2", "P5", "P6", "E-09")
@staged(WEB, DB)
async def test_the_next_supervisor_adopts_what_lives_and_starts_nothing_twice(stage):
    pids = {slot: identity.pid for slot, identity in stage.driver.world.alive.items()}
    await stage.crash()
    await stage.start()
    assert {s: i.pid for s, i in stage.driver.world.alive.items()} == pids
    assert ("start", "web") not in stage.driver.calls
    assert stage.status("web").generation == 1
    assert stage.status("web").restarts == 0


@pytest.mark.accepts("P8")
@staged(WEB)
async def test_failures_are_remembered_across_a_crash_of_the_supervisor(stage):
    for _ in range(4):
        stage.driver.end("web", 1)
        await stage.clock.advance(20)
    failures = stage.status("web").failures
    assert failures == 4
    stage.driver.drop("web")
    await stage.crash()
    await stage.start()
    assert stage.status("web").failures == failures + 1
    assert stage.status("web").state is State.BACKOFF


@pytest.mark.accepts("P15")
@staged(WEB)
async def test_jumps_of_the_wall_clock_restart_and_delay_nothing(stage):
    for jump in (3600.0, -86400.0, 315_360_000.0, -1.0):
        stage.clock.jump_wall(jump)
        await stage.clock.advance(31)
    assert stage.driver.calls == [("start", "web")]
    stage.driver.end("web", 1)
    await stage.clock.settle()
    stage.driver.end("web", 1)
    stage.clock.jump_wall(-7200.0)
    await stage.clock.advance(1.2)
    assert stage.status("web").state is State.RUNNING


SLOW = WorkerSpec(name="slow", command=("slow",), stop=StopRule(grace=10.0))


@pytest.mark.accepts("P4", "D-25")
@staged(SLOW)
async def test_a_stop_escalates_after_the_grace_and_not_before(stage):
    stage.driver.ignore_stop("slow")
    job = await stage.order(orders.StopWorkers(names=("slow",)))
    await stage.clock.advance(9.9)
    assert ("kill", "slow") not in stage.driver.calls
    await stage.clock.advance(0.2)
    assert stage.driver.calls[-1] == ("kill", "slow")
    assert stage.status("slow").state is State.STOPPED
    assert job.done.result()[0].ok


@pytest.mark.accepts("P3", "R-11", "R-12")
@staged(SLOW)
async def test_what_survives_sigkill_is_reported_and_never_replaced(stage):
    stage.driver.ignore_stop("slow")
    stage.driver.survive_kill("slow")
    job = await stage.order(orders.RestartWorkers(names=("slow",)))
    await stage.clock.advance(60)
    assert stage.status("slow").state is State.STOPPING
    assert stage.status("slow").error.code == "UPH_STOP_UNKILLABLE"
    assert stage.driver.calls.count(("start", "slow")) == 1
    (result,) = job.done.result()
    assert not result.ok
    stage.driver.let_die("slow")
    await stage.clock.settle()
    assert stage.status("slow").state is State.RUNNING
    assert stage.status("slow").error is None


FLAPPY = WorkerSpec(name="flappy", command=("x",), backoff=Backoff(jitter=0.0), max_restarts=4)


@pytest.mark.accepts("P8", "B-14", "B-14b", "B-19")
@staged(FLAPPY)
async def test_a_crash_loop_backs_off_exactly_and_ends_in_failed(stage):
    began = stage.clock.now().mono
    starts = [0.0]
    while stage.status("flappy").state is not State.FAILED:
        stage.driver.end("flappy", 1)
        generation = stage.status("flappy").generation
        for _ in range(400):
            await stage.clock.advance(0.1)
            if stage.status("flappy").generation > generation or (
                stage.status("flappy").state is State.FAILED
            ):
                break
        starts.append(round(stage.clock.now().mono - began, 1))
    gaps = [round(after - before, 1) for before, after in pairwise(starts[:-1])]
    assert gaps == [0.1, 1.0, 2.0, 4.0]
    assert stage.driver.calls.count(("start", "flappy")) == 5
    await stage.clock.advance(7200)
    assert stage.driver.calls.count(("start", "flappy")) == 5, "the drift pass never bypasses it"
    await stage.order(orders.ResetWorkers(names=("flappy",)))
    assert stage.status("flappy").state is State.RUNNING


@pytest.mark.accepts("O-16", "O-26", "O-30", "O-31")
@staged(WEB)
async def test_the_supervisors_own_life_is_on_record_at_once_and_regularly(stage):
    assert types(stage).count("supervisor.heartbeat") == 1
    await stage.order(orders.PauseSupervisor())
    await stage.clock.advance(61)
    assert types(stage).count("supervisor.heartbeat") == 3, "paused or not"
    await stage.supervisor.stop(keep_workers=True)
    await stage.clock.advance(120)
    assert types(stage).count("supervisor.heartbeat") == 3


@pytest.mark.accepts("O-16", "O-17", "O-19")
@staged(WEB)
async def test_a_paused_supervisor_does_nothing_until_resumed(stage):
    await stage.order(orders.PauseSupervisor())
    assert stage.supervisor.snapshot().status is SupervisorStatus.PAUSED
    stage.driver.end("web", 1)
    await stage.clock.advance(300)
    assert stage.status("web").state is State.BACKOFF
    await stage.crash()
    await stage.start()
    assert stage.supervisor.snapshot().status is SupervisorStatus.PAUSED
    await stage.order(orders.ResumeSupervisor())
    assert stage.status("web").state is State.RUNNING


@staged(WEB)
async def test_orders_that_come_together_share_one_commit_and_are_answered_in_order(stage):
    batches = len([b for b in stage.journal.appended if b.audit and b.durable])
    made = [
        stage.supervisor.desk.order(wish(names=("web",)), author="ann", origin="test")
        for wish in (orders.StopWorkers, orders.StartWorkers, orders.RestartWorkers)
    ]
    jobs = await asyncio.gather(*(stage.supervisor.desk.submit(order) for order in made))
    await stage.clock.advance(1)
    assert len([b for b in stage.journal.appended if b.audit and b.durable]) == batches + 1
    assert [job.done.result()[0].ok for job in jobs] == [True, True, True]
    assert stage.status("web").generation == 2


ESSENTIAL = WorkerSpec(name="main", command=("m",), essential=True, restart=RestartPolicy.NO)


@staged(ESSENTIAL, WEB)
async def test_the_end_of_an_essential_worker_is_the_end_of_the_supervisor(stage):
    stage.driver.end("main", 0)
    assert await stage.supervisor.wait() == 1
    assert stage.driver.world.alive == {}
    assert "main" in stage.supervisor.snapshot().last_error.message


@pytest.mark.accepts("B-29", "B-39")
@staged(SLOW)
async def test_a_shutdown_keeps_workers_when_told_to(stage):
    assert await stage.supervisor.stop(keep_workers=True) == 0
    assert list(stage.driver.world.alive) == ["slow"]


@staged(WEB)
async def test_an_order_for_nobody_is_refused_and_audited(stage):
    answer = await stage.order(orders.StopWorkers(names=("wep",)))
    assert isinstance(answer, Refusal)
    assert (answer.exit_code, "web" in answer.remedy) == (5, True)
    assert stage.journal.audit[-1].action == "stop.refused"


@staged(WEB)
async def test_scaling_never_touches_a_running_slot(stage):
    pid = stage.status("web").identity.pid
    await stage.order(orders.ScaleWorker(name="web", replicas=4))
    await stage.clock.advance(1)
    assert sorted(stage.driver.world.alive) == ["web", "web.2", "web.3", "web.4"]
    await stage.order(orders.ScaleWorker(name="web", replicas=2))
    assert sorted(stage.driver.world.alive) == ["web", "web.2"]
    assert sorted(stage.supervisor.snapshot().observed.slots) == ["web", "web.2"]
    assert stage.status("web").identity.pid == pid


MANY = tuple(WorkerSpec(name=f"w{number}", command=("w",)) for number in range(20))


@staged(*MANY)
async def test_a_rush_is_over_when_all_that_was_begun_has_come_to_something(stage):
    # No time passes between the order and the end of all, and none is waited for.
    assert {stage.status(spec.name).state for spec in MANY} == {State.RUNNING}
    await stage.clock.advance(1.0)
    await stage.order(orders.ShutDown())
    assert stage.supervisor.snapshot().status is SupervisorStatus.TERMINATED


@staged(*MANY)
async def test_one_that_does_not_end_keeps_no_rush_waiting(stage):
    await stage.clock.advance(1.0)
    stage.driver.world.deaf.add("w0")
    await stage.order(orders.ShutDown())
    await stage.clock.advance(0.03)
    assert (stage.status("w0").state, stage.status("w1").state) == (State.STOPPING, State.STOPPED)


@staged(*MANY)
async def test_turns_that_follow_each_other_leave_time_to_others_and_one_long_turn_does_not_rest(
    stage,
):
    await stage.clock.advance(1.0)
    append = stage.journal.append

    async def slowly(batch):
        stage.clock._mono += 0.005  # as on a busy disk; nobody is woken by it
        return await append(batch)

    stage.journal.append = slowly

    async def crash(slot):
        stage.driver.end(slot, 1)
        await stage.clock.settle()

    def started_again(slot):
        return ("start", slot) in stage.driver.calls[len(MANY) :]

    await crash("w0")
    await crash("w1")
    assert started_again("w1"), "at once, without a rest"
    for spec in MANY[2:10]:
        await crash(spec.name)
    assert not started_again("w9"), "others have their time first"
    await stage.clock.advance(0.5)
    assert started_again("w9")


@pytest.mark.accepts("P3", "P8")
@pytest.mark.parametrize("lives", [True, False])
def test_what_lives_although_its_run_is_believed_to_be_over_is_stopped_before_the_end(lives):
    async def go():
        stage = Stage(replace(WEB, max_restarts=0), DB)
        asked = []

        async def strays(known):
            asked.append(known)
            return [
                Trace(slot=slot, generation=1, nonce=each.nonce, identity=each, spec=WEB)
                for slot, each in stage.driver.world.alive.items()
                if slot not in known
            ]

        world = replace(stage.supervisor._world, strays=strays)
        stage.supervisor = Supervisor(stage.config, world)
        await stage.start()
        stage.driver.end("web", 1)
        await stage.clock.advance(1)
        assert stage.status("web").state is State.FAILED
        if lives:
            stage.driver.world.bear("web", stage.status("web").nonce)
        await stage.order(orders.ShutDown())
        assert stage.supervisor.snapshot().status is SupervisorStatus.TERMINATED
        assert stage.driver.world.alive == {}
        assert stage.status("web").state is (State.STOPPED if lives else State.FAILED)
        assert stage.status("web").failures == 1, "it goes on counting"
        assert asked == [(), ("db",)], "once more, and only for what nobody has stopped"

    asyncio.run(go())
