from __future__ import annotations

import asyncio

import pytest

from uphold.testing.waiting import eventually, until


def test_what_becomes_true_is_given_back():
    answers = [None, 0, "seen"]
    assert until(lambda: answers.pop(0)) == "seen"
    answers = [None, 0, "seen"]
    assert asyncio.run(eventually(lambda: answers.pop(0))) == "seen"


def test_what_never_becomes_true_is_named():
    with pytest.raises(AssertionError, match="the end of the world did not become true"):
        until(lambda: False, within=0.02, what="the end of the world")
    with pytest.raises(AssertionError, match="peace did not become true"):
        asyncio.run(eventually(lambda: False, within=0.02, what="peace"))
