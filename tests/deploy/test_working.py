"""A mistake of our own at every step: the checkout is whole afterwards, or nobody may run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories
from deploy.test_cuts import copy_of, tidy
from deploy.test_installing import Pip
from uphold.core.specs import DeploySpec
from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.installing import Installer
from uphold.deploy.records import DeployRecord, End, Outcome
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating
from uphold.deploy.working import MISTAKE, Work, work_on
from uphold.host import commands

WRITING = {"merge", "reset", "revert", "commit", "update-ref"}
Check = Callable[[Work], DeployRecord]
CHECKS: dict[str, Check] = {
    # With packages: that has every step of an update without them.
    "update_deps": lambda work: work.updating.check("job", packages=True),
    "rollback": lambda work: work.rolling_back.check("job", 2),
}


class Bugs:
    """Makes mistakes: at one point only, or at every one from there on."""

    def __init__(self, at: int, *, after: bool = False, for_ever: bool = False) -> None:
        self.met = 0
        self._at = at
        self._after = after
        self._for_ever = for_ever
        self._notes = Notes()
        self._pip = Pip()

    def run(self, argv, **more):
        if not WRITING & set(argv):
            return commands.run(argv, **more)
        return self._around(lambda: commands.run(argv, **more))

    def pip(self, argv, **more):
        return self._around(lambda: self._pip(argv, **more))

    def note(self, record: DeployRecord) -> None:
        self._around(lambda: self._notes(record))

    @property
    def written(self) -> list[DeployRecord]:
        return self._notes.records

    def _around(self, act):
        self.met += 1
        mistaken = self.met >= self._at if self._for_ever else self.met == self._at
        done = None if mistaken and not self._after else act()
        if mistaken:
            raise RuntimeError(f"mistake {self.met}")
        return done


def work(there: Repositories, run=commands.run, pip=None) -> Work:
    git = Git(str(there.repo), run)
    checkout = Checkout(git, remote="origin", branch="main")
    installer = Installer(git, run=pip or Pip())
    return Work(
        DeploySpec(repo=str(there.repo)), Updating(checkout, installer), RollingBack(checkout)
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repositories:
    """A checkout with a rollback behind it, and an update before it that adds and removes."""
    there = Repositories(tmp_path_factory.mktemp("original"), commits=3)
    there.publish("needs", gone="1\n", requirements_txt="tiny-thing==1.0\n")
    there.publish("bad", code="print('bad')\n")
    work(there).updating.apply(work(there).updating.check("earlier"), Notes())
    assert (
        work(there)
        .rolling_back.apply(work(there).rolling_back.check("earlier", 1), Notes())
        .success
    )
    there.publish("new", gone=None, sub__two="2\n", code="print('new')\n")
    return there


def each_mistake(
    original: Repositories, folder: Path, check: Check, **how: bool
) -> Iterator[tuple[Repositories, Outcome, Bugs]]:
    """Make a mistake at the first point, the second, and so on, until none is met."""
    at = 1
    while True:
        there = copy_of(original, folder / str(at))
        record = check(work(there))
        bugs = Bugs(at, **how)
        outcome = work(there, bugs.run, bugs.pip).apply(record, bugs.note)
        if bugs.met < at:
            assert (outcome.success, at > 3) == (True, True)
            return
        yield there, outcome, bugs
        shutil.rmtree(there.folder)
        at += 1


@pytest.mark.accepts("P24")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", CHECKS)
def test_after_one_mistake_what_is_checked_out_is_whole(original, tmp_path, verb, after):
    for there, outcome, _ in each_mistake(original, tmp_path, CHECKS[verb], after=after):
        assert tidy(there)
        assert outcome.runnable
        assert not outcome.success
        assert "mistake" in outcome.error
        if verb != "rollback" or not outcome.record.made:
            assert (outcome.end, there.head()) == (End.OLD, outcome.record.before)
        else:
            assert (outcome.end, there.head()) == (End.PARTIAL, outcome.record.made[-1])
        assert outcome.code == MISTAKE
        assert "Traceback" in outcome.details["trace"]


@pytest.mark.accepts("P24", "P25")
@pytest.mark.parametrize("verb", CHECKS)
def test_where_mistakes_go_on_it_is_whole_or_stays_open_and_is_ended_later(
    original, tmp_path, verb
):
    stayed_open = 0
    for there, outcome, bugs in each_mistake(original, tmp_path, CHECKS[verb], for_ever=True):
        if outcome.runnable:
            assert tidy(there)
            continue
        stayed_open += 1
        assert (outcome.end, outcome.record.ended) == (End.UNCLEAR, False)
        assert "mistake" in outcome.error
        later = work(there).recover(bugs.written[-1] if bugs.written else outcome.record, Notes())
        assert later.runnable
        assert tidy(there)
    assert stayed_open > 1


def test_what_to_do_is_said_with_the_place(tmp_path):
    told = work_on(DeploySpec(repo=str(tmp_path))).kept_down()
    assert told["kept_down"] is True
    assert str(tmp_path) in told["remedy"]
