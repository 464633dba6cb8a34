from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.core.specs import Kind, Probe, WorkerSpec
from uphold.core.statuses import State
from uphold.core.vitals import Answer, Outcome
from uphold.drivers.remote import RemoteDriver
from uphold.engine.drifting import drifted
from uphold.engine.supervisor import Supervisor
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
DB = WorkerSpec(name="db", command=("db",))


@pytest.mark.accepts("M-13")
def test_only_what_is_believed_to_run_and_is_not_seen_has_drifted():
    async def go():
        stage = await Stage(WEB, DB).start()
        observed = stage.supervisor.snapshot().observed
        assert list(drifted(observed, [stage.driver], 5.0)) == []
        stage.driver.drop("db")
        (fact,) = drifted(observed, [stage.driver], 5.0)
        assert (fact.slot, fact.generation, fact.exit.at) == ("db", 1, 5.0)
        assert (fact.exit.code, fact.exit.signal) == (None, None)
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("P11")
def test_one_that_is_up_and_not_ready_yet_may_have_drifted_too():
    """Nobody would ever find it ready, and nobody would start it again."""

    async def go():
        slow = replace(WEB, ready=Probe(way="tcp", target="127.0.0.1:1"))
        stage = Stage(slow)
        stage.prober.answers["web"] = Answer(Outcome.MISSED, "not yet")
        await stage.start()
        assert stage.status("web").state is State.STARTING
        observed = stage.supervisor.snapshot().observed
        assert list(drifted(observed, [stage.driver], 5.0)) == []
        stage.driver.drop("web")
        assert [fact.slot for fact in drifted(observed, [stage.driver], 5.0)] == ["web"]
        await stage.clock.advance(31)
        assert stage.driver.calls.count(("start", "web")) == 2
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("M-13")
def test_a_worker_that_no_longer_runs_elsewhere_has_not_drifted_while_its_process_lives():
    """The driver it was listened to by still knows its name, and sees nobody."""

    async def go():
        stage = Stage(WorkerSpec(name="web", kind=Kind.REMOTE))
        remote = RemoteDriver(stage.clock, boot_id="boot-1")
        drivers = {Kind.PROCESS: stage.driver, Kind.REMOTE: remote}
        world = replace(stage.supervisor._world, drivers=drivers)
        stage.supervisor = Supervisor(stage.config, world)
        await stage.start()
        assert stage.status("web").state is State.RUNNING
        await stage.change(WEB)
        await stage.clock.advance(1)
        assert stage.driver.calls.count(("start", "web")) == 1
        observed = stage.supervisor.snapshot().observed
        for order in (drivers.values(), reversed(drivers.values())):
            assert list(drifted(observed, order, 5.0)) == []
        await stage.clock.advance(100)
        assert stage.status("web").state is State.RUNNING
        assert stage.driver.calls.count(("start", "web")) == 1
        await stage.supervisor.abandon()

    asyncio.run(go())
