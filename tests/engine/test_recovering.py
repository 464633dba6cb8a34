"""Going on where the last supervisor stopped: which orders still hold (ruling 44)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.specs import Need, WorkerSpec
from uphold.core.statuses import Admin, SlotStatus, State
from uphold.engine.supervisor import Supervisor
from uphold.ports.drivers import Trace
from uphold.ports.journals import Batch
from uphold.testing.journals import MemoryJournal
from uphold.testing.stages import FakeConfig, Stage
from uphold.wire.overrides import decode_override

WEB = WorkerSpec(name="web", command=("web",))


def after_an_edit(wish, *specs, before=WEB, forget_said=False):
    """Order, kill the supervisor, edit the file, start the next one; give the stage."""

    async def go():
        stage = await Stage(before).start()
        await stage.order(wish)
        await stage.crash()
        if forget_said:
            old = '{"up":false,"by":"ann","order":"job_1"}'
            await stage.journal.append(Batch(overrides={"web": old}))
        stage.config = FakeConfig(*specs)
        stage.supervisor = stage._supervisor()
        await stage.start()
        found = stage.supervisor.snapshot().declaration.workers.get("web")
        state = None if found is None else stage.status("web").state
        kept = stage.journal.recall().overrides.get("web")
        await stage.supervisor.abandon()
        return found, state, None if kept is None else decode_override(kept)

    return asyncio.run(go())


@pytest.mark.accepts("P12")
def test_a_stop_holds_through_any_other_edit():
    entry, state, kept = after_an_edit(
        orders.StopWorkers(names=("web",)), replace(WEB, stable_after=5.0, replicas=2)
    )
    assert (entry.up, state) == (False, State.STOPPED)
    assert kept.up is False


def test_a_stop_ends_when_the_file_changed_autostart_meanwhile():
    manual = replace(WEB, autostart=False)
    entry, state, kept = after_an_edit(orders.StartWorkers(names=("web",)), WEB, before=manual)
    assert (entry.override.up, state) == (None, State.RUNNING)
    assert kept.up is None, "and that is in the books"


def test_a_start_ends_when_the_file_changed_autostart_meanwhile():
    entry, _, _ = after_an_edit(orders.StartWorkers(names=("web",)), replace(WEB, autostart=False))
    assert not entry.up


def test_a_scale_ends_when_the_file_changed_replicas_meanwhile():
    entry, _, kept = after_an_edit(
        orders.ScaleWorker(name="web", replicas=4), replace(WEB, replicas=2)
    )
    assert (entry.replicas, kept.replicas) == (2, None)


def test_an_enable_ends_when_the_file_changed_enabled_meanwhile():
    disabled = replace(WEB, enabled=False)
    entry, _, _ = after_an_edit(orders.EnableWorkers(names=("web",)), WEB, before=disabled)
    assert (entry.override.enabled, entry.admin) == (None, Admin.ENABLED)


def test_no_edit_lifts_a_hold():
    entry, state, _ = after_an_edit(
        orders.PauseWorkers(names=("web",)), replace(WEB, autostart=False)
    )
    assert (entry.admin, state) == (Admin.PAUSED, State.STOPPED)


def test_an_order_from_books_of_an_earlier_version_holds_as_before():
    entry, state, kept = after_an_edit(
        orders.StopWorkers(names=("web",)), replace(WEB, enabled=True, replicas=2), forget_said=True
    )
    assert (entry.up, state) == (False, State.STOPPED)
    assert kept.said is not None, "and is compared from now on"


def test_orders_for_a_worker_that_is_gone_are_forgotten():
    other = WorkerSpec(name="other", command=("other",))
    found, _, kept = after_an_edit(orders.StopWorkers(names=("web",)), other)
    assert (found, kept) == (None, None)


def found_alive_against_the_books(*orders_given):
    """Let the books call a slot at rest whose process lives, as after a stop on a full disk."""

    async def go():
        stage = await Stage(WEB).start()
        for wish in orders_given:
            await stage.order(wish)
        books = stage.status("web")
        assert books.state is State.STOPPED
        await stage.crash()
        living = stage.driver.world.bear("web", "unrecorded")
        stray = Trace(
            slot="web",
            generation=books.generation + 1,
            nonce=living.nonce,
            identity=living,
            spec=WorkerSpec(name="web"),
        )
        asked = []

        async def strays(known):
            asked.append(tuple(known))
            return [stray]

        world = replace(stage.supervisor._world, strays=strays)
        stage.supervisor = Supervisor(stage.config, world)
        await stage.start()
        await stage.clock.advance(1)
        assert asked == [()], "a slot at rest counts as unknown"
        await stage.supervisor.abandon()
        return stage, living

    return asyncio.run(go())


@pytest.mark.accepts("P2", "P5", "P14")
def test_what_lives_although_the_books_call_it_stopped_is_stopped():
    stage, _ = found_alive_against_the_books(orders.StopWorkers(names=("web",)))
    assert stage.driver.world.alive == {}
    assert stage.status("web").state is State.STOPPED
    assert ("start", "web") not in stage.driver.calls


@pytest.mark.accepts("P2", "P5")
def test_what_lives_and_is_wanted_again_is_adopted_and_not_started_twice():
    async def go():
        stage = await Stage(replace(WEB, autostart=False)).start()
        await stage.order(orders.StartWorkers(names=("web",)))
        await stage.order(orders.StopWorkers(names=("web",)))
        await stage.crash()
        living = stage.driver.world.bear("web", "unrecorded")
        trace = Trace(slot="web", generation=9, nonce="unrecorded", identity=living, spec=WEB)

        async def strays(known):
            return [trace]

        stage.config = FakeConfig(WEB)
        world = replace(stage.supervisor._world, strays=strays)
        stage.supervisor = Supervisor(stage.config, world)
        await stage.start()
        await stage.clock.advance(1)
        assert stage.driver.world.alive == {"web": living}
        assert stage.status("web").identity == living
        assert stage.driver.calls == [("adopt", "web")]
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("forgive", [True, False])
def test_failures_are_forgiven_by_a_person_who_restarts_everything_and_by_nobody_else(forgive):
    async def go():
        stage = await Stage(replace(WEB, max_restarts=0)).start()
        stage.driver.end("web", 1)
        await stage.clock.advance(1)
        assert stage.status("web").state is State.FAILED
        await stage.supervisor.stop()
        await stage.crash()
        await stage.supervisor.start(forgive=forgive)
        await stage.clock.settle()
        state, failures = stage.status("web").state, stage.status("web").failures
        await stage.supervisor.abandon()
        return state, failures

    expected = (State.RUNNING, 0) if forgive else (State.FAILED, 1)
    assert asyncio.run(go()) == expected


@pytest.mark.accepts("P8")
@pytest.mark.parametrize(("forgive", "failures"), [(True, 1), (False, 3)])
def test_a_worker_that_is_up_when_the_supervisor_stops_is_counted_on_by_the_next(forgive, failures):
    async def go():
        stage = await Stage(WEB).start()
        for _ in range(2):
            stage.driver.end("web", 1)
            await stage.clock.advance(5)
        assert (stage.status("web").state, stage.status("web").failures) == (State.RUNNING, 2)
        await stage.supervisor.stop()
        await stage.crash()
        await stage.supervisor.start(forgive=forgive)
        await stage.clock.settle()
        stage.driver.end("web", 1)
        await stage.clock.settle()
        counted = stage.status("web").failures
        await stage.supervisor.abandon()
        return counted

    assert asyncio.run(go()) == failures


@pytest.mark.accepts("P8", "P9")
def test_what_ended_with_the_machine_is_on_record_as_stopped_and_is_no_failure():
    async def go():
        stage = await Stage(WEB).start()
        await stage.order(orders.PauseSupervisor())
        journal = stage.journal.after_boot("boot-2")
        assert journal.recall().slots["web"].state is State.RUNNING
        await stage.crash()
        stage.driver.world.alive.clear()
        for boot in ("the first of this boot", "the next one, killed before it could act"):
            world = replace(stage.supervisor._world, journal=journal, boot_id="boot-2")
            stage.supervisor = Supervisor(stage.config, world)
            await stage.start()
            assert stage.status("web").why == "the machine was restarted", boot
            assert stage.status("web").failures == 0
            await stage.supervisor.abandon()
            journal = journal.after_kill()
            assert journal.recall().slots["web"].state is State.STOPPED

    asyncio.run(go())


@pytest.mark.accepts("P2", "P5", "P9")
def test_a_report_about_a_run_that_the_books_had_lost_is_not_taken_for_one_about_the_next():
    async def go():
        stage = await Stage(WEB).start()
        await stage.crash()
        trace = Trace(slot="web", generation=9, nonce="lost", identity=None, spec=WEB)

        async def strays(known):
            return [trace]

        async def adopt_later(traces):  # what is left of it takes a while to end
            stage.clock.alarm(stage.clock.now().mono + 1, lambda: stage.driver._tell_gone("web"))
            stage.driver._generations["web"] = 9

        stage.driver.world.alive.clear()
        stage.driver.hang_start("web")
        stage.driver.adopt = adopt_later
        empty = MemoryJournal()
        world = replace(stage.supervisor._world, journal=empty, strays=strays)
        stage.supervisor = Supervisor(stage.config, world)
        await stage.start()
        before = stage.status("web")
        await stage.clock.advance(2)
        assert (before.state, before.generation) == (State.STARTING, 10)
        assert stage.status("web") == before
        stage.driver.release_start("web")
        await stage.clock.settle()
        assert stage.status("web").state is State.RUNNING
        assert stage.status("web").failures == 0
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("P2", "P3")
def test_an_end_without_terms_is_seen_by_the_next_supervisor():
    """A run whose books were lost has no terms; cut while it was being ended, it still ends."""

    async def go():
        stage = await Stage(replace(WEB, autostart=False)).start()
        lost = SlotStatus(slot="web", state=State.STOPPING, generation=7, killed=True)
        await stage.crash()
        await stage.journal.append(Batch(slots=(lost,)))
        await stage.start()
        assert stage.status("web").state is State.STOPPED
        ending = asyncio.ensure_future(stage.supervisor.stop())
        await stage.clock.advance(60.0)
        assert ending.done(), "it waits for something that is gone"

    asyncio.run(go())


async def crash_and_only_stop(stage):
    """Kill the supervisor; let somebody without a file end what it left."""
    await stage.crash()
    stage.config = FakeConfig()
    stage.supervisor = stage._supervisor()
    await stage.supervisor.start(only_to_stop=True)
    await stage.clock.advance(1)
    await stage.supervisor.wait()


@pytest.mark.accepts("P3")
def test_whoever_only_stops_forgets_nobody():
    """Also one that never ran, and slots that somebody scaled to."""

    async def go():
        idle = WorkerSpec(name="idle", command=("idle",), depends_on=(("nobody", Need.STARTED),))
        nobody = WorkerSpec(name="nobody", command=("nobody",), autostart=False)
        stage = await Stage(WEB, nobody, idle).start()
        await stage.order(orders.ScaleWorker(name="web", replicas=3))
        await crash_and_only_stop(stage)
        return {slot: each.state for slot, each in stage.journal.recall().slots.items()}

    slots = asyncio.run(go())
    assert set(slots) >= {"web", "web.2", "web.3", "idle"}
    assert set(slots.values()) == {State.STOPPED}


@pytest.mark.accepts("P3")
def test_whoever_only_stops_is_not_held_up_by_terms_that_come_after_each_other():
    async def go():
        other = replace(WEB, name="other", depends_on=(("web", Need.STARTED),))
        stage = await Stage(WEB, other).start()
        circle = replace(stage.status("web").terms, depends_on=(("other", Need.STARTED),))
        await stage.journal.append(Batch(slots=(replace(stage.status("web"), terms=circle),)))
        await crash_and_only_stop(stage)
        return {each.state for each in stage.journal.recall().slots.values()}

    assert asyncio.run(asyncio.wait_for(go(), 10)) == {State.STOPPED}


@pytest.mark.accepts("P8")
def test_whoever_only_stops_forgives_nobody_who_is_wanted_by_order():
    async def go():
        stage = await Stage(replace(WEB, autostart=False)).start()
        await stage.order(orders.StartWorkers(names=("web",)))
        stage.driver.end("web", 1)
        await stage.clock.advance(2)
        assert stage.status("web").failures == 1
        await crash_and_only_stop(stage)
        return stage.journal.recall().slots["web"]

    stopped = asyncio.run(go())
    assert (stopped.state, stopped.failures) == (State.STOPPED, 1)
