from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uphold.config.importing.wording import (
    cleaned,
    has_variables,
    needs_shell,
    seconds,
    variable,
    whole,
    written,
    written_all,
)
from uphold.config.splitting import split
from uphold.config.variables import substitute

PIECES = st.lists(st.sampled_from(["$", "{", "}", "a", "HOME", " ", "${X}", "$$", ":", "'"]))


def read_back(text, lookup=None):
    faults = []
    found = substitute(text, lookup or {}, faults.append)
    assert faults == []
    return found


@given(PIECES.map("".join))
def test_whatever_stands_in_a_text_comes_out_as_it_was(text):
    assert read_back(written(text)) == text


@given(PIECES.map("".join), PIECES.map("".join))
def test_a_variable_between_texts_is_put_in_and_nothing_else(before, after):
    text = f"{before}{variable('NAME')}{after}"
    assert has_variables(text)
    assert read_back(written(text), {"NAME": "${v}"}) == f"{before}${{v}}{after}"


@pytest.mark.parametrize("default", ["", "d", "a:b", "$x", "$$", "with space"])
def test_a_default_is_kept(default):
    assert read_back(written(variable("NAME", default))) == default


def test_what_cannot_be_written_as_a_variable_is_none():
    assert variable("a-b") is None
    assert variable("A", "{}") is None


def test_marks_in_the_source_are_taken_out():
    assert cleaned("a\ue000b\ue001c\ue002") == "abc"
    assert written("\ue000HOME") == "HOME"


def test_every_text_in_a_value_is_written():
    assert written_all({"a": ["${x}", 1, True], "b": {"c": "$$"}}) == {
        "a": ["$${x}", 1, True],
        "b": {"c": "$$$"},
    }


@pytest.mark.parametrize(
    "command", ["a | b", "a > b", "X=1 run", "echo $X", "a; b", "a\nb", "'a b'"]
)
def test_what_only_a_shell_understands_needs_one(command):
    assert needs_shell(command)


@given(st.text("abcXYZ019_./:=@%+,- ", min_size=1).filter(str.strip))
def test_what_needs_no_shell_is_split_at_its_blanks(command):
    if not needs_shell(command):
        assert split(command) == tuple(command.split())


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0s"), (90, "90s"), (0.5, "500ms"), (1.5, "1500ms")]
)
def test_durations_are_written_as_people_do(amount, text):
    assert seconds(amount) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("-5", -5), ("", None), ("²", None), ("1.5", None), ("0" * 5000, None)],
    ids=range(6),
)
def test_a_whole_number_is_plain_digits_and_not_endless(text, number):
    assert whole(text) == number
