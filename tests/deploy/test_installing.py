"""Installing packages: what pip is told, and updates whose packages cannot be had."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories
from uphold.deploy.guarding import Git
from uphold.deploy.installing import Installer
from uphold.deploy.records import End, Outcome, Step
from uphold.deploy.updating import Updating
from uphold.errors import HostFailure, UpholdError
from uphold.host.commands import Done

HASH = "--hash=sha256:" + "0" * 64


def wheel(folder: Path, version: str) -> Path:
    """Make the smallest package that pip takes."""
    path = folder / f"tiny_thing-{version}-py3-none-any.whl"
    about = f"tiny_thing-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("tiny_thing.py", f"version = '{version}'\n")
        made.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: tiny-thing\nVersion: {version}\n"
        )
        made.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        made.writestr(f"{about}/RECORD", "")
    return path


class Pip:
    """Stands for pip: notes how it was called, and fails when told to."""

    def __init__(self, *, managed: bool = False, fails: tuple[int, ...] = ()) -> None:
        self.calls: list[list[str]] = []
        self.limits: list[float] = []
        self._managed = managed
        self._fails = fails

    def __call__(self, argv, *, limit: float, **more) -> Done:
        if "pip" not in argv:
            return Done(argv=tuple(argv), returncode=0, stdout=f"{self._managed}\n", stderr="")
        self.calls.append(list(argv))
        self.limits.append(limit)
        code = 1 if len(self.calls) in self._fails else 0
        said = "ERROR: No matching distribution found" if code else ""
        error = "'python3' ended with 1." if code else ""
        return Done(argv=tuple(argv), returncode=code, stdout="", stderr=said, error=error)


@pytest.fixture
def there(tmp_path: Path) -> Repositories:
    there = Repositories(tmp_path)
    there.publish("needs", requirements_txt="tiny-thing==1.0\n")
    updating = there.updating()
    assert updating.apply(updating.check("first"), Notes()).success
    return there


def update(there: Repositories, pip: Pip, notes: Notes | None = None) -> Outcome:
    checkout = there.checkout()
    updating = Updating(checkout, Installer(checkout.git, run=pip))  # type: ignore[arg-type]
    return updating.apply(updating.check("job", packages=True), notes or Notes())


@pytest.mark.accepts("C-064", "C-066")
def test_packages_are_installed_after_the_code_is_there(there: Repositories):
    new = there.publish("needs more", requirements_txt="tiny-thing==2.0\n")
    pip, notes = Pip(), Notes()
    outcome = update(there, pip, notes)
    assert outcome.success
    assert notes.steps == ["merging", "installing", "applied"]
    assert pip.calls[0][:4] == ["python3", "-m", "pip", "install"]
    assert pip.calls[0][-2:] == ["-r", "requirements.txt"]
    assert "--break-system-packages" not in pip.calls[0]
    assert there.head() == new
    assert any("pip install" in str(one["command"]) for one in outcome.details["commands"])


@pytest.mark.accepts("C-064")
def test_the_systems_own_environment_is_told_that_it_is_meant(there: Repositories):
    pip = Pip(managed=True)
    assert update(there, pip).success
    assert "--break-system-packages" in pip.calls[0]


@pytest.mark.accepts("B-70", "C-147b")
def test_installing_has_a_longer_limit_of_its_own(there: Repositories):
    pip = Pip()
    assert update(there, pip).success
    assert pip.limits == [600.0]


def test_packages_are_installed_also_when_the_code_is_the_newest(there: Repositories):
    pip = Pip()
    outcome = update(there, pip)
    assert outcome.success
    assert outcome.record.changes_code
    assert len(pip.calls) == 1


@pytest.mark.accepts("C-061", "C-065", "B-69", "P24")
def test_a_failing_install_fails_the_update_and_puts_the_old_commit_back(there: Repositories):
    old = there.head()
    there.publish("needs the impossible", requirements_txt="impossible==1\n", code="new\n")
    pip, notes = Pip(fails=(1,)), Notes()
    outcome = update(there, pip, notes)
    assert (outcome.success, outcome.end) == (False, End.OLD)
    assert outcome.code == "UPH_DEPLOY_INSTALL_FAILED"
    assert "No matching distribution" in outcome.error
    assert notes.steps == ["merging", "installing", "returning", "returned"]
    assert (there.head(), there.status()) == (old, "")
    assert len(pip.calls) == 2, "what the old code asks for is installed again"
    assert outcome.details["packages_restored"] is True


def test_packages_that_cannot_be_had_back_are_told(there: Repositories):
    old = there.head()
    there.publish("needs the impossible", requirements_txt="impossible==1\n")
    outcome = update(there, Pip(fails=(1, 2)))
    assert (outcome.end, there.head()) == (End.OLD, old)
    assert outcome.details["packages_restored"] is False
    assert "No matching" in outcome.details["packages_error"]


@pytest.mark.accepts("P25")
def test_an_install_that_was_cut_goes_back_with_code_and_packages(there: Repositories):
    class Cut(BaseException):
        pass

    def cut(*words: object, **more: object) -> Done:
        raise Cut

    old = there.head()
    there.publish("needs more", requirements_txt="tiny-thing==2.0\n")
    checkout, notes = there.checkout(), Notes()
    updating = Updating(checkout, Installer(checkout.git, run=cut))  # type: ignore[arg-type]
    with pytest.raises(Cut):
        updating.apply(updating.check("job", packages=True), notes)
    assert notes.records[-1].step is Step.INSTALLING
    pip = Pip()
    after = there.checkout()
    recovering = Updating(after, Installer(after.git, run=pip))  # type: ignore[arg-type]
    outcome = recovering.recover(notes.records[-1], Notes())
    assert (outcome.end, there.head()) == (End.OLD, old)
    assert len(pip.calls) == 1


def test_a_gate_that_is_not_passed_brings_the_old_packages_back(there: Repositories):
    there.publish("needs more", requirements_txt="tiny-thing==2.0\n")
    checkout, pip = there.checkout(), Pip()
    updating = Updating(checkout, Installer(checkout.git, run=pip))  # type: ignore[arg-type]
    outcome = updating.apply(updating.check("job", packages=True), Notes())
    back = updating.return_to(outcome.record, Notes(), why="unhealthy.")
    assert back.details["packages_restored"] is True
    assert len(pip.calls) == 2


def test_code_without_requirements_is_refused_before_anything_stops(there: Repositories):
    there.publish("none", requirements_txt=None)
    with pytest.raises(UpholdError) as refused:
        update(there, Pip())
    assert "no requirements.txt" in refused.value.message


@pytest.mark.accepts("S39")
def test_strict_installs_only_pinned_packages_and_builds_nothing(tmp_path: Path):
    lines = tmp_path / "requirements.txt"
    lines.write_text(f"# all\ntiny-thing==1.0 \\\n    {HASH}\nother[x]==2 {HASH}  # why\n")
    pip = Pip()
    strict = Installer(Git(str(tmp_path)), strict=True, run=pip)  # type: ignore[arg-type]
    strict.install()
    assert {"--require-hashes", "--only-binary", ":all:"} <= set(pip.calls[0])
    for wrong in (
        "-e .",
        "--extra-index x",
        "-r more.txt",
        "git+https://x/y",
        "./local.whl",
        "tiny @ https://x/y.whl",
        "tiny-thing",
        "tiny-thing>=1",
        "https://x/y.whl",
        "-i https://evil/",
        "tiny-thing==1.0 --global-option=x",
    ):
        lines.write_text(f"{wrong} {HASH}\n")
        with pytest.raises(HostFailure, match="not a pinned package"):
            strict.install()
    assert len(pip.calls) == 1


def test_a_requirements_file_that_leads_outside_is_not_read(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "outside.txt").write_text("")
    (tmp_path / "repo" / "requirements.txt").symlink_to(tmp_path / "outside.txt")
    pip = Pip()
    with pytest.raises(HostFailure, match="no file"):
        Installer(Git(str(tmp_path / "repo")), run=pip).install()  # type: ignore[arg-type]
    assert pip.calls == []


def test_pip_itself_installs_a_local_package_and_fails_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The real thing, without a network: into a folder of its own."""
    into = tmp_path / "into"
    monkeypatch.setenv("PIP_TARGET", str(into))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    (tmp_path / "requirements.txt").write_text(f"./{wheel(tmp_path, '1.0').name}\n")
    guarded = Git(str(tmp_path))
    installer = Installer(guarded, python=sys.executable)
    installer.install()
    assert (into / "tiny_thing.py").read_text() == "version = '1.0'\n"
    (tmp_path / "requirements.txt").write_text("no-such-thing-anywhere==1\n")
    with pytest.raises(HostFailure) as failed:
        installer.install()
    assert failed.value.code == "UPH_DEPLOY_INSTALL_FAILED"
    assert "no-such-thing-anywhere" in failed.value.message
    assert [one["returncode"] for one in guarded.transcript.commands] == [0, 1]


@pytest.mark.accepts("B-70")
def test_a_pip_that_does_not_end_is_ended(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("")
    slow = tmp_path / "python"
    slow.write_text('#!/bin/sh\ncase "$*" in *pip*) exec sleep 1000;; esac\n')
    slow.chmod(0o755)
    with pytest.raises(HostFailure, match=r"did not end within 0\.5 s"):
        Installer(Git(str(tmp_path)), python=str(slow), limit=0.5).install()


def test_a_missing_interpreter_is_told(tmp_path: Path):
    (tmp_path / "requirements.txt").write_text("")
    with pytest.raises(HostFailure, match="there is no program"):
        Installer(Git(str(tmp_path)), python="no-such-python").install()
