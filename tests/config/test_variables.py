from __future__ import annotations

import pytest
from hypothesis import given, strategies

from uphold.config.variables import Substituted, substitute

LOOKUP = {"A": "one", "EMPTY": "", "RAW": "${A} $$", "BAD": "\udcff"}


def run(text):
    wrong = []
    return substitute(text, LOOKUP, wrong.append), wrong


@pytest.mark.accepts("E-17")
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("${A}", "one"), ("x${A}y${A}", "xoneyone"), ("${NO:d e:f}", "d e:f"), ("${NO:}", ""),
        ("${EMPTY:x}", ""), ("${RAW}", "${A} $$"), ("$$", "$"), ("$${A}", "${A}"), ("$A $ $1", "$A $ $1"),
        ("${NO:$$5}", "$5"), ("$$$${A}", "$${A}"), ("$$${A}", "$one"),
    ],
)  # fmt: skip
def test_variables_are_replaced_once(text, result):
    assert run(text) == (result, [])


@pytest.mark.accepts("E-17")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${NO}", ["NO is not set"]), ("${NO} ${NADA}", ["NO", "NADA"]), ("${", ["'${'"]),
        ("${1}", ["'${'"]), ("${}", ["'${'"]), ("${A", ["'${'"]), ("${A:${NO}}", ["'${'", "NO"]),
        ("${A-b}", ["'${'"]), ("${BAD}", ["UTF-8"]),
    ],
)  # fmt: skip
def test_every_mistake_is_named(text, words):
    result, wrong = run(text)
    assert result is None
    assert len(wrong) == len(words)
    for sentence, word in zip(wrong, words, strict=True):
        assert word in sentence


def test_the_pieces_are_remembered():
    result, _ = run("a${A}b$$")
    assert isinstance(result, Substituted)
    assert result.written == "a${A}b$$"
    assert "".join(text for _, text in result.pieces) == result
    assert ("A", "one") in result.pieces
    assert not isinstance(run("$$")[0], Substituted)


@given(strategies.text(alphabet="${}:A x", max_size=40))
def test_no_text_makes_it_fail(text):
    result, wrong = run(text)
    assert (result is None) == bool(wrong)
