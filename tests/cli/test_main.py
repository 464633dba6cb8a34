from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from uphold.cli.verbs import VERBS

UPHOLD = [sys.executable, "-m", "uphold"]


@pytest.mark.accepts("E-20")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(uphold, verb):
    result = uphold(verb, "--help")
    assert result.code == 0
    assert f"usage: uphold {verb}" in result.out
    for option in ("--home", "--config", "--json", "--quiet", "--timeout"):
        assert option in result.out


def test_help_lists_every_verb(uphold):
    result = uphold("--help")
    assert result.code == 0
    assert all(f"\n  {verb} " in result.out for verb in VERBS)


@pytest.mark.accepts("E-23", "E-25")
def test_an_unknown_verb_names_the_nearest_one(uphold):
    result = uphold("statsu")
    assert result.code == 2
    assert result.err.splitlines() == [
        "uphold: there is no verb 'statsu'. [UPH_USAGE]",
        "  Did you mean `uphold status`?",
    ]


@pytest.mark.parametrize("verb", ["fleet", "mcp"])
def test_verbs_of_later_versions_do_not_exist_yet(uphold, verb):
    assert uphold(verb).code == 2


def test_no_verb_at_all_is_a_mistake(uphold):
    assert uphold().code == 2
    assert uphold("--home", "/nowhere").code == 2


def test_a_mistake_can_be_read_by_programs(uphold):
    result = uphold("--json", "statsu")
    assert result.code == 2
    assert result.json == {
        "schema": 1,
        "error": {
            "code": "UPH_USAGE",
            "message": "there is no verb 'statsu'.",
            "remedy": "Did you mean `uphold status`?",
            "exit_code": 2,
        },
    }


@pytest.mark.accepts("S21")
def test_a_mistake_cannot_command_the_terminal(uphold):
    result = uphold("\x1b[2Jstatus")
    assert "\x1b" not in result.err


def test_global_options_stand_before_or_after_the_verb(uphold, supervisor, document):
    supervisor.answers["status"] = document()
    home = str(supervisor.home)
    assert uphold("--home", home, "--json", "status").json == document()
    assert uphold("status", "--json", "--home", home).json == document()
    assert uphold(f"--home={home}", "status", "--json").json == document()


@pytest.mark.accepts("E-25")
def test_without_any_configuration_the_exit_code_is_6(uphold, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("UPHOLD_HOME", raising=False)
    result = uphold("status")
    assert result.code == 6
    assert "[UPH_CONFIG_MISSING]" in result.err
    assert "uphold init" in result.err


def test_a_bug_is_one_line_with_a_file_that_tells_more(uphold, supervisor):
    supervisor.answers["status"] = {"schema": 1}
    (supervisor.home / "logs").mkdir()
    result = uphold("status")
    assert result.code == 1
    assert result.err.startswith("uphold: something went wrong inside uphold: KeyError")
    assert "[UPH_INTERNAL]" in result.err
    assert "Traceback" not in result.err
    (crash,) = (supervisor.home / "logs").glob("crash-*.txt")
    assert "Traceback" in crash.read_text()
    assert crash.stat().st_mode & 0o777 == 0o600


def test_a_bug_shows_its_trace_to_those_who_ask(uphold, supervisor, monkeypatch):
    monkeypatch.setenv("UPHOLD_TRACEBACK", "1")
    supervisor.answers["status"] = {"schema": 1}
    assert "Traceback" in uphold("status").err


def test_a_reader_that_leaves_early_causes_no_noise(home):
    process = subprocess.Popen(
        [*UPHOLD, "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert errors == b""


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_character_that_the_encoding_lacks_is_escaped(supervisor, document, row, env):
    supervisor.answers["status"] = document(row(why="it said “no”"))
    done = subprocess.run(
        [*UPHOLD, "status"],
        cwd=supervisor.home.parent,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"it said \\u201cno\\u201d" in done.stdout


@pytest.mark.parametrize(
    "how", ["utf-8", "utf-8:strict", "utf-8:surrogateescape", "latin-1:replace"]
)
def test_what_can_be_written_is_written_as_it_is(supervisor, document, row, how):
    supervisor.answers["status"] = document(row(why="it said é"))
    done = subprocess.run(
        [*UPHOLD, "status"],
        cwd=supervisor.home.parent,
        env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": how},
        capture_output=True,
        check=True,
    )
    assert "it said é".encode(how.partition(":")[0]) in done.stdout


def test_the_version_is_the_one_of_the_package(uphold):
    from uphold import __version__

    assert __version__ in uphold("version").out
    assert uphold("version", "--json").json["version"] == __version__
    assert uphold("--version").out == f"uphold {__version__}\n"


_PROBE = """
import json, sys
before = set(sys.modules)
from uphold.cli.main import main
code = main(["status"])
print(json.dumps([code, sorted(set(sys.modules) - before)]), file=sys.stderr)
"""


def test_status_imports_only_what_it_needs(supervisor, document, row):
    """A command that people run all day answers at once: nothing heavy comes along."""
    supervisor.answers["status"] = document(row())
    done = subprocess.run(
        [sys.executable, "-I", "-c", _PROBE],
        cwd=supervisor.home.parent,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = json.loads(done.stderr)
    assert code == 0
    heavy = "asyncio msgspec sqlite3 ssl dataclasses rich pathlib subprocess logging psutil yaml"
    heavy += " importlib.metadata tomllib difflib inspect tempfile shutil uphold.core.specs"
    assert not set(heavy.split()) & set(modules)
    assert Path(supervisor.home).exists()
