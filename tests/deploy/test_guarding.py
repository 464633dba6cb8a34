"""How git is called: with what, without what, and what is kept of it."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from deploy.repositories import Repositories, git
from uphold.deploy.guarding import LIMIT, Git, Transcript, without_passwords
from uphold.errors import HostFailure
from uphold.host.commands import Done

SHIM = """#!/bin/sh
env > "{seen}/environment"
printf '%s\\n' "$@" > "{seen}/words"
echo fine
"""


@pytest.fixture
def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put something in the place of git that tells how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(SHIM.format(seen=tmp_path))
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


@pytest.mark.accepts("S36")
def test_nothing_of_the_supervisors_own_git_variables_reaches_it(
    shim: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("GIT_DIR", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH", "GIT_ASKPASS"):
        monkeypatch.setenv(name, "evil")
    monkeypatch.setenv("DATABASE_URL", "evil")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/settings")
    guarded = Git(str(shim))
    guarded.protocol = "https"
    assert guarded.must("status") == "fine\n"
    seen = (shim / "environment").read_text().splitlines()
    assert not [line for line in seen if line.endswith("=evil")]
    assert {
        "GIT_TERMINAL_PROMPT=0",
        "GIT_ALLOW_PROTOCOL=https",
        "SSH_AUTH_SOCK=/run/agent",
        "https_proxy=http://proxy:3128",
        "XDG_CONFIG_HOME=/settings",
        f"HOME={os.environ['HOME']}",
    } <= set(seen)


@pytest.mark.accepts("S36", "S38")
def test_every_call_switches_off_what_runs_other_peoples_code(shim: Path):
    Git(str(shim)).must("status")
    words = (shim / "words").read_text().splitlines()
    pairs = set(itertools.pairwise(words))
    for setting in (
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "fetch.fsckObjects=true",
        "fetch.unpackLimit=1",
        "gc.auto=0",
        "user.name=uphold",
        "user.email=uphold@localhost",
    ):
        assert ("-c", setting) in pairs
    assert words[-1] == "status"


@pytest.mark.accepts("C-145", "C-147b")
def test_every_command_has_its_limit(tmp_path: Path):
    limits = []

    def run(argv: object, *, limit: float = 0.0, **more: object) -> Done:
        limits.append(limit)
        return Done(argv=("git",), returncode=-15, stdout="", stderr="", timed_out=True, error="x")

    guarded = Git(str(tmp_path), run)  # type: ignore[arg-type]
    with pytest.raises(HostFailure, match="did not end within 30 s"):
        guarded.must("fetch")
    assert limits == [LIMIT]
    assert guarded.transcript.commands[0]["timed_out"] is True


def test_a_machine_without_git_is_told_so(tmp_path: Path):
    guarded = Git(str(tmp_path), inherited={"PATH": str(tmp_path)})
    with pytest.raises(HostFailure) as failed:
        guarded.must("status")
    assert failed.value.code == "UPH_DEPLOY_NO_GIT"


def test_more_than_can_be_read_is_an_error_and_never_taken_for_all(tmp_path: Path):
    there = Repositories(tmp_path)
    with pytest.raises(HostFailure, match="more than can be read"):
        Git(str(there.repo)).must("log", most=50)


@pytest.mark.accepts("C-062")
def test_a_transcript_is_bounded_safe_to_show_and_without_passwords():
    told: list[str] = []
    transcript = Transcript(told.append)
    said = "fatal: https://me:secret@git.example/x \x1b[31mred\n" + "x" * 50_000
    done = Done(argv=("git",), returncode=1, stdout=said, stderr="last words", error="it failed.")
    for _ in range(300):
        transcript.add(done, "git fetch")
    assert len(transcript.commands) == 200
    assert len(told) == 300
    output = str(transcript.commands[0]["output"])
    assert "secret" not in output + told[0]
    assert "\x1b" not in output + told[0]
    assert output.endswith("last words")
    assert len(output) < 5000


def test_passwords_are_taken_out_of_addresses_only():
    assert without_passwords("https://a:b@h/x git@h:y mail@x") == "https://***@h/x git@h:y mail@x"


@pytest.mark.accepts("S36")
def test_credential_helpers_are_still_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    there = Repositories(tmp_path)
    asked = tmp_path / "asked"
    git(there.repo, "config", "credential.helper", f"!f() {{ touch {asked}; }}; f")
    Git(str(there.repo)).ask(
        "credential", "fill", given=b"protocol=https\nhost=git.example\nusername=me\n\n"
    )
    assert asked.exists()
