"""How often a single pass starts a slot; the engine over fakes, on virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.actions import Start
from uphold.core.declaring import Declaration, declare
from uphold.core.health import slot_health
from uphold.core.notices import Beat
from uphold.core.orders import Order
from uphold.core.specs import Backoff, Heartbeat, Probe, WorkerSpec
from uphold.core.statuses import Health, State
from uphold.core.vitals import Answer, Outcome
from uphold.engine.attempts import Attempts
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",), backoff=Backoff(first=0.0, base=0.5, jitter=0.0))
PUMP = WorkerSpec(name="@pump", command=("pump",))
START_WEB = Start(slot="web", spec=WEB, why="declared")


def declared(*wishes, specs=(WEB,)):
    declaration = Declaration()
    for number, wish in enumerate((orders.Declare(specs=specs), *wishes)):
        order = Order(id=f"job_{number}", wish=wish, author="ann", origin="test", at=0.0)
        declaration = declare(declaration, order)
    return declaration


def playing(test):
    """Run an async test of a single pass on a stage."""

    def run():
        async def go():
            stage = await Stage(WEB, attempts=Attempts()).start()
            await test(stage)
            await stage.supervisor.abandon()

        asyncio.run(go())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def opened(stage, only=None):
    stage.attempts.open(only)
    stage.supervisor.look_at_all()
    await stage.clock.settle()


@pytest.mark.accepts("C-148", "B-62")
def test_nothing_starts_by_itself_before_the_gate_is_open_and_then_once():
    attempts, declaration = Attempts(), declared()
    attempts.begin(declaration)
    assert not attempts.allow(START_WEB, declaration)
    assert not attempts.tried
    attempts.open()
    assert attempts.allow(START_WEB, declaration)
    assert not attempts.allow(START_WEB, declaration)
    assert set(attempts.tried) == {"web"}


@pytest.mark.parametrize(
    "wish",
    [
        orders.StartWorkers(names=("web",)),
        orders.RestartWorkers(names=("web",)),
        orders.ResumeWorkers(names=("web",)),
        orders.ReleaseWorkers(names=("web",)),
    ],
)
def test_each_order_of_this_pass_allows_one_more_start(wish):
    attempts, before = Attempts(), declared()
    attempts.begin(before)
    after = declared(wish)
    assert attempts.allow(START_WEB, after), "although the gate is closed: somebody waits for it"
    assert not attempts.allow(START_WEB, after)
    attempts.open()
    assert not attempts.allow(START_WEB, after), "it had its start"
    assert attempts.allow(START_WEB, declared(wish, wish))


def test_an_order_from_before_the_pass_does_not():
    attempts, declaration = Attempts(), declared(orders.RestartWorkers(names=("web",)))
    attempts.begin(declaration)
    assert not attempts.allow(START_WEB, declaration)


def test_the_gate_may_be_opened_for_some_alone():
    attempts, declaration = Attempts(), declared()
    attempts.begin(declaration)
    attempts.open(("db",))
    assert not attempts.allow(START_WEB, declaration)
    attempts.open(("web",))
    assert attempts.allow(START_WEB, declaration)


def test_a_companion_is_never_started():
    attempts, declaration = Attempts(), declared(specs=(WEB, PUMP))
    attempts.open()
    assert not attempts.allow(Start(slot="@pump", spec=PUMP, why="declared"), declaration)


@pytest.mark.accepts("C-148")
@playing
async def test_a_worker_that_crashes_is_tried_once_and_then_left_to_the_next_pass(stage):
    assert stage.driver.calls == []
    await opened(stage)
    assert stage.driver.calls == [("start", "web")]
    stage.driver.end("web", code=1)
    await stage.clock.advance(30)
    assert stage.driver.calls == [("start", "web")]
    assert stage.status("web").state is State.BACKOFF
    stage.attempts = Attempts()
    await stage.crash()
    await stage.start()
    await opened(stage)
    assert stage.status("web").state is State.RUNNING
    assert stage.status("web").generation == 2
    assert stage.status("web").failures == 1, "it is counted on over passes"


@playing
async def test_an_order_starts_it_once_more(stage):
    await opened(stage)
    stage.driver.end("web", code=1)
    await stage.clock.settle()
    job = await stage.order(orders.StartWorkers(names=("web",)))
    await stage.clock.advance(1)
    assert job.row.state == "succeeded"
    assert stage.driver.calls == [("start", "web"), ("start", "web")]


@pytest.mark.accepts("C-149", "B-63")
@playing
async def test_a_held_worker_is_not_started_by_any_gate(stage):
    await stage.order(orders.PauseWorkers(names=("web",)))
    await opened(stage)
    assert stage.driver.calls == []


@playing
async def test_what_was_found_alive_needs_no_start(stage):
    await opened(stage)
    stage.attempts = Attempts()
    await stage.crash()
    await stage.start()
    await opened(stage)
    assert stage.status("web").state is State.RUNNING
    assert stage.status("web").generation == 1
    assert not stage.attempts.tried


def test_a_pass_ends_nobody_because_an_essential_worker_failed():
    async def go():
        essential = WorkerSpec(name="db", command=("db",), essential=True, max_restarts=0)
        stage = await Stage(WEB, essential, attempts=Attempts()).start()
        await opened(stage)
        stage.driver.end("db", code=1)
        await stage.clock.advance(5)
        assert stage.status("db").state is State.FAILED
        assert stage.status("web").state is State.RUNNING
        assert stage.supervisor.snapshot().declaration.closing is None
        await stage.supervisor.abandon()

    asyncio.run(go())


async def next_pass(stage, *edited):
    """End the pass and begin the next one, by an edited file if there is one, with its gate open."""
    stage.attempts = Attempts()
    await stage.crash()
    if edited:
        stage.config.change(*edited)
    await stage.start()
    await opened(stage)


def looked_after(spec):
    """Run an async test of a second pass, which finds what the first one started."""

    def wrap(test):
        def run():
            async def go():
                stage = await Stage(spec, attempts=Attempts()).start()
                await opened(stage)
                assert stage.supervisor.checks.owing == (), "who was just started is left alone"
                await stage.clock.advance(100)
                await test(stage)
                await stage.supervisor.abandon()

            asyncio.run(go())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return wrap


LIVE = WorkerSpec(
    name="web",
    command=("web",),
    live=Probe(way="tcp", target="127.0.0.1:1", every=10.0, failures=3),
)


@looked_after(LIVE)
async def test_whoever_is_found_alive_is_asked_at_once(stage):
    stage.prober.asked.clear()
    await next_pass(stage)
    assert stage.prober.asked == [("web", 1, "tcp")]
    assert stage.supervisor.checks.owing == ()


@looked_after(LIVE)
async def test_and_again_soon_until_there_is_a_verdict(stage):
    stage.prober.answers["web"] = Answer(Outcome.MISSED, "no answer")
    await next_pass(stage)
    assert stage.supervisor.checks.owing == ("web",), "one miss of three is no verdict"
    await stage.clock.advance(1.1)
    assert stage.supervisor.checks.owing == ()
    assert stage.status("web").generation == 2, "it was ended for that, and started once"


@looked_after(LIVE)
async def test_an_edit_since_the_last_pass_does_not_let_anybody_off(stage):
    stage.prober.answers["web"] = Answer(Outcome.MISSED, "no answer")
    stage.prober.asked.clear()
    await next_pass(stage, replace(LIVE, live=replace(LIVE.live, way="http", failures=5)))
    assert stage.prober.asked[-1] == ("web", 1, "http")
    assert stage.supervisor.checks.owing == ("web",)
    await stage.clock.advance(2.1)
    assert stage.supervisor.checks.owing == ()
    assert stage.status("web").generation == 2
    await next_pass(stage, replace(LIVE, live=None, labels=(("a", "b"),)))
    assert stage.supervisor.checks.owing == (), "nothing is asked any more"


BEATS = WorkerSpec(
    name="web", command=("web",), heartbeat=Heartbeat(file="/b.json", stale_after=300.0)
)


@pytest.mark.accepts("C-018", "C-147", "C-T10")
@looked_after(BEATS)
async def test_a_file_of_heartbeats_tells_of_the_time_between_two_passes(stage):
    said = stage.clock.now().wall - 30
    stage.prober.beats["web"] = Beat(status="ok", at=said)
    await next_pass(stage)
    assert slot_health(stage.status("web")) is Health.HEALTHY
    await stage.clock.advance(300)
    await next_pass(stage)
    assert slot_health(stage.status("web")) is Health.DEGRADED
    assert "no heartbeat" in stage.status("web").finding.why
    stage.prober.beats["web"] = Beat(status="ok", at=stage.clock.now().wall)
    await next_pass(stage)
    assert slot_health(stage.status("web")) is Health.HEALTHY
