from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from daemon.deploy_stages import BACK, UPDATE, WEB, DeployStage, meanwhile, play
from deploy.repositories import git
from uphold.core import orders
from uphold.core.orders import Refusal
from uphold.core.specs import Need, WorkerSpec
from uphold.daemon.noting import Written
from uphold.deploy.git import Checkout
from uphold.deploy.records import DeployRecord, Step, Verb
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating

OTHER = WorkerSpec(name="other", command=("other",))
BOTH = orders.UpdateCode(names=("web", "other"))


@pytest.mark.accepts("C-058", "C-060", "C-062", "C-063", "C-T18", "C-T19", "P24")
def test_an_update_finds_the_workers_stopped_and_starts_them_again(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        seen = []

        async def look():
            seen.append((scene.state(), scene.there.head() == old))

        meanwhile(monkeypatch, look)
        old, new = scene.there.head(), scene.there.publish("newer", code="print('new')\n")
        job = await scene.order(UPDATE, label="nightly", task_id="task_1")
        assert seen == [("stopped", True)]
        assert (job.row.state, job.row.error) == ("succeeded", None)
        assert scene.there.head() == new
        assert (scene.state(), scene.stage.status("web").generation) == ("running", 2)
        (row,) = scene.audit("update.succeeded")
        assert old.startswith(row.details["before_commit"])
        assert new.startswith(row.details["after_commit"])
        assert (row.label, row.details["label"]) == ("nightly", "nightly")
        assert row.details["task_id"] == "task_1"
        assert "commands" not in row.details
        told = [more for _, text, more in scene.diary.lines if text.startswith("git merge")]
        assert told == [{"task_id": "task_1", "label": "nightly"}]
        assert "git fetch" in scene.diary.text
        assert not scene.path.exists()
        kinds = await scene.kinds()
        assert kinds.count("deploy.started") == kinds.count("deploy.updated") == 1

    play(tmp_path, story)


@pytest.mark.accepts("C-058", "P24")
def test_a_worker_that_cannot_be_stopped_keeps_its_code(tmp_path):
    async def story(scene: DeployStage):
        old = scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        scene.stage.driver.ignore_stop("web")
        scene.stage.driver.survive_kill("web")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "nothing was changed" in job.row.error
        assert "survives SIGKILL" in job.row.error
        assert scene.there.head() == old
        assert not scene.override.withheld
        assert not scene.path.exists()
        scene.stage.driver.world.deaf.clear()
        scene.stage.driver.let_die("web")
        await scene.until(lambda: scene.state() == "running")

    play(tmp_path, story)


@pytest.mark.accepts("C-149", "B-63", "C-060", "C-082")
@pytest.mark.parametrize("wish", [UPDATE, BACK])
def test_a_held_worker_is_not_started_and_that_is_said(tmp_path, wish):
    async def story(scene: DeployStage):
        scene.there.publish("newer", code="print('new')\n")
        await scene.order(orders.PauseWorkers(names=("web",)))
        job = await scene.order(wish)
        assert job.row.state == "succeeded"
        assert job.details["held"] is True
        assert scene.state() == "stopped"
        assert scene.stage.driver.calls.count(("start", "web")) == 1
        await scene.order(orders.ResumeWorkers(names=("web",)))
        assert scene.state() == "running"

    play(tmp_path, story)


@pytest.mark.accepts("C-149", "P24")
@pytest.mark.parametrize(
    ("down", "lift"),
    [
        (orders.PauseWorkers(names=("web",)), orders.ResumeWorkers(names=("web",))),
        (orders.StopWorkers(names=("web",)), orders.StartWorkers(names=("web",))),
    ],
)
def test_an_order_to_stay_down_in_the_middle_wins(tmp_path, monkeypatch, down, lift):
    async def story(scene: DeployStage):
        async def act():
            await scene.begin(down)

        meanwhile(monkeypatch, act)
        new = scene.there.publish("newer", code="print('new')\n")
        job = await scene.order(UPDATE)
        assert job.row.state == "succeeded"
        assert (scene.state(), scene.there.head()) == ("stopped", new)
        await scene.order(lift)
        assert scene.state() == "running"

    play(tmp_path, story)


def test_to_start_a_worker_in_the_middle_is_refused_and_it_comes_back_by_itself(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        answers = []

        async def act():
            desk = scene.stage.supervisor.desk
            for wish in (orders.StartWorkers, orders.RestartWorkers):
                order = desk.order(wish(names=("web",)), author="ann", origin="test")
                answers.append(await desk.submit(order))

        meanwhile(monkeypatch, act)
        scene.there.publish("newer", code="print('new')\n")
        assert (await scene.order(UPDATE)).row.state == "succeeded"
        assert all(isinstance(each, Refusal) for each in answers)
        assert "is being changed" in answers[0].message
        assert scene.state() == "running"

    play(tmp_path, story)


async def refused(scene: DeployStage, wish: object, code: str) -> str:
    """See that an order fails before anything is stopped."""
    head = scene.there.head()
    job = await scene.order(wish)
    assert job.row.state == "failed"
    assert job.details["code"] == code
    assert (scene.stops, scene.there.head(), scene.state()) == (0, head, "running")
    assert not scene.path.exists()
    return job.row.error


@pytest.mark.accepts("C-072", "C-T23", "P24")
def test_what_is_refused_is_refused_before_anybody_is_stopped(tmp_path):
    async def story(scene: DeployStage):
        there = scene.there
        beyond = orders.RollBackCode(names=("web",), commits=4)
        assert "only 3" in await refused(scene, beyond, "UPH_DEPLOY_HISTORY")
        for commits in (0, -1, 11):
            wish = orders.RollBackCode(names=("web",), commits=commits)
            await refused(scene, wish, "UPH_DEPLOY_COMMITS_BACK")
        there.publish("newer", code="print('new')\n")
        (there.repo / "code").write_text("edited\n")
        assert "code" in await refused(scene, UPDATE, "UPH_DEPLOY_DIRTY")
        await refused(scene, BACK, "UPH_DEPLOY_DIRTY")
        git(there.repo, "commit", "-qam", "of this machine")
        await refused(scene, UPDATE, "UPH_DEPLOY_DIVERGED")
        git(there.repo, "switch", "-q", "-c", "elsewhere")
        await refused(scene, UPDATE, "UPH_DEPLOY_BRANCH")

    play(tmp_path, story)


def test_without_a_section_that_says_what_is_to_be_updated_nothing_is(tmp_path):
    async def story(scene: DeployStage):
        scene.spec = None
        for wish in (UPDATE, BACK):
            job = await scene.order(wish)
            assert job.row.state == "failed"
            assert "[deploy]" in job.row.error
        assert scene.stops == 0

    play(tmp_path, story)


def test_nothing_new_stops_nobody(tmp_path):
    async def story(scene: DeployStage):
        job = await scene.order(UPDATE)
        assert job.row.state == "succeeded"
        assert job.details["up_to_date"] is True
        assert job.details["before_commit"] == job.details["after_commit"]
        assert scene.stops == 0

    play(tmp_path, story)


@pytest.mark.accepts("C-061")
def test_a_remote_that_is_away_stops_nobody_and_its_words_are_told(tmp_path):
    async def story(scene: DeployStage):
        scene.there.remote.rename(tmp_path / "elsewhere")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "fetch" in job.row.error
        assert "does not appear to be a git repository" in job.row.error
        assert (scene.stops, scene.state()) == (0, "running")

    play(tmp_path, story)


@pytest.mark.accepts("C-061", "P24")
def test_a_merge_that_fails_leaves_the_old_code_and_the_worker_running(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        async def edit():
            (scene.there.repo / "code").write_text("somebody is here\n")

        meanwhile(monkeypatch, edit)
        old = scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "code" in job.row.error
        assert (scene.there.head(), scene.state()) == (old, "running")
        assert scene.there.read() == "somebody is here\n"
        assert not scene.path.exists()

    play(tmp_path, story)


@pytest.mark.accepts("C-065", "B-69", "C-066", "P24")
def test_an_install_that_fails_fails_the_update_and_the_old_code_comes_back(tmp_path):
    async def story(scene: DeployStage):
        there = scene.there
        old = there.head()
        there.publish("newer", code="print('new')\n", requirements_txt="./is-not-there\n")
        job = await scene.order(replace(UPDATE, dependencies=True), label="nightly")
        assert job.row.state == "failed"
        assert "packages were not installed" in job.row.error
        assert (there.head(), there.status(), scene.state()) == (old, "", "running")
        assert "pip install" in scene.diary.text
        (row,) = scene.audit("update.failed")
        assert row.label == "nightly"
        assert not scene.path.exists()

    play(tmp_path, story)


@pytest.mark.accepts("P24")
def test_an_update_that_makes_a_worker_crash_is_taken_back(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        async def spoil():
            scene.stage.driver.fail_start("web", "no such module")

        meanwhile(monkeypatch, spoil, after=True)
        old, new = scene.there.head(), scene.there.publish("bad", code="print('bad')\n")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "no such module" in job.row.error
        assert job.details["returned"] is True
        assert new.startswith(job.details["target_commit"])
        assert old.startswith(job.details["after_commit"])
        assert (scene.there.head(), scene.there.status()) == (old, "")
        assert scene.state() == "running"
        assert "taken back" in scene.diary.text
        assert not scene.path.exists()
        kinds = await scene.kinds()
        assert "deploy.updated" not in kinds
        assert kinds.count("deploy.failed") == 1

    play(tmp_path, story)


@pytest.mark.accepts("P24")
def test_where_the_gate_shall_not_roll_back_the_new_code_stays_and_the_failure_is_told(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        async def spoil():
            scene.stage.driver.fail_start("web", "no such module")

        meanwhile(monkeypatch, spoil, after=True)
        new = scene.there.publish("bad", code="print('bad')\n")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert scene.there.head() == new
        assert not scene.path.exists()

    play(tmp_path, story, rollback=False)


@pytest.mark.accepts("P24")
def test_code_is_not_put_back_under_a_worker_that_cannot_be_stopped(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        async def spoil():
            scene.stage.driver.fail_start("other", "no such module")

        meanwhile(monkeypatch, spoil, after=True)
        new = scene.there.publish("bad", code="print('bad')\n")
        job = await scene.begin(BOTH)
        await scene.until(lambda: scene.state() == "stopped")
        scene.stage.driver.ignore_stop("web")
        scene.stage.driver.survive_kill("web")
        await scene.end(job)
        assert job.row.state == "failed"
        assert "cannot be taken back" in job.row.error
        assert job.details["returned"] is False
        assert scene.there.head() == new
        assert not scene.override.withheld
        assert scene.deploys._notes.read().record.step is Step.APPLIED  # judged again next time

    play(tmp_path, story, WEB, OTHER)


@pytest.mark.accepts("C-074", "C-075", "C-081", "C-082", "C-083", "C-T21", "C-T24")
def test_a_rollback_of_three_is_told_in_full(tmp_path):
    async def story(scene: DeployStage):
        there = scene.there
        old = there.head()
        wish = orders.RollBackCode(names=("web",), commits=3)
        job = await scene.order(wish, label="bad release")
        assert job.row.state == "succeeded"
        assert there.read() == "print(0)\n"
        assert scene.stops == 1
        assert scene.state() == "running"
        (row,) = scene.audit("rollback.succeeded")
        told = row.details
        assert (told["success"], told["commits_reverted"]) == (True, 3)
        assert len(told["reverted_commits"]) == 3
        assert old.startswith(told["before_commit"])
        assert there.head().startswith(told["final_commit"])
        assert "error" not in told
        assert (told["label"], row.label) == ("bad release", "bad release")
        listed = [text for _, text, _ in scene.diary.lines if text.startswith("to be reverted")]
        assert ["version 3" in listed[0], "version 2" in listed[1]] == [True, True]
        assert len(listed) == 3

    play(tmp_path, story)


@pytest.mark.accepts("C-078", "C-079", "C-080", "C-082", "C-083", "C-T22")
def test_a_rollback_into_a_conflict_keeps_what_was_reverted_and_starts_the_worker(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        there = scene.there
        check = RollingBack.check
        chosen = (there.ids[3], there.ids[1], there.ids[2])  # the second meets a later change

        def in_a_bad_order(self, *words, **more):
            return replace(check(self, *words, **more), reverts=chosen)

        monkeypatch.setattr(RollingBack, "check", in_a_bad_order)
        job = await scene.order(replace(BACK, commits=3), label="bad release")
        assert job.row.state == "failed"
        assert "version 1 cannot be reverted" in job.row.error
        (row,) = scene.audit("rollback.failed")
        told = row.details
        assert (told["success"], told["commits_reverted"]) == (False, 1)
        assert len(told["reverted_commits"]) == 1
        assert "version 3" in told["reverted_commits"][0]
        assert "version 1" in told["failed_commit"]
        assert "version 1" in told["error"]
        assert there.head().startswith(told["final_commit"])
        assert (there.status(), there.read()) == ("", "print(2)\n")
        assert scene.state() == "running"
        assert not scene.path.exists()

    play(tmp_path, story)


@pytest.mark.accepts("C-082")
def test_a_rollback_after_which_the_worker_does_not_start_is_told_and_is_over(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        async def spoil():
            scene.stage.driver.fail_start("web", "no such file", hopeless=True)

        meanwhile(monkeypatch, spoil, after=True)
        job = await scene.order(BACK)
        assert job.row.state == "failed"
        assert "no such file" in job.row.error
        assert scene.there.read() == "print(2)\n"
        assert not scene.path.exists()
        assert not scene.override.withheld

    play(tmp_path, story)


def test_an_update_after_a_rollback_brings_the_code_forward(tmp_path):
    async def story(scene: DeployStage):
        assert (await scene.order(replace(BACK, commits=2))).row.state == "succeeded"
        new = scene.there.publish("repaired", code="print('repaired')\n")
        job = await scene.order(UPDATE)
        assert (job.row.state, scene.there.head()) == ("succeeded", new)
        assert len(job.details["reverts_set_aside"]) == 2

    play(tmp_path, story)


@pytest.mark.accepts("P24")
def test_a_second_order_waits_for_the_first(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        under_way = []

        async def look():
            under_way.append((first.row.state, second.row.state))

        meanwhile(monkeypatch, look)
        scene.there.publish("newer", code="print('new')\n")
        first, second = await scene.begin(UPDATE), await scene.begin(BACK)
        await scene.end(first)
        await scene.end(second)
        assert under_way == [("running", "running"), ("succeeded", "running")]
        assert (first.row.state, second.row.state) == ("succeeded", "succeeded")
        assert scene.there.read() == "print(3)\n"
        assert scene.state() == "running"

    play(tmp_path, story)


def test_workers_that_a_new_file_leaves_out_keep_nobody_else_down(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        async def leave_out():
            scene.stage.config.change(WEB)
            await scene.stage.clock.settle()

        meanwhile(monkeypatch, leave_out)
        scene.there.publish("newer", code="print('new')\n")
        job = await scene.order(BOTH)
        assert job.row.state == "succeeded"
        assert scene.state() == "running"
        assert not scene.override.withheld

    play(tmp_path, story, WEB, OTHER)


def test_a_worker_that_waits_for_another_for_ever_does_not_hold_an_update_up(tmp_path):
    async def story(scene: DeployStage):
        await scene.order(orders.StopWorkers(names=("other",)))
        old = scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "web was not up within 60 s" in job.row.error
        assert scene.there.head() == old

    play(tmp_path, story, replace(WEB, depends_on=(("other", Need.STARTED),)), OTHER)


def test_a_paused_supervisor_stops_nobody_and_changes_nothing(tmp_path):
    async def story(scene: DeployStage):
        old = scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        await scene.order(orders.PauseSupervisor())
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "paused" in job.row.error
        assert (scene.there.head(), scene.state()) == (old, "running")
        await scene.order(orders.ResumeSupervisor())
        assert (await scene.order(UPDATE)).row.state == "succeeded"

    play(tmp_path, story)


def test_a_home_that_cannot_be_written_changes_nothing(tmp_path):
    async def story(scene: DeployStage):
        scene.there.publish("newer", code="print('new')\n")
        scene.deploys._notes.path = tmp_path / "gone" / "deploy.json"
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert "nothing was changed" in job.row.error
        assert scene.stops == 0
        scene.deploys._notes.path = scene.path
        assert (await scene.order(UPDATE)).row.state == "succeeded"

    play(tmp_path, story)


@pytest.mark.accepts("P24")
@pytest.mark.parametrize("wish", [UPDATE, BACK])
@pytest.mark.parametrize("after", [False, True])
def test_after_a_mistake_of_ours_the_old_code_is_back_before_anybody_runs(
    tmp_path, monkeypatch, wish, after
):
    async def story(scene: DeployStage):
        old = scene.there.head()
        seen = []

        async def bug():
            raise RuntimeError("a bug")

        async def look():
            seen.append(scene.state())

        with monkeypatch.context() as patches:
            meanwhile(patches, bug, after=after)
            meanwhile(patches, look)
            scene.there.publish("newer", code="print('new')\n")
            job = await scene.order(wish)
        assert (job.row.state, seen) == ("failed", ["stopped"])
        assert "a mistake of uphold: RuntimeError('a bug')" in job.row.error
        undone = wish is BACK and after  # what was reverted before stays, and is told
        assert scene.there.read() == ("print(2)\n" if undone else "print(3)\n")
        assert (scene.there.head() == old, scene.there.status()) == (not undone, "")
        assert (scene.state(), scene.override.withheld) == ("running", False)
        assert "Traceback" in scene.diary.text
        assert "trace" not in job.details
        assert not scene.path.exists()
        assert (await scene.order(UPDATE)).row.state == "succeeded"

    play(tmp_path, story)


def stuck(patches) -> None:
    """Let an update fail by a mistake when its files are there, and its return by another."""

    def bug(*words, **more):
        raise RuntimeError("a bug")

    patches.setattr(Updating, "_is_whole", bug)
    patches.setattr(Checkout, "stands", bug)
    patches.setattr(Checkout, "put_right", bug)


@pytest.mark.accepts("P24", "P25")
@pytest.mark.parametrize("by", ["the next start", "the next order"])
def test_nobody_runs_from_a_mixture_until_it_is_put_right(tmp_path, monkeypatch, by):
    async def story(scene: DeployStage):
        old, new = scene.there.head(), scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            job = await scene.order(UPDATE)
            assert job.row.state == "failed"
            assert "could not be put back" in job.row.error
            assert job.details["kept_down"] is True
            assert f"git -C {scene.there.repo} status" in job.details["remedy"]
            assert (scene.state(), scene.override.withheld) == ("stopped", True)
            assert scene.audit("update.failed")[-1].details["kept_down"] is True
            told = (await scene.stage.journal.events(limit=1_000))[::-1]
            failed = next(each for each in told if each["type"] == "deploy.failed")
            assert failed["payload"]["kept_down"] is True
            await scene.stage.clock.advance(3_600)
            assert scene.state() == "stopped"
            again = await scene.order(BACK)  # as long as it cannot be put right nothing follows
            assert again.details["kept_down"] is True
        assert scene.there.head() == new
        if by == "the next start":
            await scene.crash()
            job = await scene.end(await scene.deploys.take_up())
            assert job.row.state == "failed"
            assert scene.there.head() == old
        else:
            job = await scene.order(UPDATE)
            assert (job.row.state, scene.there.head()) == ("succeeded", new)
        assert (scene.there.status(), scene.state()) == ("", "running")
        assert not scene.override.withheld
        assert not scene.path.exists()

    play(tmp_path, story)


@pytest.mark.accepts("P24", "C-067")
def test_a_restart_by_a_flag_starts_nobody_who_is_kept_down(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        wish, old = orders.RestartSlowly(names=("web",)), scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            await scene.order(UPDATE)
            job = await scene.order(wish)
            assert (job.row.state, job.details["kept_down"]) == ("failed", True)
            assert (scene.state(), scene.override.withheld) == ("stopped", True)
            assert scene.stage.driver.calls.count(("start", "web")) == 1
        assert (await scene.order(wish)).row.state == "succeeded"
        assert (scene.there.head(), scene.state()) == (old, "running")

    play(tmp_path, story)


@pytest.mark.accepts("P24")
@pytest.mark.parametrize("by", ["the next start", "the next order"])
def test_without_its_section_a_mixture_still_keeps_everybody_down(tmp_path, monkeypatch, by):
    """As an earlier version left it, which did not write down where it worked."""

    async def story(scene: DeployStage):
        spec, old = scene.spec, scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            await scene.order(UPDATE)
        left = scene.deploys._notes.read()
        scene.deploys._notes.writer(replace(left, terms=None))(left.record)
        scene.spec = None
        if by == "the next start":
            await scene.crash()
            job = await scene.end(await scene.deploys.take_up())
        else:
            job = await scene.order(UPDATE)
        assert (job.row.state, job.details["kept_down"]) == ("failed", True)
        assert "no [deploy] section" in job.row.error
        assert "Put [deploy] back" in job.details["remedy"]
        assert (scene.state(), scene.override.withheld) == ("stopped", True)
        told = (await scene.stage.journal.events(limit=1_000))[::-1]
        failed = next(each for each in told if each["type"] == "deploy.failed")
        assert failed["payload"]["kept_down"] is True
        scene.spec = spec
        await scene.crash()
        await scene.end(await scene.deploys.take_up())
        assert (scene.there.head(), scene.state()) == (old, "running")

    play(tmp_path, story)


@pytest.mark.accepts("P24", "P25")
@pytest.mark.parametrize("now", ["nothing", "another checkout", "where it was moved to"])
def test_what_was_begun_is_ended_where_it_was_begun(tmp_path, monkeypatch, now):
    async def story(scene: DeployStage):
        spec, old = scene.spec, scene.there.head()
        new = scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            await scene.order(UPDATE)
        assert (scene.there.head(), scene.state()) == (new, "stopped")
        repo, elsewhere = scene.there.repo, tmp_path / "elsewhere"
        if now == "nothing":
            scene.spec = None
        elif now == "another checkout":
            git(tmp_path, "clone", "-q", str(repo), str(elsewhere))
            scene.spec = replace(spec, repo=str(elsewhere))
        else:
            repo = repo.rename(elsewhere)
            scene.spec = replace(spec, repo=str(elsewhere))
        await scene.crash()
        assert scene.state() == "stopped"
        await scene.end(await scene.deploys.take_up())
        assert git(repo, "rev-parse", "HEAD").strip() == old
        assert (scene.state(), scene.override.withheld) == ("running", False)
        assert not scene.path.exists()

    play(tmp_path, story)


@pytest.mark.accepts("P24")
@pytest.mark.parametrize("step", [Step.PREPARED, Step.APPLIED])
def test_without_its_section_whoever_has_whole_code_runs(tmp_path, step):
    async def story(scene: DeployStage):
        head = scene.there.head()
        record = DeployRecord(job="job_1", verb=Verb.UPDATE, before=head, target=head, step=step)
        written = Written(record=record, names=("web",), author="ann")
        scene.deploys._notes.writer(written)(record)
        await scene.order(orders.WithholdWorkers(names=("web",)))
        scene.spec = None
        await scene.crash()
        job = await scene.end(await scene.deploys.take_up())
        assert job.row.state == "failed"
        assert "no [deploy] section" in job.row.error
        assert (scene.state(), scene.override.withheld) == ("running", False)

    play(tmp_path, story)


@pytest.mark.accepts("P24")
def test_an_unwell_update_that_cannot_be_taken_back_whole_keeps_everybody_down(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        async def spoil():
            scene.stage.driver.fail_start("web", "no such module")
            stuck(monkeypatch)

        meanwhile(monkeypatch, spoil, after=True)
        scene.there.publish("bad", code="print('bad')\n")
        job = await scene.order(UPDATE)
        assert job.row.state == "failed"
        assert (job.details["returned"], job.details["kept_down"]) == (False, True)
        assert (scene.state(), scene.override.withheld) == ("stopped", True)
        assert scene.deploys._notes.read().record.step is Step.RETURNING

    play(tmp_path, story)


@pytest.mark.accepts("P25", "T16")
@pytest.mark.parametrize("wish", [UPDATE, BACK])
@pytest.mark.parametrize("after", [False, True])
def test_a_supervisor_that_dies_in_the_middle_is_followed_by_one_that_ends_it(
    tmp_path, monkeypatch, wish, after
):
    async def story(scene: DeployStage):
        old, new = scene.there.head(), scene.there.publish("newer", code="print('new')\n")
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def hang():
            reached.set()
            await go_on.wait()

        with monkeypatch.context() as patches:
            meanwhile(patches, hang, after=after)
            await scene.begin(wish, label="nightly", task_id="task_1")
            await scene.until(reached.is_set)
            assert scene.state() == "stopped"
            written = scene.path.read_bytes()
            asyncio.get_running_loop().call_later(0.1, go_on.set)
            await scene.stage.crash()
        if not after:  # a real one would not have gone on
            git(scene.there.repo, "reset", "-q", "--hard", old)
        scene.path.write_bytes(written)
        scene.settle()
        await scene.stage.start()
        assert scene.state() == "stopped"
        job = await scene.deploys.take_up()
        await scene.end(job)
        assert (job.row.label, job.row.task_id) == ("nightly", "task_1")
        assert job.row.state == ("succeeded" if after else "failed")
        content = {UPDATE: "print('new')\n", BACK: "print(2)\n"}[wish]
        assert scene.there.read() == (content if after else "print(3)\n")
        assert scene.there.status() == ""
        assert (scene.state(), scene.override.withheld) == ("running", False)
        assert not scene.path.exists()
        assert scene.audit("finish")[0].details["reason"].endswith("was interrupted")
        assert (await scene.order(UPDATE)).row.state == "succeeded"
        assert scene.there.head() == new

    play(tmp_path, story)


@pytest.mark.accepts("P25")
def test_whoever_is_kept_down_for_nothing_is_released(tmp_path):
    async def story(scene: DeployStage):
        await scene.order(orders.WithholdWorkers(names=("web",)))
        assert scene.state() == "stopped"
        await scene.crash()
        assert scene.state() == "stopped"
        assert await scene.deploys.take_up() is None
        await scene.until(lambda: scene.state() == "running")
        assert not scene.override.withheld

    play(tmp_path, story)


@pytest.mark.accepts("P24")
@pytest.mark.parametrize("back", ["at once", "after a restart", "with the next supervisor"])
def test_a_worker_that_leaves_the_file_and_comes_back_is_still_kept_down(
    tmp_path, monkeypatch, back
):
    async def story(scene: DeployStage):
        old = scene.there.head()
        scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            await scene.order(UPDATE)
            await scene.stage.change(OTHER)
            if back == "after a restart":
                await scene.crash()
                await scene.end(await scene.deploys.take_up())
            elif back == "with the next supervisor":
                scene.stage.config._listeners.clear()  # edited while nobody is there to see it
                scene.stage.config.change(WEB, OTHER)
                await scene.crash()
            await scene.stage.change(WEB, OTHER)
            await scene.stage.clock.advance(60)
            assert (scene.state("other"), scene.override.withheld) == ("running", True)
            assert "web" not in scene.stage.supervisor.snapshot().observed.slots  # never started
        await scene.crash()
        assert scene.override.withheld
        await scene.end(await scene.deploys.take_up())
        assert (scene.there.head(), scene.state()) == (old, "running")
        assert not scene.override.withheld

    play(tmp_path, story, WEB, OTHER)


@pytest.mark.accepts("P24")
def test_a_worker_that_is_out_of_the_file_when_all_is_well_again_comes_back_to_run(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            await scene.order(UPDATE)
        await scene.stage.change(OTHER)
        await scene.crash()
        assert scene.stage.supervisor.snapshot().declaration.withheld == {"web"}
        await scene.end(await scene.deploys.take_up())
        assert not scene.stage.supervisor.snapshot().declaration.withheld
        assert not scene.path.exists()
        await scene.stage.change(WEB, OTHER)
        await scene.until(lambda: scene.state() == "running")
        await scene.crash()
        assert (scene.state(), scene.override.withheld) == ("running", False)

    play(tmp_path, story, WEB, OTHER)


@pytest.mark.accepts("P24", "P25")
def test_a_record_that_cannot_be_read_lets_nobody_run(tmp_path, monkeypatch):
    async def story(scene: DeployStage):
        scene.there.publish("newer", code="print('new')\n")
        with monkeypatch.context() as patches:
            stuck(patches)
            await scene.order(UPDATE)
        scene.path.write_bytes(scene.path.read_bytes()[:40])
        await scene.crash()
        job = await scene.end(await scene.deploys.take_up())
        assert (job.row.state, job.details["kept_down"]) == ("failed", True)
        assert f"{scene.path} cannot be read" in job.row.error
        assert "remove that file" in job.details["remedy"]
        assert "cannot be read" in scene.diary.text
        assert "deploy.failed" in await scene.kinds()
        for wish in (UPDATE, BACK, orders.RestartSlowly(names=("web",))):
            job = await scene.order(wish)
            assert job.row.state == "failed"
            assert "remove that file" in job.details["remedy"]
        assert (scene.state(), scene.override.withheld) == ("stopped", True)
        scene.path.unlink()
        await scene.crash()
        assert await scene.deploys.take_up() is None
        await scene.until(lambda: scene.state() == "running")

    play(tmp_path, story)


@pytest.mark.accepts("P25")
def test_what_is_left_is_ended_while_the_supervisor_is_paused_and_starts_with_it(
    tmp_path, monkeypatch
):
    async def story(scene: DeployStage):
        new = scene.there.publish("newer", code="print('new')\n")
        reached, go_on = asyncio.Event(), asyncio.Event()

        async def hang():
            reached.set()
            await go_on.wait()

        with monkeypatch.context() as patches:
            meanwhile(patches, hang, after=True)
            await scene.begin(UPDATE)
            await scene.until(reached.is_set)
            await scene.begin(orders.PauseSupervisor())
            asyncio.get_running_loop().call_later(0.1, go_on.set)
            await scene.stage.crash()
        scene.settle()
        await scene.stage.start()
        job = await scene.deploys.take_up()
        await scene.end(job)
        assert (job.row.state, scene.there.head()) == ("succeeded", new)
        assert scene.state() == "stopped"
        await scene.order(orders.ResumeSupervisor())
        await scene.until(lambda: scene.state() == "running")

    play(tmp_path, story)


@pytest.mark.accepts("C-067", "C-068", "C-T25")
def test_a_slow_restart_ends_rests_and_starts_but_not_who_is_held(tmp_path):
    async def story(scene: DeployStage):
        wish = orders.RestartSlowly(names=("web",))
        job = await scene.begin(wish)
        await scene.stage.clock.advance(1.9)
        assert scene.state() == "stopped"
        await scene.end(job)
        assert (job.row.state, scene.state()) == ("succeeded", "running")
        await scene.order(orders.PauseWorkers(names=("web",)))
        job = await scene.order(wish)
        assert (job.row.state, job.details["held"]) == ("succeeded", True)
        assert scene.state() == "stopped"

    play(tmp_path, story)


@pytest.mark.accepts("C-144", "C-147b")
def test_a_worker_that_does_not_listen_gets_thirty_seconds_before_an_update_goes_on(tmp_path):
    async def story(scene: DeployStage):
        new = scene.there.publish("newer", code="print('new')\n")
        scene.stage.driver.ignore_stop("web")
        job = await scene.begin(UPDATE)
        await scene.until(lambda: scene.stops, step=0.0)
        await scene.stage.clock.advance(29.9)
        assert ("kill", "web") not in scene.stage.driver.calls
        assert scene.there.head() != new
        await scene.stage.clock.advance(0.2)
        assert ("kill", "web") in scene.stage.driver.calls
        scene.stage.driver.world.deaf.clear()
        await scene.end(job)
        assert (job.row.state, scene.there.head()) == ("succeeded", new)

    play(tmp_path, story)
