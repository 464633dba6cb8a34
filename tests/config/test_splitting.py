"""Commands become words as a shell would split them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import example, given, strategies

from uphold.config.splitting import split
from uphold.config.variables import substitute

LETTERS = strategies.sampled_from("ab '\"\\\n\t\r$#\ue000ß")


@example('"a\\"b\\\\c\\d"')
@example("''")
@example("a''b \"\" c")
@example("\\")
@example('"\\')
@given(strategies.text(alphabet=LETTERS, max_size=30))
def test_words_are_those_of_the_standard_library(text):
    try:
        expected = tuple(shlex.split(text))
    except ValueError:
        with pytest.raises(ValueError, match="no "):
            split(text)
    else:
        assert split(text) == expected


@given(strategies.text(alphabet=LETTERS, max_size=10))
def test_what_a_variable_holds_stays_one_word(value):
    command = substitute("run ${V} 'x ${V}y'", {"V": value}, pytest.fail)
    assert command is not None
    assert split(command) == ("run", value, f"x {value}y")
