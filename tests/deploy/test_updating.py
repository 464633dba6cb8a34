"""Updates on real repositories: the way forward, what is refused, and the way back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories, git
from uphold.deploy import guarding
from uphold.deploy.records import End, Step
from uphold.deploy.updating import Updating, finished
from uphold.errors import StoreUnavailable, UpholdError

BREAKING_OFF = """#!{python}
import os, subprocess
sender = subprocess.Popen(["git", "upload-pack", "{remote}"], stdout=subprocess.PIPE)
left = 20_000
while left > 0 and (chunk := os.read(sender.stdout.fileno(), min(left, 4096))):
    left -= os.write(1, chunk)
sender.kill()
"""


@pytest.fixture
def there(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path)


def refusal(there: Repositories, **more: str) -> UpholdError:
    before = there.head(), there.status()
    with pytest.raises(UpholdError) as refused:
        Updating(there.checkout(**more)).check("job")
    assert (there.head(), there.status()) == before
    return refused.value


@pytest.mark.accepts("C-059", "C-063", "C-T18", "P24")
def test_an_update_fetches_and_goes_forward(there: Repositories):
    new = there.publish("better", code="print('new')\n")
    old = there.head()
    updating, notes = there.updating(), Notes()
    record = updating.check("job-1")
    assert there.head() == old, "nothing moves before the workers are stopped"
    assert (record.before, record.target, record.changes_code) == (old, new, True)
    outcome = updating.apply(record, notes)
    assert (outcome.success, outcome.error, outcome.end) == (True, "", End.NEW)
    assert notes.steps == ["merging", "applied"]
    assert there.head() == new
    assert there.read() == "print('new')\n"
    assert there.status() == ""
    details = outcome.details
    assert (details["before_commit"], details["after_commit"]) == (old[:7], new[:7])
    assert details["commits"] == [f"{new[:7]} better"]
    assert finished(outcome.record).ended


@pytest.mark.accepts("C-063", "C-T19")
def test_the_label_goes_with_it(there: Repositories):
    updating = there.updating()
    outcome = updating.apply(updating.check("job", label="spring release"), Notes())
    assert outcome.details["label"] == "spring release"
    unnamed = updating.apply(updating.check("job"), Notes())
    assert "label" not in unnamed.details


@pytest.mark.accepts("C-062")
def test_every_command_and_what_it_said_is_told(there: Repositories):
    there.publish("better", code="1\n")
    updating = there.updating()
    outcome = updating.apply(updating.check("job"), Notes())
    told = {str(one["command"]).split()[1]: one for one in outcome.details["commands"]}
    assert told["fetch"]["returncode"] == 0
    assert "main" in str(told["fetch"]["output"])
    assert "Fast-forward" in str(told["merge"]["output"])


def test_nothing_new_needs_no_stop_and_changes_nothing(there: Repositories):
    updating = there.updating()
    record = updating.check("job")
    assert not record.changes_code
    outcome = updating.apply(record, Notes())
    assert outcome.success
    assert outcome.details["commits"] == []
    assert there.head() == there.ids[-1]


@pytest.mark.accepts("P24")
def test_edits_of_tracked_files_are_refused_and_kept(there: Repositories):
    (there.repo / "code").write_text("mine\n")
    refused = refusal(there)
    assert refused.code == "UPH_DEPLOY_DIRTY"
    assert "code" in refused.message
    git(there.repo, "add", "code")
    assert refusal(there).code == "UPH_DEPLOY_DIRTY"
    assert there.read() == "mine\n"


def test_untracked_and_ignored_files_do_not_count(there: Repositories):
    new = there.publish("ignoring", **{".gitignore": "*.log\n"})
    (there.repo / "notes").write_text("x")
    (there.repo / "a.log").write_text("y")
    updating = there.updating()
    assert updating.apply(updating.check("job"), Notes()).success
    assert there.head() == new
    assert (there.repo / "notes").read_text() == "x"
    assert (there.repo / "a.log").read_text() == "y"


@pytest.mark.parametrize("ignored", [True, False])
def test_files_in_the_way_are_refused_and_kept_even_if_ignored(there: Repositories, ignored: bool):
    if ignored:
        there.publish("ignoring", **{".gitignore": "settings\n"})
        updating = there.updating()
        assert updating.apply(updating.check("first"), Notes()).success
        git(there.person, "rm", "-q", ".gitignore")
    (there.repo / "settings").write_text("precious\n")
    there.publish("settings for all", settings="default\n")
    refused = refusal(there)
    assert refused.code == "UPH_DEPLOY_IN_THE_WAY"
    assert "settings" in refused.message
    assert there.read("settings") == "precious\n"


def test_an_untracked_file_where_a_folder_comes_and_the_other_way_round(there: Repositories):
    there.publish("folders", sub__file="1\n", other="2\n")
    (there.repo / "sub").write_text("precious\n")
    assert "sub" in refusal(there).message
    (there.repo / "sub").unlink()
    (there.repo / "other").mkdir()
    (there.repo / "other" / "mine").write_text("precious\n")
    assert "other/mine" in refusal(there).message
    shutil.rmtree(there.repo / "other")
    updating = there.updating()
    assert updating.apply(updating.check("job"), Notes()).success


def test_a_tracked_file_that_becomes_a_folder_and_back_is_in_nobodys_way(there: Repositories):
    def update() -> None:
        updating = there.updating()
        assert updating.apply(updating.check("job"), Notes()).success

    there.publish("a file", thing="1\n")
    update()
    git(there.person, "rm", "-q", "thing")
    there.publish("a folder", thing__inner="2\n")
    update()
    assert there.read("thing/inner") == "2\n"
    git(there.person, "rm", "-q", "thing/inner")
    there.publish("a file again", thing="3\n")
    update()
    assert there.read("thing") == "3\n"


@pytest.mark.accepts("S37")
def test_foreign_local_commits_are_refused(there: Repositories):
    (there.repo / "code").write_text("mine\n")
    git(there.repo, "commit", "-q", "-am", "my own")
    there.publish("theirs", other="x\n")
    refused = refusal(there)
    assert refused.code == "UPH_DEPLOY_DIVERGED"
    assert "my own" in refused.message


@pytest.mark.accepts("S37")
def test_rewritten_history_and_downgrades_are_refused(there: Repositories):
    git(there.person, "reset", "-q", "--hard", there.ids[1])
    there.push("--force")
    assert refusal(there).code == "UPH_DEPLOY_DIVERGED"
    there.commit("another past", code="evil\n")
    there.push("--force")
    assert refusal(there).code == "UPH_DEPLOY_DIVERGED"
    assert there.head() == there.ids[-1]


def test_a_missing_branch_a_missing_remote_and_a_remote_that_is_gone(there: Repositories):
    git(there.repo, "switch", "-q", "-c", "other")
    missing = refusal(there, branch="other")
    assert missing.code == "UPH_DEPLOY_BRANCH"
    assert "has no branch 'other'" in missing.message
    assert refusal(there).code == "UPH_DEPLOY_BRANCH"
    git(there.repo, "switch", "-q", "main")
    assert refusal(there, remote="upstream").code == "UPH_DEPLOY_REMOTE"
    there.remote.rename(there.folder / "moved")
    gone = refusal(there)
    assert gone.code == "UPH_DEPLOY_GIT_FAILED"
    assert "git fetch failed" in gone.message


@pytest.mark.accepts("C-145", "C-147b", "T16")
def test_a_remote_that_never_answers_is_given_up_and_nothing_is_left(
    there: Repositories, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(guarding, "LIMIT", 6.0)
    asked = there.folder / "asked"
    git(there.repo, "config", "remote.origin.url", "git@git.example:x.git")
    git(there.repo, "config", "core.sshCommand", f"sh -c 'touch {asked}; exec sleep 1000' ssh")
    silent = refusal(there)
    assert silent.code == "UPH_DEPLOY_GIT_FAILED"
    assert "git fetch did not end within 6 s" in silent.message
    assert asked.exists(), "the setting of the checkout names how ssh is called"
    git(there.repo, "config", "remote.origin.url", str(there.remote))
    monkeypatch.undo()
    new = there.publish("later", code="later\n")
    assert there.updating().check("job").target == new


@pytest.mark.accepts("T16")
def test_a_remote_that_breaks_off_changes_nothing(there: Repositories):
    there.publish("big", **{f"file{n}": os.urandom(9_000).hex() for n in range(50)})
    cut = there.folder / "cut.py"
    cut.write_text(BREAKING_OFF.format(python=sys.executable, remote=there.remote))
    cut.chmod(0o755)
    git(there.repo, "config", "remote.origin.url", "git@git.example:x.git")
    git(there.repo, "config", "core.sshCommand", str(cut))
    git(there.repo, "config", "ssh.variant", "simple")
    assert refusal(there).code == "UPH_DEPLOY_GIT_FAILED"
    git(there.repo, "config", "remote.origin.url", str(there.remote))
    updating = there.updating()
    assert updating.apply(updating.check("job"), Notes()).success


def test_a_detached_head_is_refused(there: Repositories):
    git(there.repo, "checkout", "-q", "--detach")
    assert "detached" in refusal(there).message


@pytest.mark.parametrize("verb", ["merge", "revert", "cherry-pick", "rebase"])
def test_what_somebody_has_not_finished_is_refused(there: Repositories, verb: str):
    git(there.repo, "switch", "-q", "-c", "side", there.ids[0])
    (there.repo / "code").write_text("side\n")
    git(there.repo, "commit", "-q", "-am", "side")
    git(there.repo, "switch", "-q", "main")
    words = {
        "merge": ["merge", "side"],
        "revert": ["revert", "--no-edit", there.ids[1]],
        "cherry-pick": ["cherry-pick", "side"],
        "rebase": ["rebase", "side"],
    }[verb]
    env = {"PATH": os.environ["PATH"], "HOME": str(there.folder)}
    name = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    ran = subprocess.run(["git", *name, *words], cwd=there.repo, env=env, check=False)
    assert ran.returncode != 0
    with pytest.raises(UpholdError) as refused:
        there.updating().check("job")
    assert refused.value.code in ("UPH_DEPLOY_BUSY", "UPH_DEPLOY_BRANCH")


def test_a_lock_of_another_git_is_respected(there: Repositories):
    (there.repo / ".git" / "index.lock").touch()
    refused = refusal(there)
    assert refused.code == "UPH_DEPLOY_BUSY"
    assert "index.lock" in refused.remedy
    assert (there.repo / ".git" / "index.lock").exists()


def test_no_folder_no_repository_and_a_folder_inside_one_are_refused(there: Repositories):
    for repo in (there.folder / "nowhere", there.folder, there.remote):
        there.repo = repo
        with pytest.raises(UpholdError) as refused:
            there.updating().check("job")
        assert refused.value.code == "UPH_DEPLOY_NO_REPOSITORY"
    inside = there.person / "inside"
    inside.mkdir()
    there.repo = inside
    with pytest.raises(UpholdError, match="inside the checkout"):
        there.updating().check("job")


def test_what_changes_between_the_look_and_the_stop_is_noticed(there: Repositories):
    there.publish("better", code="new\n")
    updating = there.updating()
    record = updating.check("job")
    (there.repo / "code").write_text("mine\n")
    notes = Notes()
    outcome = updating.apply(record, notes)
    assert (outcome.success, outcome.end, outcome.code) == (False, End.OLD, "UPH_DEPLOY_DIRTY")
    assert notes.steps == ["returned"]
    assert there.read() == "mine\n"
    git(there.repo, "commit", "-q", "-am", "mine")
    outcome = updating.apply(record, Notes())
    assert (outcome.success, outcome.code) == (False, "UPH_DEPLOY_MOVED")


@pytest.mark.accepts("C-061", "P24")
def test_a_health_gate_that_is_not_passed_brings_the_recorded_commit_back(there: Repositories):
    there.publish("broken", code="raise\n", extra="1\n")
    old = there.head()
    updating, notes = there.updating(), Notes()
    outcome = updating.apply(updating.check("job"), notes)
    (there.repo / "code").write_text("changed by the broken worker\n")
    (there.repo / "produced").write_text("kept\n")
    back = updating.return_to(outcome.record, notes, why="web is unhealthy.", code="UPH_GATE")
    assert (back.success, back.end, back.error) == (False, End.OLD, "web is unhealthy.")
    assert notes.steps[-2:] == ["returning", "returned"]
    assert there.head() == old
    assert there.read() == "print(3)\n"
    assert not (there.repo / "extra").exists()
    assert (there.repo / "produced").read_text() == "kept\n"
    assert git(there.repo, "status", "--porcelain", "-uno") == ""
    assert updating.apply(updating.check("again"), Notes()).success


def test_a_branch_that_somebody_moved_is_not_put_back(there: Repositories):
    there.publish("new", code="1\n")
    updating, notes = there.updating(), Notes()
    outcome = updating.apply(updating.check("job"), notes)
    (there.repo / "code").write_text("a fix by hand\n")
    git(there.repo, "commit", "-q", "-am", "a fix by hand")
    back = updating.return_to(outcome.record, notes, why="unhealthy.")
    assert (back.success, back.end, back.code) == (False, End.UNCLEAR, "UPH_DEPLOY_MOVED")
    assert back.record.ended
    assert back.runnable
    assert there.read() == "a fix by hand\n"


@pytest.mark.accepts("P25")
def test_what_cannot_be_written_down_is_not_done(there: Repositories):
    def full(record: object) -> None:
        raise StoreUnavailable("the disk is full.")

    there.publish("better", code="new\n")
    updating = there.updating()
    outcome = updating.apply(updating.check("job"), full)
    assert (outcome.success, outcome.end) == (False, End.OLD)
    assert "the disk is full" in outcome.error
    assert there.head() == there.ids[-1]
    assert there.status() == ""


def test_a_record_that_has_ended_is_left_alone(there: Repositories):
    there.publish("better", code="new\n")
    updating = there.updating()
    done = finished(updating.apply(updating.check("job"), Notes()).record)
    notes = Notes()
    again = there.updating().recover(done, notes)
    assert (again.success, again.end, notes.records) == (True, End.NEW, [])
    applied = there.updating().recover(replace(done, step=Step.APPLIED), notes)
    assert applied.success
