from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.specs import WorkerSpec
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
PUMP = WorkerSpec(name="@pump", command=("pump",))


def test_each_order_has_an_id_of_its_own_with_date_and_time():
    async def go():
        stage = await Stage(WEB).start()
        made = [
            stage.supervisor.desk.order(orders.PauseSupervisor(), author="a", origin="t").id
            for _ in range(500)
        ]
        assert len(set(made)) == 500
        assert all(each.startswith("job_20260101_") and len(each) == 24 for each in made)
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_a_job_can_be_found_until_it_has_come_true():
    async def go():
        stage = await Stage(WEB).start()
        stage.driver.ignore_stop("web")
        job = await stage.order(orders.StopWorkers(names=("web",)))
        assert stage.supervisor.desk.job(job.row.id) is job
        await stage.clock.advance(31)
        assert stage.supervisor.desk.job(job.row.id) is None
        assert job.done.result()[0].ok
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_a_start_somebody_waits_for_is_done_only_when_it_has_stayed_up():
    async def go():
        stage = await Stage(WorkerSpec(name="web", command=("web",), autostart=False)).start()
        job = await stage.order(orders.StartWorkers(names=("web",)))
        assert not job.done.done()
        await stage.clock.advance(0.3)
        assert job.done.result()[0].ok
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_a_signal_reaches_the_slots_that_live():
    async def go():
        stage = await Stage(WEB).start()
        await stage.order(orders.SignalWorkers(names=("web",), signal="HUP"))
        assert stage.driver.signals == [("web", "HUP")]
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.parametrize(
    "wish", [orders.StopWorkers, orders.RestartWorkers, orders.PauseWorkers, orders.ResetWorkers]
)
def test_a_name_that_is_given_twice_is_one_worker(wish):
    async def go():
        stage = await Stage(WEB).start()
        job = await stage.order(wish(names=("web", "web")))
        await stage.clock.advance(5)
        assert [each.name for each in job.done.result()] == ["web"]
        assert job.row.target == "web"
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.parametrize("names", [("web", "web"), ("@pump",), ("web", "@pump")])
def test_a_signal_is_sent_once_to_each_companions_too_and_its_order_is_done(names):
    async def go():
        stage = await Stage(WEB, PUMP).start()
        job = await stage.order(orders.SignalWorkers(names=names, signal="HUP"))
        told = list(dict.fromkeys(names))
        assert stage.driver.signals == [(name, "HUP") for name in told]
        assert [(each.name, each.ok) for each in job.done.result()] == [(n, True) for n in told]
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_nobody_waits_for_a_companion_that_is_restarted():
    async def go():
        stage = await Stage(WEB, PUMP).start()
        job = await stage.order(orders.RestartWorkers(names=("@pump",)))
        assert job.done.result() == ()
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_an_edit_that_comes_while_the_one_before_it_is_written_is_not_lost():
    """The disk is full when its turn comes; when there is room again, it is declared."""

    async def go():
        stage = await Stage(WEB).start()
        stage.journal.hang()
        await stage.change(WEB, replace(WEB, name="app"))
        stage.journal.unavailable = True
        await stage.change(WEB, replace(WEB, name="app"), replace(WEB, name="db"))
        stage.journal.release()
        await stage.clock.advance(3)
        assert set(stage.supervisor.snapshot().declaration.workers) == {"web", "app"}
        stage.journal.unavailable = False
        await stage.clock.advance(10)
        assert set(stage.supervisor.snapshot().declaration.workers) == {"web", "app", "db"}
        versions = stage.supervisor.snapshot().declaration.config_version
        await stage.clock.advance(100)
        assert stage.supervisor.snapshot().declaration.config_version == versions, "and once"
        await stage.supervisor.abandon()

    asyncio.run(go())
