"""Patterns that come late are patterns."""

from __future__ import annotations

import re

import pytest

from uphold.patterns import pattern


def test_it_does_what_the_pattern_does():
    late = pattern(r"(?P<word>[a-z]+)([0-9]*)", re.IGNORECASE)
    match = late.fullmatch("Ab12")
    assert match is not None
    assert (match["word"], match[2]) == ("Ab", "12")
    assert late.sub("-", "a1 b2") == "- -"
    assert [late.pattern, late.groups] == [r"(?P<word>[a-z]+)([0-9]*)", 2]
    assert late.findall("a1B2") == late.findall("a1B2") == [("a", "1"), ("B", "2")]


def test_it_is_made_when_it_is_used():
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")


def test_what_patterns_do_not_have_is_missing():
    with pytest.raises(AttributeError):
        pattern("x").nothing  # type: ignore[attr-defined]  # noqa: B018
