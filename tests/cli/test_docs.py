"""What the manual says about the command line is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from uphold import errors
from uphold.cli.completing import options_of
from uphold.cli.verbs import VERBS

ROOT = Path(__file__).parents[2]
MANUAL = (ROOT / "docs" / "cli.md").read_text()
CODE = re.compile(r"UPH_[A-Z]+(?:_[A-Z]+)*\b(?!_)")


def codes_in_use() -> set[str]:
    sources = (ROOT / "src" / "uphold").rglob("*.py")
    shipped = (path for path in sources if "testing" not in path.parts)
    return {code for path in shipped for code in CODE.findall(path.read_text())}


@pytest.mark.accepts("E-23")
def test_every_error_code_has_an_entry_with_its_remedy():
    entries = re.findall(
        r"^### (UPH_\S+)\n(.+?)(?=^#|\Z)",
        (ROOT / "docs/errors.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    described = {code: text for code, text in entries if len(text.split()) > 8}
    assert codes_in_use() - set(described) == set()
    assert set(described) - codes_in_use() == set()


@pytest.mark.accepts("E-20")
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_described_with_its_options(verb):
    assert re.search(rf"^### {verb}\n", MANUAL, re.MULTILINE)
    missing = [
        option
        for option, _ in options_of(verb)
        if f"`{option}" not in MANUAL and f" {option}" not in MANUAL
    ]
    assert missing == ["--help"]


@pytest.mark.accepts("E-25")
def test_every_exit_code_is_described():
    codes = {value for name, value in vars(errors).items() if name.startswith(("EXIT_", "STATUS_"))}
    assert codes
    for code in codes:
        assert re.search(rf"^\| {code} \|", MANUAL, re.MULTILINE), code
