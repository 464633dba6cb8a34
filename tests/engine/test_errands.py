from __future__ import annotations

import asyncio

import pytest

from uphold.core import orders
from uphold.core.specs import WorkerSpec
from uphold.engine.errands import Outcome
from uphold.testing.stages import Stage

WEB = WorkerSpec(name="web", command=("web",))
UPDATE = orders.UpdateCode(names=("web",))


@pytest.mark.accepts("C-063", "C-106")
def test_an_errand_ends_with_what_it_came_to_in_job_and_audit():
    async def go():
        async def update(order):
            return Outcome(details={"before": "a1", "after": "b2"})

        stage = await Stage(WEB, errands={orders.UpdateCode: update}).start()
        desk = stage.supervisor.desk
        order = desk.order(UPDATE, author="ann", origin="flag", label="nightly", task_id="task_1")
        job = await desk.submit(order)
        (result,) = await job.done
        await stage.clock.settle()
        assert result.ok
        assert (job.row.state, job.row.task_id, job.row.label) == ("succeeded", "task_1", "nightly")
        asked, ended = [each for each in stage.journal.audit if each.id.startswith(order.id)]
        assert (asked.action, asked.details["task_id"]) == ("update", "task_1")
        assert (ended.action, ended.label) == ("update.succeeded", "nightly")
        assert (ended.details["before"], ended.details["after"]) == ("a1", "b2")
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("C-104", "C-105")
def test_what_an_errand_raises_ends_that_errand_alone():
    async def go():
        async def update(order):
            raise RuntimeError("a bug")

        async def report(order):
            return Outcome()

        runs = {orders.UpdateCode: update, orders.Diagnose: report}
        stage = await Stage(WEB, errands=runs).start()
        job = await stage.order(UPDATE)
        assert job.row.state == "failed"
        assert "a bug" in job.row.error
        assert (await stage.order(orders.Diagnose(names=("web",)))).row.state == "succeeded"
        assert stage.status("web").state == "running"
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("B-38")
def test_errands_are_carried_out_one_after_the_other():
    async def go():
        under_way, most = 0, 0
        gate = asyncio.Event()

        async def update(order):
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await gate.wait()
            under_way -= 1
            return Outcome()

        stage = await Stage(WEB, errands={orders.UpdateCode: update}).start()
        first, second = [await stage.order(UPDATE) for _ in range(2)]
        assert (first.row.state, second.row.state) == ("running", "running")
        gate.set()
        await asyncio.gather(first.done, second.done)
        assert most == 1
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_what_is_not_configured_says_so():
    async def go():
        stage = await Stage(WEB).start()
        job = await stage.order(UPDATE)
        assert job.row.state == "failed"
        assert "not configured" in job.row.error
        await stage.supervisor.abandon()

    asyncio.run(go())


def test_an_errand_may_withhold_its_workers_and_release_them():
    async def go():
        seen = []

        async def update(order):
            for wish in (orders.WithholdWorkers, orders.ReleaseWorkers):
                made = desk.order(wish(names=("web",)), author="ann", origin="deploy")
                await (await desk.submit(made)).done
                seen.append(str(stage.status("web").state))
            return Outcome()

        stage = await Stage(WEB, errands={orders.UpdateCode: update}).start()
        desk = stage.supervisor.desk
        job = await stage.order(UPDATE)
        await stage.clock.advance(1)
        assert job.row.state == "succeeded"
        assert seen == ["stopped", "running"]
        assert stage.status("web").generation == 2
        await stage.supervisor.abandon()

    asyncio.run(go())
