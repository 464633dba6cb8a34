"""What a repository says about its commits."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.repositories import Repositories, git
from uphold.deploy.histories import Histories
from uphold.errors import HostFailure, UpholdError


@pytest.fixture
def there(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path)


def test_commits_are_told_in_the_order_asked_for(there: Repositories):
    known = Histories(there.checkout().git)
    told = known.describe([there.ids[0], there.ids[2], there.ids[1]])
    assert [commit.subject for commit in told] == ["version 0", "version 2", "version 1"]
    assert told[0].parents == ()
    assert told[1].parents == (there.ids[1],)
    assert told[2].line == f"{there.ids[1][:7]} version 1"
    assert known.describe([]) == []


def test_subjects_are_safe_to_show_and_bounded(there: Repositories):
    made = there.publish("red \x1b[31m " + "x" * 1000, code="x\n")
    git(there.repo, "fetch", "-q")
    (told,) = Histories(there.checkout().git).describe([made])
    assert "\x1b" not in told.line
    assert len(told.subject) < 300


def test_what_lies_between_two_commits_and_along_the_first_parents(there: Repositories):
    known = Histories(there.checkout().git)
    first, second, third, last = there.ids
    assert known.between(second, last) == [last, third]
    assert known.between(last, second) == []
    assert known.history(last, 2) == [(last, third), (third, second)]
    assert known.history(last, 99)[-1] == (first,)


def test_our_own_reverts_are_known_by_name_and_only_by_whole_ids(there: Repositories):
    checkout = there.checkout()
    assert checkout.own_reverts() == {}
    checkout.remember(there.ids[1], there.ids[2])
    checkout.remember(there.ids[1], there.ids[2])
    git(there.repo, "update-ref", "refs/uphold/reverts/odd", there.ids[0])
    assert checkout.own_reverts() == {there.ids[2]: there.ids[1]}


def test_names_that_stand_for_nothing_are_refused(there: Repositories):
    known = Histories(there.checkout().git)
    assert known.resolve("HEAD") == there.ids[-1]
    for name in ("nothing", "HEAD:code", "--all"):
        with pytest.raises(UpholdError):
            known.resolve(name)


def test_files_of_a_commit_and_what_it_adds(there: Repositories):
    made = there.publish("more", sub__new="1\n")
    git(there.repo, "fetch", "-q")
    known = Histories(there.checkout().git)
    assert known.has_file(made, "sub/new")
    assert not known.has_file(there.ids[-1], "sub/new")
    assert [path for _, _, path in known.added(there.ids[-1], made)] == ["sub/new"]
    assert known.added(made, there.ids[-1]) == []
    assert known.message(made).strip() == "more"


def test_a_file_that_is_missing_is_a_fault_of_the_repository(there: Repositories):
    (there.repo / "code").write_text("lost\n")
    git(there.repo, "commit", "-qam", "lost")
    blob = git(there.repo, "rev-parse", "HEAD:code")
    (there.repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(HostFailure) as failed:
        there.checkout().weigh(there.ids[-1], there.head())
    assert f"{blob} missing" in failed.value.message
    assert "fsck" in failed.value.remedy
