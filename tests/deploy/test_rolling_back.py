"""Rollbacks on real repositories: content of N commits earlier, once, again, and after updates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories, git
from uphold.deploy.records import End, Outcome, Step
from uphold.deploy.rolling_back import checked_count, choose
from uphold.errors import UpholdError


@pytest.fixture
def there(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path, commits=6)


def roll_back(there: Repositories, count: int) -> Outcome:
    rolling = there.rolling_back()
    return rolling.apply(rolling.check("job", count), Notes())


def update(there: Repositories) -> Outcome:
    updating = there.updating()
    return updating.apply(updating.check("job"), Notes())


def code_of(there: Repositories, count: object) -> str:
    before = there.head()
    with pytest.raises(UpholdError) as refused:
        there.rolling_back().check("job", count)
    assert there.head() == before
    return refused.value.code


@pytest.mark.accepts("C-074", "C-076", "C-081", "C-083", "C-T20", "C-T21", "B-55")
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_content_is_that_of_so_many_commits_earlier(there: Repositories, count: int):
    old = there.head()
    outcome = roll_back(there, count)
    assert (outcome.success, outcome.error, outcome.end) == (True, "", End.NEW)
    assert there.tree() == there.tree(there.ids[-1 - count])
    assert there.read() == f"print({5 - count})\n"
    assert there.status() == ""
    details = outcome.details
    assert details["success"] is True
    assert details["commits_reverted"] == count
    assert details["reverted_commits"] == [
        f"{there.ids[5 - n][:7]} version {5 - n}" for n in range(count)
    ]
    assert details["before_commit"] == old[:7]
    assert details["final_commit"] == there.head()[:7]
    assert "error" not in details


@pytest.mark.accepts("C-075", "C-077")
def test_what_is_to_be_reverted_is_told_first_and_no_editor_is_opened(
    there: Repositories, monkeypatch
):
    git(there.repo, "config", "core.editor", "touch edited; false")
    monkeypatch.setenv("EDITOR", "touch edited; false")
    monkeypatch.setenv("GIT_EDITOR", "touch edited; false")
    rolling, notes = there.rolling_back(), Notes()
    record = rolling.check("job", 2)
    assert rolling.preview(record) == [f"{there.ids[n][:7]} version {n}" for n in (5, 4)]
    assert record.reverts == (there.ids[5], there.ids[4])
    assert there.head() == there.ids[5]
    assert rolling.apply(record, notes).success
    assert notes.steps == ["reverting", "reverting", "applied"]
    assert [len(noted.made) for noted in notes.records] == [0, 1, 2]
    assert not list(there.folder.rglob("edited"))


@pytest.mark.accepts("C-083", "C-T24")
def test_the_label_goes_with_it(there: Repositories):
    rolling = there.rolling_back()
    outcome = rolling.apply(rolling.check("job", 1, label="bad night"), Notes())
    assert outcome.details["label"] == "bad night"


@pytest.mark.accepts("C-071", "C-072", "C-T23", "B-56")
def test_only_whole_numbers_from_one_to_ten_are_understood(there: Repositories):
    assert there.rolling_back().check("job").reverts == (there.ids[5],)
    for wrong in (0, -1, 11, 10**30, "1", 1.0, True, None, [], "HEAD"):
        assert code_of(there, wrong) == "UPH_DEPLOY_COMMITS_BACK"
    assert checked_count(10) == 10


def test_more_than_there_is_is_refused_before_anything_happens(there: Repositories):
    assert code_of(there, 6) == "UPH_DEPLOY_HISTORY"
    assert roll_back(there, 5).success
    assert code_of(there, 1) == "UPH_DEPLOY_HISTORY"


@pytest.mark.accepts("B-55")
def test_rolling_back_again_goes_further_back(there: Repositories):
    for count, earlier in ((1, 4), (1, 3), (2, 1)):
        assert roll_back(there, count).success
        assert there.read() == f"print({earlier})\n"
        assert there.tree() == there.tree(there.ids[earlier])


@pytest.mark.accepts("P24")
def test_an_update_after_a_rollback_sets_the_reverts_aside_and_keeps_them(there: Repositories):
    assert roll_back(there, 3).success
    reverts = git(there.repo, "log", "-3", "--format=%H").split()
    new = there.publish("the repair", code="repaired\n")
    outcome = update(there)
    assert (outcome.success, outcome.end) == (True, End.NEW)
    assert there.head() == new
    assert there.read() == "repaired\n"
    assert len(outcome.details["reverts_set_aside"]) == 3
    kept = git(there.repo, "for-each-ref", "--format=%(objectname)", "refs/uphold/").split()
    assert sorted(kept) == sorted(reverts)
    git(there.repo, "gc", "-q", "--prune=now")
    assert all(git(there.repo, "cat-file", "-t", each) == "commit" for each in reverts)


def test_a_rollback_after_that_counts_what_came_back(there: Repositories):
    assert roll_back(there, 2).success
    assert update(there).success
    assert there.head() == there.ids[5]
    assert roll_back(there, 1).success
    assert there.read() == "print(4)\n"
    assert roll_back(there, 1).success
    assert there.read() == "print(3)\n"
    assert update(there).success
    assert there.head() == there.ids[5]


def test_an_update_that_fails_its_gate_returns_to_the_rolled_back_state(there: Repositories):
    assert roll_back(there, 1).success
    rolled = there.head()
    there.publish("worse", code="worse\n", more="1\n")
    updating, notes = there.updating(), Notes()
    outcome = updating.apply(updating.check("job"), notes)
    assert notes.steps == ["setting_aside", "merging", "applied"]
    back = updating.return_to(outcome.record, notes, why="unhealthy.")
    assert back.end is End.OLD
    assert (there.head(), there.read(), there.status()) == (rolled, "print(4)\n", "")


def test_commits_on_top_of_our_own_reverts_are_somebody_elses(there: Repositories):
    assert roll_back(there, 1).success
    (there.repo / "code").write_text("by hand\n")
    git(there.repo, "commit", "-q", "-am", "by hand")
    with pytest.raises(UpholdError) as refused:
        there.updating().check("job")
    assert refused.value.code == "UPH_DEPLOY_DIVERGED"
    assert "by hand" in refused.value.message
    assert roll_back(there, 2).success
    assert there.read() == "print(3)\n"


def test_a_message_that_claims_to_be_a_revert_of_ours_is_not_believed(there: Repositories):
    git(there.repo, "config", "user.name", "uphold")
    git(there.repo, "config", "user.email", "uphold@localhost")
    there.publish(f"Revert\n\nThis reverts commit {there.ids[5]}.", code="a lie\n")
    assert update(there).success
    assert roll_back(there, 1).success
    assert there.read() == "print(5)\n"


def test_merges_count_once_and_are_undone_as_a_whole(there: Repositories):
    git(there.person, "switch", "-q", "-c", "feature")
    for n in range(3):
        there.commit(f"feature {n}", **{f"feature{n}": "x\n"})
    git(there.person, "switch", "-q", "main")
    there.commit("meanwhile", other="y\n")
    git(there.person, "merge", "-q", "--no-ff", "-m", "merge feature", "feature")
    there.push()
    assert update(there).success
    merge = there.head()
    outcome = roll_back(there, 1)
    assert outcome.details["reverted_commits"] == [f"{merge[:7]} merge feature"]
    assert sorted(path.name for path in there.repo.iterdir()) == [".git", "code", "other"]
    assert roll_back(there, 2).success
    assert there.tree() == there.tree(there.ids[4])
    assert update(there).success
    assert there.head() == merge


def test_commits_without_content_count_too(there: Repositories):
    git(there.person, "commit", "-q", "--allow-empty", "-m", "nothing at all")
    there.push()
    assert update(there).success
    assert roll_back(there, 1).success
    assert there.read() == "print(5)\n"
    assert roll_back(there, 1).success
    assert there.read() == "print(4)\n"


def test_files_come_and_go_with_what_added_and_removed_them(there: Repositories):
    there.publish("added", new="1\n")
    there.publish("removed and added again", code=None)
    there.publish("again", code="back\n", new=None)
    assert update(there).success
    assert roll_back(there, 3).success
    assert there.tree() == there.tree(there.ids[5])
    assert not (there.repo / "new").exists()


@pytest.mark.accepts("C-078", "C-079", "C-T22")
def test_a_conflict_is_told_and_leaves_a_clean_tree(there: Repositories):
    rolling, notes = there.rolling_back(), Notes()
    # Not the newest first: later commits touch the same line.
    record = replace(rolling.check("job", 1), reverts=(there.ids[2], there.ids[5]))
    outcome = rolling.apply(record, notes)
    assert (outcome.success, outcome.end, outcome.code) == (False, End.OLD, "UPH_DEPLOY_CONFLICT")
    assert "version 2" in outcome.error
    assert "code" in outcome.error
    assert outcome.details["failed_commit"] == f"{there.ids[2][:7]} version 2"
    assert outcome.details["commits_reverted"] == 0
    assert outcome.details["error"] == outcome.error
    assert there.head() == there.ids[5]
    assert there.status() == ""
    assert not (there.repo / ".git" / "REVERT_HEAD").exists()
    assert notes.records[-1].ended
    assert update(there).success


@pytest.mark.accepts("C-078", "C-079", "C-080", "P24")
def test_reverts_before_a_failing_one_stay_and_are_told(there: Repositories):
    rolling = there.rolling_back()
    order = (there.ids[5], there.ids[2], there.ids[4])
    outcome = rolling.apply(replace(rolling.check("job", 1), reverts=order), Notes())
    assert (outcome.success, outcome.end) == (False, End.PARTIAL)
    assert outcome.details["success"] is False
    assert outcome.details["commits_reverted"] == 1
    assert outcome.details["reverted_commits"] == [f"{there.ids[5][:7]} version 5"]
    assert outcome.details["failed_commit"] == f"{there.ids[2][:7]} version 2"
    assert (there.read(), there.status()) == ("print(4)\n", "")
    assert roll_back(there, 1).success
    assert there.read() == "print(3)\n"


def test_an_untracked_file_where_one_would_come_back_is_refused_and_kept(there: Repositories):
    there.publish("with settings", settings="old\n")
    there.publish("without settings", settings=None)
    assert update(there).success
    (there.repo / "settings").write_text("precious\n")
    assert code_of(there, 1) == "UPH_DEPLOY_IN_THE_WAY"
    assert there.read("settings") == "precious\n"


def test_edits_are_refused_before_and_after_the_stop(there: Repositories):
    rolling = there.rolling_back()
    record = rolling.check("job", 1)
    (there.repo / "code").write_text("mine\n")
    assert code_of(there, 1) == "UPH_DEPLOY_DIRTY"
    outcome = rolling.apply(record, Notes())
    assert (outcome.success, outcome.end, outcome.code) == (False, End.OLD, "UPH_DEPLOY_DIRTY")
    assert there.read() == "mine\n"
    git(there.repo, "commit", "-q", "-am", "mine")
    assert rolling.apply(record, Notes()).code == "UPH_DEPLOY_MOVED"


def test_the_checkout_needs_no_remote_for_it(there: Repositories):
    git(there.repo, "remote", "remove", "origin")
    assert roll_back(there, 1).success


def test_what_was_never_begun_or_has_ended_is_not_done_later(there: Repositories):
    rolling, notes = there.rolling_back(), Notes()
    record = rolling.check("job", 1)
    outcome = rolling.recover(record, notes)
    assert (outcome.success, outcome.end, outcome.code) == (
        False,
        End.OLD,
        "UPH_DEPLOY_INTERRUPTED",
    )
    assert notes.steps == ["done"]
    assert there.head() == record.before
    assert not rolling.recover(notes.records[-1], notes).success
    done = rolling.apply(record, Notes()).record
    assert done.step is Step.APPLIED
    assert rolling.recover(done, notes).success


def test_a_branch_that_somebody_moved_is_left_alone(there: Repositories):
    rolling, notes = there.rolling_back(), Notes()
    record = replace(rolling.check("job", 1), step=Step.REVERTING)
    (there.repo / "code").write_text("by hand\n")
    git(there.repo, "commit", "-q", "-am", "by hand")
    outcome = rolling.recover(record, notes)
    assert (outcome.end, outcome.code) == (End.UNCLEAR, "UPH_DEPLOY_MOVED")
    assert outcome.record.ended
    assert there.read() == "by hand\n"


def test_choosing_passes_over_reverts_and_what_they_reverted():
    history = [("r2", "r1"), ("r1", "c"), ("c", "b"), ("b", "a"), ("a", "root"), ("root",)]
    own = {"r1": "c", "r2": "b", "elsewhere": "a"}
    assert choose(history, own, 1) == [("a", "root")]
    assert choose(history, own, 5) == [("a", "root")]
    assert choose(history, {}, 2) == [("r2", "r1"), ("r1", "c")]
