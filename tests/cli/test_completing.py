from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from uphold.cli.verbs import VERBS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_right_in_the_eyes_of_its_shell(uphold, tmp_path, shell):
    script = uphold("completion", shell).out
    assert all(verb in script for verb in VERBS)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    path = tmp_path / "script"
    path.write_text(script)
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


_ASK = """
source "$1"
uphold() { case "$*" in *"--home elsewhere"*) echo worker:there.state=x; return ;; esac
printf 'worker:api.state=running\\nworker:api.health=healthy\\nworker:web.state=x\\n'; }
shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_uphold
printf '%s\\n' "${COMPREPLY[@]}"
"""


def ask(script: str, tmp_path: Path, *words: str) -> list[str]:
    path = tmp_path / "script"
    path.write_text(script)
    command = ["bash", "-c", _ASK, "ask", str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_verbs_options_and_the_names_of_workers(uphold, tmp_path):
    script = uphold("completion", "bash").out
    assert ask(script, tmp_path, "uphold", "sta") == ["start", "status"]
    assert ask(script, tmp_path, "uphold", "status", "--wa") == ["--watch"]
    assert ask(script, tmp_path, "uphold", "--home", "x", "stop", "") == ["api", "web"]
    assert ask(script, tmp_path, "uphold", "plan", "--exit") == ["--exit-code"]
    assert ask(script, tmp_path, "uphold", "completion", "")[:3] == ["bash", "zsh", "fish"]
    assert ask(script, tmp_path, "uphold", "flag", "l") == ["list"]
    assert ask(script, tmp_path, "uphold", "db", "m") == ["migrate"]
    assert ask(script, tmp_path, "uphold", "scale", "") == ["api=", "web="]
    assert ask(script, tmp_path, "uphold", "scale", "--no") == ["--no-wait"]


def test_bash_offers_the_workers_of_the_home_that_is_named(uphold, tmp_path):
    script = uphold("completion", "bash").out
    assert ask(script, tmp_path, "uphold", "--home", "elsewhere", "stop", "") == ["there"]
    assert ask(script, tmp_path, "uphold", "stop", "--home", "elsewhere", "") == ["there"]
    assert ask(script, tmp_path, "uphold", "--home", "=", "elsewhere", "stop", "") == ["there"]
    assert ask(script, tmp_path, "uphold", "--home", "stop", "sta") == ["start", "status"]


def test_bash_completes_files_after_an_option_that_names_one(uphold, tmp_path):
    script = uphold("completion", "bash").out
    assert ask(script, tmp_path, "uphold", "stop", "-c", "") == []
    assert ask(script, tmp_path, "uphold", "--home", "=", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_offers_names_to_scale(uphold, shell):
    assert "sed 's/$/=/'" in uphold("completion", shell).out.replace("\\$", "$")
