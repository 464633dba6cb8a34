"""What `uphold doctor` says of a share and of a checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from deploy.repositories import Repositories, git
from inbox.sharing import lay_out
from proofs.stuck import FrozenMount
from uphold.cli.checkups import checkouts, shares
from uphold.cli.checkups.findings import Level
from uphold.core.specs import (
    DeploySpec,
    InboxSpec,
    SenderSpec,
    Settings,
    SupervisorSpec,
    WorkerSpec,
)


def settings(**parts):
    worker = WorkerSpec(name="api", command=("sleep", "1"))
    return Settings(supervisor=SupervisorSpec(name="site"), workers=(worker,), **parts)


def of_share(root, **terms):
    told = shares.share_of(settings(inbox=InboxSpec(share=str(root), **terms)))
    return {each.check: each for each in told}


def of_checkout(repo, **terms):
    terms = {"workers": ("api",), "requirements": "code", **terms}
    told = checkouts.checkout_of(settings(deploy=DeploySpec(repo=str(repo), **terms)))
    return {each.check: each for each in told}


def failing(told):
    return [check for check, each in told.items() if each.level is Level.FAIL]


@pytest.mark.accepts("C-136")
def test_a_share_that_is_as_it_should_be_passes(tmp_path):
    told = of_share(lay_out(tmp_path))
    assert "share" in told or "share space" in told  # the machine's disk may be full
    assert failing(told) == []
    assert not list((tmp_path / "05_LOGS").iterdir())  # what was tried was taken away again
    assert not list((tmp_path / "Worker_Inbox").iterdir())


@pytest.mark.accepts("C-136", "C-137")
def test_each_thing_that_is_missing_is_told_with_what_would_mend_it(tmp_path):
    lay_out(tmp_path)
    for name in ("Worker_Inbox", "Worker_Outbox", "01_RAW"):
        (tmp_path / name).rmdir()
    told = of_share(tmp_path)
    assert failing(told) == ["share inbox", "share outbox", "share path 01_RAW"]
    assert all(each.remedy for each in told.values() if each.level is not Level.OK)


@pytest.mark.accepts("C-136")
def test_a_share_that_is_not_there_is_told_and_nothing_is_made(tmp_path):
    told = of_share(tmp_path / "nowhere")
    assert failing(told) == ["share"]
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "empty").mkdir()
    assert failing(of_share(tmp_path / "empty")) == ["share"]
    assert not list((tmp_path / "empty").iterdir())


def test_unsigned_flags_are_worth_a_warning(tmp_path):
    lay_out(tmp_path)
    assert of_share(tmp_path)["flags"].level is Level.WARN
    sender = SenderSpec(name="console", key="x" * 16)
    told = of_share(tmp_path, require_signature=True, senders=(sender,))
    assert told["flags"].level is Level.OK
    assert "alice, root" in of_share(tmp_path, owners=("alice",))["flags"].detail


def test_without_a_share_and_a_checkout_nothing_is_said():
    assert list(shares.share_of(settings())) == []
    assert list(checkouts.checkout_of(settings())) == []


def test_a_checkout_that_can_be_updated_passes(tmp_path):
    made = Repositories(tmp_path)
    told = of_checkout(made.repo)
    assert {each.level for each in told.values()} == {Level.OK}, told
    assert set(told) >= {"checkout", "checkout edits", "checkout branch", "checkout remote"}


def test_each_thing_that_would_keep_an_update_from_being_made_is_told(tmp_path):
    made = Repositories(tmp_path)
    (made.repo / "code").write_text("edited\n")
    git(made.repo, "remote", "set-url", "origin", "ext::sh -c true")
    git(made.repo, "switch", "-q", "-c", "other")
    told = of_checkout(made.repo, requirements="nothing.txt", workers=())
    assert failing(told) == ["checkout edits", "checkout branch", "checkout remote"]
    assert told["requirements"].level is Level.WARN
    assert told["checkout workers"].level is Level.WARN
    assert all(each.remedy for each in told.values() if each.level is not Level.OK)


def test_a_folder_that_is_no_checkout_is_one_finding(tmp_path):
    assert failing(of_checkout(tmp_path)) == ["checkout"]
    assert list(of_checkout(tmp_path / "nowhere")) == ["checkout"]


def test_a_machine_without_git_is_told(tmp_path, monkeypatch):
    made = Repositories(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = of_checkout(made.repo)
    assert failing(told) == ["checkout"]
    assert "git" in told["checkout"].detail


@pytest.mark.accepts("E-21", "C-136")
def test_the_doctor_looks_at_both(uphold, home, tmp_path):
    made = Repositories(tmp_path)
    root = lay_out(tmp_path / "share")
    shutil.rmtree(root / "Worker_Outbox")
    (tmp_path / "uphold.toml").write_text(
        '[workers.api]\ncommand = ["sleep", "60"]\n'
        f'[inbox]\nshare = "{root}"\n[deploy]\nrepo = "{made.repo}"\nworkers = ["api"]\n'
    )
    result = uphold("doctor", "--json")
    assert result.code == 1
    told = {each["check"]: each["level"] for each in result.json["checks"]}
    assert told["share outbox"] == "fail"
    assert told["flags"] == "warn"
    assert told["checkout"] == "ok"


@pytest.mark.timeout(300)
@pytest.mark.accepts("C-147b", "P17")
def test_a_share_that_hangs_hangs_neither_the_doctor_nor_a_list(home, tmp_path):
    root = tmp_path / "share"
    (tmp_path / "uphold.toml").write_text(
        f'[workers.api]\ncommand = ["sleep", "60"]\n[inbox]\nshare = "{root}"\n'
    )

    def uphold(*words):
        argv = [sys.executable, "-m", "uphold", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=200)

    frozen = FrozenMount(root)
    try:
        frozen.__enter__()
    except PermissionError:
        pytest.skip("nothing may be mounted here")
    try:
        checks = json.loads(uphold("doctor", "--json").stdout)["checks"]
        listed = uphold("flag", "list")
    finally:
        frozen.__exit__()
    told = {each["check"]: each for each in checks}
    assert "did not answer" in told["share"]["detail"]
    assert told["share"]["remedy"]
    assert told["worker api"]["level"] == "ok"
    assert listed.returncode == 1
    assert "UPH_SHARE_UNREACHABLE" in listed.stderr
