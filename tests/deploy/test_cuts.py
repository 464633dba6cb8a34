"""Updates and rollbacks that are cut at every step, ended by the next supervisor, and cut again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories, git
from uphold.deploy import holding
from uphold.deploy import updating as updating_module
from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.records import DeployRecord, End, Outcome, Step
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating
from uphold.host import commands
from uphold.wire.codecs import decode

Way = Updating | RollingBack
WRITING = {"merge", "reset", "revert", "commit", "update-ref", "read-tree", "update-index"}


class Cut(BaseException):
    """As a kill: nobody catches it, and nothing more is done."""


class Scissors:
    """Runs commands and writes records until its number has come."""

    def __init__(self, at: int = 10_000) -> None:
        self.left = at
        self.used = 0
        self.last: DeployRecord | None = None

    def run(self, argv, **more):
        if WRITING & set(argv):  # the others leave nothing that could differ
            self._snip()
        return commands.run(argv, **more)

    def note(self, record: DeployRecord) -> None:
        self._snip()
        self.last = record

    def _snip(self) -> None:
        self.used += 1
        if self.used > self.left:
            raise Cut

    def way(self, there: Repositories, kind: type[Way]) -> Way:
        return kind(Checkout(Git(str(there.repo), self.run), remote="origin", branch="main"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Repositories:
    """A checkout with a rollback behind it, and an update before it that adds and removes."""
    there = Repositories(tmp_path_factory.mktemp("original"), commits=2)
    there.publish("many", gone="1\n", code="print('many')\n")
    there.publish("fewer", gone=None, sub__one="1\n")
    there.publish("again", gone="2\n", code="print('again')\n")
    git(there.repo, "pull", "-q")
    rolling = there.rolling_back()
    assert rolling.apply(rolling.check("earlier", 1), Notes()).success
    there.publish("to come", sub__one=None, sub__two="2\n", other="x\n", code="print('new')\n")
    return there


@pytest.fixture
def there(original: Repositories, tmp_path: Path) -> Repositories:
    return copy_of(original, tmp_path / "copy")


def copy_of(original: Repositories, folder: Path) -> Repositories:
    there = object.__new__(Repositories)
    shutil.copytree(original.folder, folder, symlinks=True)
    there.folder, there.ids = folder, original.ids
    there.remote, there.person = folder / "remote.git", folder / "person"
    there.repo = folder / "checkout"
    git(there.repo, "remote", "set-url", "origin", str(there.remote))
    git(there.repo, "update-index", "-q", "--refresh")
    return there


def tidy(there: Repositories) -> bool:
    left = list((there.repo / ".git").rglob("*.lock"))
    left = [path for path in left if path.name != "uphold.lock"]
    return there.status() == "" and left == []


def each_cut(
    original: Repositories, folder: Path, kind: type[Way], order: Callable[[Way], DeployRecord]
):
    """Cut an operation at its first point, its second, and so on, until it is done uncut."""
    at = 0
    while True:
        there = copy_of(original, folder / str(at))
        record = order(kind(there.checkout()))
        scissors = Scissors(at)
        scissors.last = record
        try:
            scissors.way(there, kind).apply(record, scissors.note)
        except Cut:
            yield there, scissors.last, at
        else:
            assert at > 3, "too few points for a proof"
            return
        shutil.rmtree(there.folder)
        at += 1


def recover(there: Repositories, record: DeployRecord, kind: type[Way], cut: int) -> Outcome:
    """Recover, cut once on the way, then to the end; and once more, which changes nothing."""
    scissors = Scissors(cut)
    scissors.last = record
    try:
        scissors.way(there, kind).recover(record, scissors.note)
    except Cut:
        pass
    notes = Notes()
    outcome = kind(there.checkout()).recover(scissors.last, notes)
    head = there.head()
    again = kind(there.checkout()).recover(outcome.record, Notes())
    assert (again.success, again.end, there.head()) == (outcome.success, outcome.end, head)
    return outcome


@pytest.mark.timeout(300)
@pytest.mark.accepts("P24", "P25")
def test_an_update_cut_anywhere_ends_old_or_new_and_can_be_made_again(
    original: Repositories, tmp_path: Path
):
    ends = set()
    order = lambda way: way.check("job")  # noqa: E731
    for there, record, at in each_cut(original, tmp_path, Updating, order):
        outcome = recover(there, record, Updating, at * 3 % 7)
        expected = record.target if outcome.end is End.NEW else record.before
        assert there.head() == expected, (at, record.step)
        assert tidy(there), (at, record.step)
        assert outcome.record.ended or outcome.record.step is Step.APPLIED
        ends.add((record.step, outcome.end))
        updating = there.updating()
        assert updating.apply(updating.check("again"), Notes()).success
        assert there.head() == record.target
        assert tidy(there)
    assert ends >= {
        (Step.PREPARED, End.OLD),
        (Step.SETTING_ASIDE, End.OLD),
        (Step.MERGING, End.OLD),
    }


@pytest.mark.timeout(300)
@pytest.mark.accepts("P25", "B-55")
def test_a_rollback_cut_anywhere_is_finished_or_was_never_begun(
    original: Repositories, tmp_path: Path
):
    seen = set()
    order = lambda way: way.check("job", 2)  # noqa: E731
    before = git(original.repo, "rev-parse", "HEAD")
    earlier = git(original.repo, "rev-parse", f"{original.ids[1]}^{{tree}}")
    for there, record, at in each_cut(original, tmp_path, RollingBack, order):
        outcome = recover(there, record, RollingBack, at * 3 % 7)
        assert tidy(there), (at, record.step)
        begun = record.step is not Step.PREPARED
        seen.add(begun)
        assert outcome.success == begun
        if begun:
            assert there.tree() == earlier, at
            made = git(there.repo, "rev-list", "--count", f"{before}..HEAD")
            assert made == "2", at
            assert outcome.details["commits_reverted"] == 2
        else:
            assert there.head() == before
        updating = there.updating()
        assert updating.apply(updating.check("again"), Notes()).success
        assert tidy(there)
    assert seen == {True, False}


PROGRAM = """
import os, signal, sys
from pathlib import Path
from uphold.deploy import holding
from uphold.deploy import updating as updating_module
from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating
from uphold.host.files import write_atomically
from uphold.wire.codecs import encode
repo, kind, at, where = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
way = {"update": Updating, "rollback": RollingBack}[kind](
    Checkout(Git(repo), remote="origin", branch="main")
)
noted = 0
def note(record):
    global noted
    write_atomically(where, encode(record))
    noted += 1
    if noted > at:
        os.kill(os.getpid(), signal.SIGKILL)
record = way.check("job") if kind == "update" else way.check("job", 2)
note(record)
way.apply(record, note)
"""


@pytest.mark.timeout(300)
@pytest.mark.accepts("P25")
@pytest.mark.parametrize("kind", ["update", "rollback"])
def test_a_process_killed_at_each_record_leaves_what_the_next_can_end(
    original: Repositories, tmp_path: Path, kind: str
):
    way: type[Way] = Updating if kind == "update" else RollingBack
    killed = 0
    while True:
        there = copy_of(original, tmp_path / str(killed))
        written = there.folder / "record.json"
        words = [sys.executable, "-c", PROGRAM, str(there.repo), kind, str(killed), str(written)]
        ran = subprocess.run(words, check=False)
        record = decode(DeployRecord, written.read_bytes())
        if ran.returncode == 0:
            break
        assert ran.returncode == -9
        outcome = way(there.checkout()).recover(record, Notes())
        assert outcome.end in (End.OLD, End.NEW)
        assert tidy(there)
        killed += 1
    assert record.step is Step.APPLIED
    assert killed == 4


def half_done(there: Repositories, record: DeployRecord, *files: str) -> None:
    """Leave what a git leaves that is killed while it writes: some files, locks, no commit."""
    for name in files:
        path = there.repo / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("half of wh")
    for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock", "ORIG_HEAD.lock"):
        (there.repo / ".git" / name).touch()
    assert there.head() == record.before


@pytest.mark.accepts("P24", "P25")
def test_a_git_killed_while_it_writes_files_leaves_nothing_behind(there: Repositories):
    updating = there.updating()
    record = updating.check("job")
    (there.repo / "mine").write_text("kept\n")
    (there.repo / "gone").unlink(missing_ok=True)
    half_done(there, record, "code", "other", "sub/two")
    merging = replace(record, step=Step.MERGING)
    outcome = updating.recover(merging, Notes())
    assert outcome.end is End.OLD
    assert there.head() == record.before
    assert there.status() == "?? mine"
    (there.repo / "mine").unlink()
    assert tidy(there)
    assert not (there.repo / "other").exists()
    assert updating.apply(updating.check("again"), Notes()).success


@pytest.mark.accepts("P25")
def test_a_revert_killed_while_it_writes_files_is_made_again(there: Repositories):
    rolling = there.rolling_back()
    record = rolling.check("job", 1)
    half_done(there, record, "gone", "code")
    (there.repo / ".git" / "REVERT_HEAD").write_text(record.reverts[0] + "\n")
    reverting = replace(record, step=Step.REVERTING)
    outcome = rolling.recover(reverting, Notes())
    assert outcome.success
    assert tidy(there)


@pytest.mark.accepts("P25")
def test_an_index_torn_by_a_power_cut_is_written_anew(there: Repositories):
    updating = there.updating()
    record = updating.check("job")
    index = there.repo / ".git" / "index"
    index.write_bytes(index.read_bytes()[:40])
    merging = replace(record, step=Step.MERGING)
    assert updating.recover(merging, Notes()).end is End.OLD
    assert tidy(there)


@pytest.mark.accepts("P24", "P25")
def test_a_pip_that_a_killed_supervisor_left_is_waited_for(there: Repositories, monkeypatch):
    updating = there.updating()
    record = updating.check("job")
    git(there.repo, "reset", "-q", "--hard", record.target)
    patience = []

    def noted(checkout, seconds=0.0):
        patience.append(seconds)
        return holding.held(checkout, seconds)

    monkeypatch.setattr(updating_module, "held", noted)
    installing = replace(record, step=Step.INSTALLING, installed=True)
    assert updating.recover(installing, Notes()).end is End.OLD
    assert there.head() == record.before
    assert patience[0] > 600  # as long as a pip may take
