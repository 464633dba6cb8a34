"""One at a time at a checkout, also when the one before was killed and its git was not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories, git
from uphold.deploy.holding import clear_left_locks, held
from uphold.errors import NotPermitted
from uphold.host.commands import at_work, run
from uphold.testing.waiting import until


@pytest.fixture
def there(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path)


def test_a_second_one_waits_and_is_then_refused(there: Repositories):
    with held(there.checkout()):
        with pytest.raises(NotPermitted) as refused, held(there.checkout(), patience=0.2):
            pass
        assert refused.value.code == "UPH_DEPLOY_BUSY"
    with held(there.checkout(), patience=0.2):
        pass


@pytest.mark.accepts("P25")
def test_a_program_that_outlives_its_supervisor_still_holds_the_checkout(there: Repositories):
    checkout = there.checkout()
    with held(checkout):
        # Waited for: until it has left the group it would be ended with it.
        away = "setsid sh -c 'touch .git/away; exec sleep 1000' >/dev/null 2>&1 & left=$!"
        text = f"{away}; until [ -e .git/away ]; do sleep 0.01; done; echo $left"
        words = ["/bin/sh", "-c", text]
        left = run(words, cwd=there.repo, keep=checkout.git.keep)
    pid = int(left.stdout)
    try:
        with pytest.raises(NotPermitted), held(there.checkout(), patience=0.2):
            pass
    finally:
        os.kill(pid, 9)
    with held(there.checkout()):
        pass


def test_lock_files_of_a_git_that_was_killed_are_taken_away(there: Repositories):
    checkout = there.checkout()
    folder = there.repo / ".git"
    ours = [folder / "shallow.lock", folder / "refs/remotes/origin/main.lock"]
    theirs = [folder / "index.lock", folder / "HEAD.lock", folder / "refs/heads/main.lock"]
    for path in (*ours, *theirs):
        path.touch()
    with held(checkout) as folders:
        clear_left_locks(checkout, folders, index_too=False)
        assert not any(path.exists() for path in ours)
        assert all(path.exists() for path in theirs)
        clear_left_locks(checkout, folders, index_too=True)
        assert not any(path.exists() for path in theirs)


def test_a_fetch_that_was_killed_does_not_hinder_the_next(there: Repositories):
    new = there.publish("better", code="1\n")
    (there.repo / ".git/refs/remotes/origin/main.lock").touch()
    assert there.updating().check("job").target == new


def test_a_git_at_work_is_seen_and_waited_for(there: Repositories):
    lock = there.repo / ".git" / "index.lock"
    lock.touch()
    working = subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=there.repo, stdin=subprocess.PIPE
    )
    assert working.stdin is not None
    try:
        until(lambda: at_work("git", there.repo) == [working.pid], 30, "git at work")
        assert at_work("git", there.person) == []
        working.stdin.close()
        working.wait(30)
        checkout = there.checkout()
        with held(checkout) as folders:
            clear_left_locks(checkout, folders, index_too=True)
        assert not lock.exists()
    finally:
        working.kill()
        working.wait()


def test_the_lock_is_no_part_of_the_checkout(there: Repositories):
    assert there.updating().apply(there.updating().check("job"), Notes()).success
    assert (there.repo / ".git" / "uphold.lock").exists()
    assert git(there.repo, "status", "--porcelain", "--ignored") == ""
