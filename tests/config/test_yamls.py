from __future__ import annotations

import math

import pytest

from uphold.config.documents import Unparsable
from uphold.config.yamls import parse_yaml


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"), ("on", "on"), ("Yes", "Yes"), ("true", True), ("FALSE", False), ("~", None),
        ("", None), ("022", "022"), ("0o22", "0o22"), ("0x1F", "0x1F"), ("1_000", "1_000"),
        ("12:30", "12:30"), ("2020-01-01", "2020-01-01"), ("17", 17), ("-3", -3), ("0", 0),
        ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), (".inf", math.inf), ("'17'", "17"),
        ('"true"', "true"), ("!!str 17", "17"), ("9" * 100, "9" * 100), ("=", "="), ("30s", "30s"),
        ("|\n  a\n  b\n", "a\nb\n"),
    ],
)  # fmt: skip
def test_unquoted_words_mean_what_they_say(written, meant):
    assert parse_yaml(f"a: {written}\n").tables == {"a": meant}


def test_keys_are_always_text():
    assert parse_yaml("1: a\ntrue: b\nno: c\n").tables == {"1": "a", "true": "b", "no": "c"}


def test_aliases_and_merges_work_and_keep_their_lines():
    document = parse_yaml(
        "base: &base\n  team: x\n  keep: 1\nother: &other {keep: 2, more: 3}\n"
        "a:\n  <<: [*base, *other]\n  keep: 9\nb: *base\n"
    )
    assert document.tables["a"] == {"keep": 9, "team": "x", "more": 3}
    assert document.tables["b"] == {"team": "x", "keep": 1}
    assert document.line_of(("a", "keep")) == 7
    assert document.line_of(("a", "team")) == 2
    assert document.line_of(("a", "more")) == 4
    assert document.line_of(("b",)) == 8


def test_lines_of_every_part():
    document = parse_yaml("a:\n  - x\n  - y: 1\n    z: [1,\n      2]\n")
    assert document.line_of(("a",)) == 1
    assert document.line_of(("a", 1)) == 3
    assert document.line_of(("a", 1, "z", 1)) == 5
    assert document.line_of(("a", 1, "nothing")) == 3
    assert document.line_of(("nothing",)) == 1


def test_all_keys_given_twice_are_named():
    assert parse_yaml("a: 1\nb: 2\na: 3\nb: 4\n").faults == (
        (3, "the key 'a' is given twice."),
        (4, "the key 'b' is given twice."),
    )


@pytest.mark.accepts("S45")
def test_an_alias_bomb_is_refused():
    text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
    text += "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(Unparsable, match="aliases repeat"):
        parse_yaml(text)


@pytest.mark.accepts("S45")
def test_tags_run_nothing():
    document = parse_yaml("a: !!python/object/apply:os.system ['exit 1']\nb: !x {}\n")
    assert [line for line, _ in document.faults] == [1, 2]


def test_a_control_character_after_other_letters_has_the_right_line():
    with pytest.raises(Unparsable, match="control") as caught:
        parse_yaml("a: ééééééé\nb: \x01\n")
    assert caught.value.line == 2


def test_nothing_is_an_empty_table():
    assert parse_yaml("").tables == {}
    assert parse_yaml("# x\n").tables == {}
