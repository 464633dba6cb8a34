"""Checkouts of evil repositories: nothing of theirs runs, and nothing beyond them is touched."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories, git
from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.records import End, Outcome
from uphold.deploy.updating import Updating
from uphold.errors import HostFailure, NotPermitted, UpholdError
from uphold.host import commands
from uphold.host.commands import at_work
from uphold.testing.waiting import until

HOOKS = (
    "post-merge",
    "post-checkout",
    "pre-merge-commit",
    "reference-transaction",
    "post-rewrite",
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "fsmonitor-watchman",
    "pre-auto-gc",
)


@pytest.fixture
def there(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path)


@pytest.fixture
def evil(there: Repositories) -> str:
    """Give the path of a program that leaves a trace when it is run."""
    path = there.folder / "evil.sh"
    path.write_text(f"#!/bin/sh\ntouch {there.folder}/ran\nexit 0\n")
    path.chmod(0o755)
    return str(path)


def go_round(there: Repositories) -> list[Outcome]:
    """Update, return, update, roll back: everything that is ever done."""
    updating, rolling = there.updating(), there.rolling_back()
    first = updating.apply(updating.check("1"), Notes())
    back = updating.return_to(first.record, Notes(), why="unhealthy.")
    second = updating.apply(updating.check("2"), Notes())
    third = rolling.apply(rolling.check("3", 1), Notes())
    return [first, back, second, third]


def never_ran(there: Repositories) -> bool:
    return not (there.folder / "ran").exists()


@pytest.mark.accepts("S36", "T16")
def test_no_hook_runs_wherever_it_comes_from(there: Repositories, evil: str):
    hooks = there.repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in HOOKS:
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(evil)
    there.publish("hooks in the tree", **{f"hooks__{name}": "#!/bin/sh\n" for name in HOOKS})
    git(there.repo, "config", "core.hooksPath", str(hooks))
    git(there.repo, "config", "core.fsmonitor", evil)
    outcomes = go_round(there)
    assert [outcome.success for outcome in outcomes] == [True, False, True, True]
    assert never_ran(there)


@pytest.mark.accepts("S36")
def test_submodules_are_not_followed(there: Repositories, tmp_path: Path):
    inner = Repositories(tmp_path / "inner") if (tmp_path / "inner").mkdir() is None else None
    assert inner is not None
    git(there.person, "submodule", "add", "-q", str(inner.remote), "inner")
    there.publish("with a submodule")
    git(there.repo, "config", "submodule.recurse", "true")
    git(there.repo, "config", "fetch.recurseSubmodules", "true")
    updating = there.updating()
    assert updating.apply(updating.check("job"), Notes()).success
    assert list((there.repo / "inner").iterdir()) == []
    assert not (there.repo / ".git" / "modules").exists()
    assert updating.check("again").changes_code is False
    rolling = there.rolling_back()
    assert rolling.apply(rolling.check("job", 1), Notes()).success


@pytest.mark.accepts("S36")
def test_what_the_content_says_of_filters_drivers_and_settings_is_not_obeyed(
    there: Repositories, evil: str
):
    settings = f'[filter "evil"]\n smudge = {evil}\n clean = {evil}\n[core]\n fsmonitor = {evil}\n'
    attributes = "* filter=evil diff=evil merge=evil\n"
    there.publish("evil", **{".gitattributes": attributes, ".gitconfig": settings, "code": "e\n"})
    assert [outcome.success for outcome in go_round(there)] == [True, False, True, True]
    assert never_ran(there)


@pytest.mark.accepts("S35", "S36")
@pytest.mark.parametrize(
    "url",
    ["ext::{evil}", "--upload-pack={evil}", "file://{remote}", "../remote.git", "http://x/y"],
)
def test_addresses_that_are_not_allowed_reach_nothing(there: Repositories, evil: str, url: str):
    text = url.format(evil=evil, remote=there.remote)
    git(there.repo, "config", "remote.origin.url", text)
    git(there.repo, "config", "protocol.allow", "always")
    git(there.repo, "config", "protocol.ext.allow", "always")
    with pytest.raises(UpholdError) as refused:
        there.updating().check("job")
    assert refused.value.code == "UPH_DEPLOY_REMOTE"
    assert never_ran(there)


@pytest.mark.accepts("S35", "S36")
def test_rewritten_addresses_and_other_ways_to_name_a_program_are_no_way_round(
    there: Repositories, evil: str
):
    git(there.repo, "config", f"url.ext::{evil} .insteadOf", str(there.remote))
    with pytest.raises(UpholdError) as refused:
        there.updating().check("job")
    assert refused.value.code == "UPH_DEPLOY_REMOTE"
    git(there.repo, "config", "--unset", f"url.ext::{evil} .insteadOf")
    git(there.repo, "config", "remote.origin.uploadpack", evil)
    assert there.updating().check("job")
    git(there.repo, "config", "remote.origin.vcs", "ext")
    with pytest.raises(UpholdError):
        there.updating().check("job")
    assert never_ran(there)


def test_a_second_address_of_a_remote_is_refused(there: Repositories):
    git(there.repo, "config", "--add", "remote.origin.url", "/elsewhere")
    with pytest.raises(UpholdError, match="several addresses"):
        there.updating().check("job")


@pytest.mark.accepts("S35")
@pytest.mark.parametrize("name", ["--upload-pack=x", "-x", "a..b", "main^{/x}", "x:y", "", "a b"])
def test_refs_that_look_like_options_or_expressions_are_refused(there: Repositories, name: str):
    for more in ({"remote": name}, {"branch": name}):
        with pytest.raises(UpholdError) as refused:
            there.checkout(**more).fetch()
        assert refused.value.code == "UPH_DEPLOY_REMOTE"
    for act in (there.checkout().reset, there.checkout().fast_forward, there.checkout().short):
        with pytest.raises(HostFailure, match="not the id of a commit"):
            act(name)


@pytest.mark.accepts("S35")
def test_branches_and_files_with_strange_names_are_taken_for_what_they_are(there: Repositories):
    names = ["-rf", "--all", ":(top)x", "*", "a\nb", "ünï", "sub/ -x", "\x1b[31m"]
    for name in names:
        path = there.person / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (there.person / os.fsdecode(b"no-\xff-text")).write_text("x")
    there.publish("strange")
    assert [outcome.success for outcome in go_round(there)] == [True, False, True, True]
    assert there.status() == ""
    (there.repo / "*").write_text("in the way")
    git(there.repo, "reset", "-q", "--hard", there.ids[0])
    (there.repo / "*").write_text("in the way")
    updating = there.updating()
    with pytest.raises(UpholdError, match=r"in the way in .*: \*\."):
        updating.check("job")


def test_links_that_lead_outside_are_not_written_through(there: Repositories):
    outside = there.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched\n")
    (there.person / "link").symlink_to(outside)
    there.publish("a link")
    updating = there.updating()
    assert updating.apply(updating.check("1"), Notes()).success
    git(there.person, "rm", "-q", "link")
    there.publish("a folder now", link__file="written\n")
    outcome = updating.apply(updating.check("2"), Notes())
    assert outcome.success
    back = updating.return_to(outcome.record, Notes(), why="unhealthy.")
    assert back.details["after_commit"] == back.details["before_commit"]
    assert (outside / "file").read_text() == "untouched\n"


def test_an_untracked_link_in_the_way_is_refused(there: Repositories):
    there.publish("a folder", sub__file="1\n")
    (there.repo / "sub").symlink_to(there.folder)
    with pytest.raises(UpholdError) as refused:
        there.updating().check("job")
    assert refused.value.code == "UPH_DEPLOY_IN_THE_WAY"


@pytest.mark.accepts("S38")
def test_broken_objects_are_not_taken_in(there: Repositories):
    raw = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor broken\ncommitter broken\n\nx\n"
    path = there.folder / "raw"
    path.write_text(raw)
    words = ("hash-object", "-t", "commit", "-w", "--literally", str(path))
    made = git(there.remote, *words)
    (there.remote / "refs" / "heads" / "main").write_text(made + "\n")
    with pytest.raises(UpholdError) as refused:
        there.updating().check("job")
    assert refused.value.code == "UPH_DEPLOY_GIT_FAILED"
    assert there.head() == there.ids[-1]


def test_a_checkout_of_another_user_is_not_trusted_blindly(there: Repositories):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to somebody else")
    os.chown(there.repo, 12345, 12345)
    os.chown(there.repo / ".git", 12345, 12345)
    checkout = Checkout(
        Git(str(there.repo), inherited={"PATH": os.environ["PATH"], "HOME": str(there.folder)}),
        remote="origin",
        branch="main",
    )
    with pytest.raises(UpholdError, match="belongs to another user"):
        checkout.folders()


def test_a_linked_work_tree_is_a_checkout_too(there: Repositories):
    git(there.repo, "switch", "-q", "--detach")
    linked = there.folder / "linked"
    git(there.repo, "worktree", "add", "-q", str(linked), "main")
    there.repo = linked
    there.publish("better", code="better\n")
    assert [outcome.success for outcome in go_round(there)] == [True, False, True, True]
    assert there.status() == ""


def test_a_shallow_clone_is_updated_and_rolled_back_as_far_as_it_goes(there: Repositories):
    shallow = there.folder / "shallow"
    git(there.folder, "clone", "-q", "--depth=2", f"file://{there.remote}", str(shallow))
    git(shallow, "remote", "set-url", "origin", str(there.remote))
    there.repo = shallow
    there.publish("better", code="better\n")
    updating, rolling = there.updating(), there.rolling_back()
    assert updating.apply(updating.check("1"), Notes()).success
    with pytest.raises(UpholdError) as refused:
        rolling.check("2", 3)
    assert refused.value.code == "UPH_DEPLOY_HISTORY"
    assert rolling.apply(rolling.check("3", 2), Notes()).success
    assert there.read() == "print(2)\n"


def with_limit(there: Repositories, most: int) -> Updating:
    checkout = Checkout(Git(str(there.repo), most=most), remote="origin", branch="main")
    return Updating(checkout)


@pytest.mark.accepts("S38")
@pytest.mark.parametrize("files", [1, 150], ids=["one", "many"])
def test_a_fetch_of_too_much_is_cut_off_and_leaves_nothing(there: Repositories, files: int):
    old, room = there.head(), there.size()
    for number in range(files):
        (there.person / f"noise{number}").write_bytes(os.urandom(6_000_000 // files))
    there.publish("noise")
    with pytest.raises(NotPermitted) as refused:
        with_limit(there, 4 << 20).check("job")
    assert refused.value.code == "UPH_DEPLOY_TOO_LARGE"
    assert "more than 4 MiB" in refused.value.message
    assert "pull --ff-only origin main" in refused.value.remedy
    assert (there.head(), there.status()) == (old, "")
    assert there.size() - room < 100_000
    assert with_limit(there, 8 << 20).check("job").target != old


@pytest.mark.accepts("S38")
def test_little_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(there: Repositories):
    old = there.head()
    for number in range(3):
        (there.person / f"zeros{number}").write_bytes(bytes(2_000_000))
    there.publish("zeros")
    with pytest.raises(NotPermitted) as refused:
        with_limit(there, 4 << 20).check("job")
    assert refused.value.code == "UPH_DEPLOY_TOO_LARGE"
    assert (there.head(), there.status()) == (old, "")
    updating = with_limit(there, 8 << 20)
    assert updating.apply(updating.check("job"), Notes()).success


@pytest.mark.accepts("S38", "P24")
def test_a_file_that_is_too_large_after_all_brings_the_old_code_back(there: Repositories):
    """As by a filter of the operator's own, which makes more of it than the repository says."""
    old = there.head()
    (there.person / "zeros").write_bytes(bytes(6_000_000))
    there.publish("zeros")
    record = with_limit(there, 8 << 20).check("job")
    outcome = with_limit(there, 4 << 20).apply(record, Notes())
    assert (outcome.end, there.head(), there.status()) == (End.OLD, old, "")
    assert not (there.repo / "zeros").exists()


@pytest.mark.accepts("P24")
def test_what_is_put_back_may_be_larger_than_what_may_come(there: Repositories):
    """The operator brought it in by hand, as the remedy says, and the update takes it away."""
    (there.person / "zeros").write_bytes(bytes(6_000_000))
    old = there.publish("zeros")
    git(there.repo, "pull", "-q", "--ff-only")
    there.publish("without", zeros=None)
    updating = with_limit(there, 4 << 20)
    came = updating.apply(updating.check("job"), Notes())
    assert came.success
    outcome = updating.return_to(came.record, Notes(), why="it is not well")
    assert (outcome.end, there.head(), there.status()) == (End.OLD, old, "")


def test_a_partial_clone_fetches_no_file_only_to_weigh_it(there: Repositories):
    git(there.remote, "config", "uploadpack.allowFilter", "true")
    there.repo.rename(there.folder / "whole")
    words = ("clone", "-q", "--filter=blob:none", f"file://{there.remote}", str(there.repo))
    git(there.folder, *words)
    git(there.repo, "remote", "set-url", "origin", str(there.remote))
    new = there.publish("newer", code="print('new')\n", more="1\n", much="2\n")
    updating = there.updating()
    record = updating.check("job")
    missing = git(there.repo, "rev-list", "--objects", "--missing=print", f"{new}^!").split("\n")
    assert len([line for line in missing if line.startswith("?")]) == 3
    assert updating.apply(record, Notes()).success
    assert (there.head(), there.status(), there.read("more")) == (new, "", "1\n")


@pytest.mark.parametrize("where", ["checkout", "beside"])
def test_what_another_git_is_fetching_is_not_cleared_away(there: Repositories, where: str):
    git(there.repo, "worktree", "add", "-q", "--detach", str(there.folder / "beside"))
    (there.person / "noise").write_bytes(os.urandom(6_000_000))
    there.publish("noise")
    theirs = there.repo / ".git/objects/pack/tmp_pack_theirs"

    def run(argv, **more):
        if "fetch" in argv:
            theirs.touch()
        return commands.run(argv, **more)

    guarded = Git(str(there.repo), run, most=4 << 20)
    updating = Updating(Checkout(guarded, remote="origin", branch="main"))
    words, folder = ("git", "cat-file", "--batch"), there.folder / where
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE) as working:
        until(lambda: at_work("git", folder) == [working.pid], 30, "git at work")
        with pytest.raises(NotPermitted):
            updating.check("job")
        assert theirs.exists()
        working.communicate()
    theirs.unlink()
    with pytest.raises(NotPermitted):
        updating.check("job")
    assert not theirs.exists()
