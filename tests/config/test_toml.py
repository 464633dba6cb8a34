from __future__ import annotations

import pytest

from uphold.config.documents import Unparsable
from uphold.config.toml import parse_toml


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a = 1\nb =\n", 2, "not valid TOML"),
        ("a = 1\na = 2\nb = 3\n", 2, "twice"),
        ("[a]\n[b]\n[a]\n", 3, "twice"),
        ("a = {b = 1}\n[a]\n", 2, "twice"),
        ("a = 1\n\n\nb = '''\nx\n", 5, "not valid TOML"),
        ("x = 1\n" + "'a'." * 40 + "a = 1", 2, "parts"),
        ("a = " + "{a=" * 5000, 1, "deeply"),
    ],
)
def test_mistakes_have_their_line(text, line, words):
    with pytest.raises(Unparsable, match=words) as caught:
        parse_toml(text)
    assert caught.value.line == line


def test_lines_fall_back_to_what_holds_the_part():
    document = parse_toml("\n[a]\n\nb = 1\n")
    assert document.line_of(("a", "b")) == 4
    assert document.line_of(("a", "c", "d")) == 2
    assert document.line_of(("z",)) == 1
    assert document.line_of(()) == 1
