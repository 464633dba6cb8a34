"""What the README shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.papers import ROOT, code_blocks, page
from uphold.config.loading import load

README = page("README.md")


def example() -> str:
    return code_blocks(README, "toml")[0]


def test_the_example_configuration_loads(tmp_path: Path):
    path = tmp_path / "uphold.toml"
    path.write_text(example())
    settings = load(path, environ={})
    assert len(example().strip().splitlines()) <= 15
    assert {spec.name for spec in settings.workers} >= {"web"}


def test_the_shown_status_is_about_the_workers_of_the_example(tmp_path: Path):
    path = tmp_path / "uphold.toml"
    path.write_text(example())
    slots = sum(spec.replicas for spec in load(path, environ={}).workers)
    shown = next(block for block in code_blocks(README, "text") if "$ uphold status" in block)
    header, *rows = shown.split("$ uphold status\n")[1].split("\n\n")[0].strip().splitlines()
    assert header.split()[:3] == ["NAME", "STATE", "HEALTH"]
    assert len(rows) == slots + 1


@pytest.mark.parametrize("target", ["run", "test"])
def test_the_two_commands_are_targets_of_the_makefile(target: str):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert f"make {target}" in README


@pytest.mark.parametrize("word", ["MCP", "gateway", "fleet"])
def test_what_is_not_built_yet_is_said_to_come_later(word: str):
    later = README.split("## Not there yet")[1].split("\n## ")[0]
    assert word in later
