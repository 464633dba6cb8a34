from __future__ import annotations

import pytest
from hypothesis import given, strategies

from uphold.config.dotenv import parse_env


def test_the_ways_to_write_a_value():
    values, faults = parse_env(
        "# comment\n\nA=1\nexport B = two words # note\nC='single $X # kept' # note\r\n"
        'D="line\\none \\"q\\" \\$"\nE=\nF=a#b\nG=#x\n  H=${A}\nA=2\n'
    )
    assert faults == []
    assert values == {
        "A": "2", "B": "two words", "C": "single $X # kept", "D": 'line\none "q" $', "E": "",
        "F": "a#b", "G": "", "H": "${A}",
    }  # fmt: skip


@pytest.mark.accepts("E-17", "E-18")
def test_mistakes_have_their_line_and_never_show_a_value():
    values, faults = parse_env(
        'A=1\nhunter2\n1B=hunter2\nC=\'hunter2\nD="hunter2\\"\nE=hun\0ter2\n'
    )
    assert values == {"A": "1"}
    assert [line for line, _ in faults] == [2, 3, 4, 5, 6]
    assert not any("hun" in text for _, text in faults)


@given(strategies.text(max_size=80))
def test_no_text_makes_it_fail(text):
    values, faults = parse_env(text)
    assert len(values) + len(faults) <= text.count("\n") + 1
