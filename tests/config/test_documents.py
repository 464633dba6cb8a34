from __future__ import annotations

import subprocess
import sys

import pytest

from uphold.config.documents import Unparsable, parse


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.toml", "a = 1"), ("a.yaml", "a: 1"), ("a.yml", "a: 1"), ("a.YML", "a: 1")],
)
def test_the_ending_chooses_the_language(name, text):
    assert parse(text, name).tables == {"a": 1}


@pytest.mark.parametrize("name", ["a", "a.json", "a.toml.bak"])
def test_other_endings_are_refused(name):
    with pytest.raises(Unparsable, match="must end in"):
        parse("", name)


def test_yaml_is_not_imported_for_toml():
    code = (
        "import sys; from uphold.config.documents import parse; parse('a = 1', 'a.toml');"
        "sys.exit('yaml' in sys.modules or 'msgspec' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
