from __future__ import annotations

import asyncio

import pytest

from daemon.sharesides import INBOX, WORKER, Place
from uphold.core import orders, outcomes
from uphold.core.specs import DeploySpec
from uphold.daemon.handling import wish_of
from uphold.engine.errands import Outcome
from uphold.errors import UpholdError
from uphold.inbox.flags import Flag

MINE = ("OrionMX",)
TASK = "task_20260101_000000_ab12"
DEPLOY = DeploySpec(repo="/srv/orion", workers=("OrionMX", "Copier"))


def flag(handler, **params):
    return Flag(file="f.flag", task_id=TASK, handler=handler, worker_id="OrionMX", params=params)


CHAIN = f"""{WORKER}
depends_on = ["db"]
stop.grace = "1s"
[workers.db]
command = ["database"]
stop.grace = "1s"
"""


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture
def chain(tmp_path):
    """A worker that needs another; both are paused."""
    return Place(tmp_path, CHAIN + INBOX)


@pytest.mark.accepts("C-029", "C-030", "C-042", "C-043", "C-044")
@pytest.mark.parametrize(
    ("handler", "wish"),
    [
        ("pause_watcher", orders.PauseWorkers(names=MINE)),
        ("resume_watcher", orders.ResumeWorkers(names=MINE)),
        ("restart_watcher", orders.RestartSlowly(names=MINE)),
        ("update_code", orders.UpdateCode(names=DEPLOY.workers)),
        ("update_code_deps", orders.UpdateCode(names=DEPLOY.workers, dependencies=True)),
        ("rollback_code", orders.RollBackCode(names=DEPLOY.workers)),
        ("diagnostics", orders.Diagnose(names=MINE)),
        ("verify_db", orders.VerifyDatabase(names=MINE)),
        ("format_disk", None),
    ],
)
def test_each_handler_is_a_wish_and_code_is_about_all_who_run_from_it(handler, wish):
    assert wish_of(flag(handler), DEPLOY) == wish


def test_a_rollback_says_how_far_and_without_a_checkout_the_worker_alone_is_meant():
    assert wish_of(flag("rollback_code", commits_back=3), DEPLOY).commits == 3
    assert wish_of(flag("update_code"), None).names == MINE


@pytest.mark.accepts("C-052", "C-053", "C-104", "C-106", "C-154", "E-28")
def test_a_flag_is_an_order_with_its_label_in_job_and_audit(place):
    async def story():
        place.drop("pause_watcher", TASK, label="disk swap")
        await place.look()
        assert place.state == "stopped"

    place.play(story)
    (receipt,) = place.receipts()
    assert (receipt["success"], receipt["error"]) == (True, None)
    assert (receipt["label"], receipt["details"]["state"]) == ("disk swap", "stopped")
    (job,) = place.rows(f"SELECT * FROM jobs_t WHERE task_id = '{TASK}'")
    assert (job["job_id"], job["state"]) == (receipt["job_id"], "succeeded")
    asked, ended = place.rows(
        f"SELECT * FROM audit_log_t WHERE audit_id LIKE '{job['job_id']}%' ORDER BY rowid"
    )
    assert (asked["actor"], asked["action"], asked["label"]) == ("flag", "pause", "disk swap")
    assert (ended["action"], ended["label"]) == ("pause.succeeded", "disk swap")
    assert TASK in asked["details_json"]


@pytest.mark.accepts("P20", "P22", "C-036")
def test_a_task_that_is_known_has_no_second_effect_whatever_the_file_is_called(place):
    async def story():
        place.drop("pause_watcher", TASK)
        await place.look()
        place.drop("resume_watcher", TASK, name="supervisor_resume_OrionMX.flag")
        deeds, _ = await place.look()
        assert [deed.success for deed in deeds] == [True]
        assert place.held

    place.play(story)
    first, copy = place.receipts()
    assert copy["details"]["duplicate_of"] == first["job_id"] == copy["job_id"]
    assert len(place.rows(f"SELECT * FROM jobs_t WHERE task_id = '{TASK}'")) == 1


@pytest.mark.accepts("P20")
def test_of_two_with_one_task_id_in_one_look_the_second_has_the_outcome_of_the_first(place):
    async def story():
        place.drop("pause_watcher", TASK, name="supervisor_a.flag")
        place.drop("pause_watcher", TASK, name="supervisor_b.flag")
        await place.look()

    place.play(story)
    assert [receipt["success"] for receipt in place.receipts()] == [True, True]


async def announced(place, **more):
    params = {"task_id": TASK, "handler": "pause_watcher", "worker_id": "OrionMX", **more}
    return await place.outreach.announce(params)


@pytest.mark.accepts("E-26", "E-28")
def test_an_announced_flag_is_a_queued_job_which_its_flag_closes(place):
    async def story():
        told = await announced(place, label="disk swap", author="ann@here")
        (job,) = place.rows("SELECT * FROM jobs_t WHERE state = 'queued'")
        assert (job["job_id"], job["task_id"], job["label"]) == (told["job_id"], TASK, "disk swap")
        (row,) = place.rows("SELECT * FROM audit_log_t WHERE action = 'pause.announced'")
        assert (row["actor"], row["label"]) == ("ann@here", "disk swap")
        assert place.state == "running"
        place.drop("pause_watcher", TASK, label="disk swap")
        await place.look()
        return told

    told = place.play(story)
    (job,) = place.rows(f"SELECT * FROM jobs_t WHERE task_id = '{TASK}'")
    assert (job["job_id"], job["state"]) == (told["job_id"], "succeeded")
    assert job["started_at"]
    assert job["finished_at"]
    assert place.receipts()[0]["job_id"] == told["job_id"]


@pytest.mark.accepts("E-26", "E-31")
def test_an_announced_flag_is_still_waited_for_by_the_next_supervisor(place):
    told = place.play(lambda: announced(place))

    async def story():
        place.drop("pause_watcher", TASK)
        await place.look()

    place.play(story)
    (job,) = place.rows(f"SELECT * FROM jobs_t WHERE task_id = '{TASK}'")
    assert (job["job_id"], job["state"]) == (told["job_id"], "succeeded")


@pytest.mark.accepts("E-28", "E-30", "P22")
def test_an_announced_flag_that_is_refused_closes_its_job_as_failed(place):
    async def story():
        await announced(place)
        place.drop("pause_watcher", TASK, expires_at="2020-01-01T00:00:00Z")
        await place.look()
        assert place.state == "running"

    place.play(story)
    (job,) = place.rows(f"SELECT * FROM jobs_t WHERE task_id = '{TASK}'")
    assert job["state"] == "failed"
    assert "expires_at" in job["last_error"]
    actions = [row["action"] for row in place.rows("SELECT action FROM audit_log_t")]
    assert "pause.rejected" in actions


@pytest.mark.accepts("P23")
def test_a_bad_flag_with_the_same_task_id_does_not_use_up_the_good_one(place):
    async def story():
        await announced(place)
        place.drop("pause_watcher", TASK, name="supervisor_forged.flag", label="bad\nlabel")
        await place.look()
        assert place.state == "running"
        place.drop("pause_watcher", TASK)
        await place.look()
        assert place.state == "stopped"

    place.play(story)
    (job,) = place.rows(f"SELECT * FROM jobs_t WHERE task_id = '{TASK}'")
    assert (job["state"], job["last_error"]) == ("succeeded", None)


@pytest.mark.parametrize(
    "wrong", [{"task_id": ""}, {"handler": "format_disk"}, {"worker_id": None}, {"label": "a\nb"}]
)
def test_what_no_flag_could_say_is_not_announced(place, wrong):
    async def story():
        with pytest.raises(UpholdError, match="needs task_id"):
            await announced(place, **wrong)

    place.play(story)
    assert place.rows("SELECT * FROM jobs_t WHERE state = 'queued'") == []


@pytest.mark.accepts("C-056", "C-057")
def test_resuming_what_runs_starts_no_second_one(place):
    async def story():
        place.drop("resume_watcher", TASK, label="back")
        await place.look()
        assert place.driver.calls.count(("start", "OrionMX")) == 1

    place.play(story)
    (receipt,) = place.receipts()
    assert (receipt["success"], receipt["details"]["state"]) == (True, "running")
    labels = place.rows("SELECT label FROM audit_log_t WHERE action LIKE 'resume%'")
    assert {row["label"] for row in labels} == {"back"}


@pytest.mark.accepts("C-032", "C-104", "C-105")
def test_an_order_that_fails_is_a_failed_receipt_and_the_next_flag_is_obeyed(place):
    async def story():
        place.drop("verify_db", "task_1")  # there is no database
        place.drop("update_code", "task_2")  # and no checkout
        place.drop("diagnostics", "task_3")
        deeds, error = await place.look()
        assert error is None
        assert [(deed.handler, deed.success) for deed in deeds] == [
            ("update_code", False),
            ("diagnostics", True),
            ("verify_db", False),
        ]

    place.play(story)
    failed = {each["handler"]: each["error"] for each in place.receipts() if not each["success"]}
    assert "no [deploy]" in failed["update_code"]
    assert failed["verify_db"]


def still_under_way(receipt):
    return not receipt["success"] and "still under way as" in receipt["error"]


@pytest.mark.accepts("E-28")
def test_an_order_that_needs_what_the_next_flag_orders_does_not_keep_it_waiting(chain, monkeypatch):
    monkeypatch.setattr(outcomes, "_PATIENCE", 0.1)

    async def story():
        await chain.order(orders.PauseWorkers(names=("OrionMX", "db")))
        chain.drop("resume_watcher", "task_1")
        await chain.look()
        (first,) = chain.receipts()
        assert still_under_way(first)
        assert first["details"]["job_id"] == first["job_id"]
        assert not chain.marker.exists(), "it is held no longer"
        chain.drop("resume_watcher", "task_1", name="supervisor_copy.flag")
        await chain.look()  # nor does a copy of it
        assert still_under_way(chain.receipts()[-1])
        chain.drop("resume_watcher", "task_2", worker_id="db")
        (deed,), _ = await chain.look()
        assert deed.success
        await chain.supervisor.settled(30)
        assert chain.state == "running"
        await chain.supervisor.sync()

    chain.play(story)
    (job,) = chain.rows("SELECT * FROM jobs_t WHERE task_id = 'task_1'")
    assert job["state"] == "succeeded", "it was followed all the same"


def test_an_errand_goes_on_and_is_answered_when_the_look_that_waited_for_it_is_cancelled(place):
    async def story():
        begun, go, desk = asyncio.Event(), asyncio.Event(), place.supervisor.desk
        jobs = []

        async def slowly(order):
            jobs.append(desk.job(order.id))
            begun.set()
            await go.wait()
            return Outcome()

        desk.errands._runs = {orders.Diagnose: slowly}
        place.drop("diagnostics", TASK)
        looking = asyncio.create_task(place.look())
        await begun.wait()
        looking.cancel()
        await asyncio.wait({looking})
        assert not jobs[0].done.cancelled()
        again = asyncio.create_task(place.look())
        go.set()
        (deed,), _ = await again
        assert deed.success

    place.play(story)
    assert [receipt["success"] for receipt in place.receipts()] == [True]


@pytest.mark.accepts("C-012", "B-71")
def test_whoever_is_told_to_end_does_not_wait_for_an_order_that_cannot_come_true(chain):
    async def story():
        await chain.order(orders.PauseWorkers(names=("OrionMX", "db")))
        chain.drop("resume_watcher", "task_1")
        looking = asyncio.create_task(chain.look())
        while not chain.rows("SELECT * FROM jobs_t WHERE task_id = 'task_1'"):
            await asyncio.sleep(0.05)
        chain.ending.set()
        (deed,), _ = await looking
        assert not deed.success

    chain.play(story)
    (receipt,) = chain.receipts()
    assert still_under_way(receipt)
