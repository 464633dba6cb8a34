from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from uphold.config.finding import declared_names, find, home_for


def test_the_nearest_file_upwards_is_found_toml_first(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "uphold.toml").touch()
    assert find(deep, {}) == tmp_path / "uphold.toml"
    (tmp_path / "a" / "uphold.yml").touch()
    assert find(deep, {}) == tmp_path / "a" / "uphold.yml"
    (tmp_path / "a" / "uphold.yaml").touch()
    assert find(deep, {}) == tmp_path / "a" / "uphold.yaml"
    (deep / "uphold.toml").mkdir()
    assert find(deep, {}) == tmp_path / "a" / "uphold.yaml"


def test_then_the_users_own_folder(tmp_path):
    start = tmp_path / "start"
    start.mkdir()
    assert find(start, {}) is None
    own = tmp_path / "home" / ".config" / "uphold"
    own.mkdir(parents=True)
    (own / "uphold.toml").touch()
    assert find(start, {"HOME": str(tmp_path / "home")}) == own / "uphold.toml"
    other = tmp_path / "xdg" / "uphold"
    other.mkdir(parents=True)
    (other / "uphold.yaml").touch()
    environ = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert find(start, environ) == other / "uphold.yaml"


def test_the_order_of_homes(tmp_path):
    config = tmp_path / "uphold.toml"
    config.write_text("[supervisor]\nhome = 'said'\n")
    environ = {"UPHOLD_HOME": "/from/environment"}
    assert home_for(config, flag="/from/flag", environ=environ) == Path("/from/flag")
    assert home_for(config, environ=environ) == Path("/from/environment")
    assert home_for(config, "settings", environ={}) == tmp_path / "settings"
    assert home_for(config, environ={}) == tmp_path / "said"
    config.write_text("[workers]\n")
    assert home_for(config, environ={}) == tmp_path / ".uphold"
    assert home_for(tmp_path / "none.toml", environ={}) == tmp_path / ".uphold"
    assert home_for(None, environ={}) == Path.cwd() / ".uphold"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uphold.toml", "[supervisor]\nhome = '/h'\n"),
        ("uphold.toml", "supervisor.home = '/h'\n"),
        ("uphold.toml", "supervisor = { home = '/h' }\n"),
        ("uphold.toml", "[app]\nhome='/no'\n[uphold.supervisor]\nhome = '/h'\n"),
        ("uphold.toml", "[supervisor]\nhome = '${H}'\nname = 3\n[nonsense]\n"),
        ("uphold.toml", "[supervisor]\nhome = '${NO:/h}'\n"),
        ("uphold.toml", "[supervisor]\nhome = '${FILE}'\n"),
        ("uphold.toml", "[supervisor]\nname = 'x'\nhome = '/h'\n[workers.a\ncommand = \n"),
        ("uphold.toml", "[workers.a]\nhome = '/no'\n[supervisor]\n# c\nhome = \"/h\" # d\nbad =\n"),
        ("uphold.yaml", "supervisor:\n  home: /h\n"),
        ("uphold.yaml", "supervisor: {home: /h}\n"),
        ("uphold.yaml", "uphold:\n  supervisor:\n    name: x\n    home: '/h'\n"),
        ("uphold.yaml", "supervisor:\n  name: x\n\n  home: /h # note\nworkers:\n  a: [\n"),
    ],
)  # fmt: skip
def test_the_files_own_word_is_found_even_if_the_file_is_wrong(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    (tmp_path / ".env").write_text("FILE=/h\n")
    assert home_for(tmp_path / name, environ={"H": "/h"}) == Path("/h")


@pytest.mark.parametrize(
    "text",
    [
        "[supervisor]\nhome = 3\n", "[supervisor]\nhome = ''\n", "[supervisor]\nhome = '${NO}'\n",
        "supervisor = 3\nhome = 'x'\n", "[workers.a]\nhome = '/h'\n", "[supervisor\n", "home = \n",
        '[supervisor]\nhome = "a\\u0000b"\n', "[supervisor]\nname = 'x'\n[workers.a]\nhome = '/no'\nbad =\n",
    ],
)  # fmt: skip
def test_otherwise_it_is_beside_the_file(tmp_path, text):
    (tmp_path / "uphold.toml").write_text(text)
    assert home_for(tmp_path / "uphold.toml", environ={}) == tmp_path / ".uphold"


def test_finding_needs_no_parser_for_a_file_that_says_nothing_about_its_home(tmp_path):
    (tmp_path / "uphold.toml").write_text("[workers.a]\ncommand = '/home/me/run'\n")
    code = (
        "import sys; from uphold.config.finding import declared_home, find_file;"
        f"path = find_file({str(tmp_path)!r}, {{}}); assert declared_home(path, {{}}) is None;"
        "heavy = {'tomllib', 'yaml', 'msgspec', 'asyncio', 'shlex', 'pathlib', 'difflib'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)"
    )
    run = subprocess.run(
        [sys.executable, "-S", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uphold.toml", "[workers.web]\n[workers.api]\n"),
        ("uphold.toml", "[workers]\nweb = 3\napi = '${NOT_SET}'\n[nonsense]\n"),
        ("uphold.toml", "[workers.no]\n[uphold.workers.web]\n[uphold.workers.api]\n"),
        ("uphold.yaml", "workers: {web: {command: x}, api: }\n"),
        ("uphold.yaml", "uphold:\n  workers:\n    web:\n    api:\n"),
    ],
)
def test_workers_are_named_in_the_order_of_the_file_right_or_wrong(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert declared_names(str(tmp_path / name)) == ["web", "api"]


@pytest.mark.parametrize("text", ["[workers", "workers = 3\n", "", "\0", None])
def test_a_file_that_cannot_be_read_names_nobody(tmp_path, text):
    if text is not None:
        (tmp_path / "uphold.toml").write_text(text)
    assert declared_names(str(tmp_path / "uphold.toml")) == []
