from __future__ import annotations

import pytest

from uphold.config.importing.inis import parse_supervisord, parse_systemd
from uphold.config.importing.reports import NotImportable, Source


def parsed(parse, text):
    sections = parse(Source(name="f", text=text))
    return {
        each.name: [(setting.at, setting.name, setting.value) for setting in each.settings]
        for each in sections
    }


def test_supervisord_comments_and_lines_that_go_on():
    text = (
        "; c\n[a]  ; c\nOne = 1 ; c\n# c\ntwo: x;y\n   more # c\n   ; c\n\n  still\n[b]\nthree=\n"
    )
    assert parsed(parse_supervisord, text) == {
        "a": [("f:3", "one", "1"), ("f:5", "two", "x;y\nmore\nstill")],
        "b": [("f:11", "three", "")],
    }


def test_systemd_comments_and_lines_that_go_on():
    text = "# c\n[A]\nOne = 1 ; no comment\nTwo=x \\\n# c\n  y \\\n  z\n\n[B]\nThree=\n"
    assert parsed(parse_systemd, text) == {
        "A": [("f:3", "One", "1 ; no comment"), ("f:4", "Two", "x  y  z")],
        "B": [("f:10", "Three", "")],
    }


def test_a_line_that_goes_on_at_the_end_of_the_file_counts():
    assert parsed(parse_systemd, "[A]\nOne=x \\")["A"] == [("f:2", "One", "x")]


@pytest.mark.parametrize("parse", [parse_supervisord, parse_systemd])
@pytest.mark.parametrize(
    ("text", "at", "words"),
    [("a=1\n", "f:1", "below a ["), ("[a]\nwhat\n", "f:2", "no `")],
)
def test_what_is_no_setting_is_named_with_its_line(parse, text, at, words):
    with pytest.raises(NotImportable) as found:
        parse(Source(name="f", text=text))
    assert found.value.at == at
    assert words in found.value.text
