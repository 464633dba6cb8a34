from __future__ import annotations

import pytest

from uphold.core.names import (
    NAME_RULE,
    is_companion,
    is_label,
    is_worker_name,
    nearest,
    slot_index,
    slot_name,
    worker_of,
)


@pytest.mark.parametrize("name", ["web", "Web2", "9lives", "a", "a-b_c", "x" * 64])
def test_these_may_be_names_of_workers(name):
    assert is_worker_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "-web", "_web", "web.2", "@pump", "a b", "x" * 65, "web\n", "web/..", "größe", "a\x00"],
)
def test_these_may_not(name):
    assert not is_worker_name(name)


def test_the_rule_in_words_tells_what_is_allowed():
    for word in ("letters", "digits", "hyphen", "underscore", "64"):
        assert word in NAME_RULE


@pytest.mark.accepts("C-121", "C-122", "C-T11")
@pytest.mark.parametrize("label", ["nightly", "fix 42", "A-b_C 9", " ", "x" * 100])
def test_a_label_of_letters_digits_spaces_hyphens_and_underscores_is_valid(label):
    assert is_label(label)


@pytest.mark.accepts("C-121", "C-T12")
def test_a_label_of_101_characters_is_too_long_and_an_empty_one_is_none():
    assert not is_label("x" * 101)
    assert not is_label("")


@pytest.mark.accepts("B-73", "C-122", "C-T13")
@pytest.mark.parametrize(
    "label",
    ["a\n", "\na", "a\nb", "a\tb", "a\rb", "a\x0bb", "a\u00a0b", "a.b", "a/b", "ä", "a\x1b[31m"],
)
def test_no_label_can_forge_a_line_of_a_log(label):
    assert not is_label(label)


def test_the_first_slot_carries_the_name_of_its_worker_and_the_others_a_number():
    assert [slot_name("web", index) for index in (1, 2, 3)] == ["web", "web.2", "web.3"]


@pytest.mark.parametrize("worker", ["web", "a-b", "@pump"])
@pytest.mark.parametrize("index", [1, 2, 10, 1000])
def test_a_slot_tells_its_worker_and_its_number(worker, index):
    slot = slot_name(worker, index)
    assert worker_of(slot) == worker
    assert slot_index(slot) == index


def test_companions_are_told_by_their_first_character():
    assert is_companion("@pump")
    assert not is_companion("pump")


def test_a_misspelt_name_finds_the_one_that_was_meant():
    known = ["indexer", "web", "worker"]
    assert nearest("wbe", known) == "web"
    assert nearest("INDEXR", known) == "indexer"


def test_a_name_like_no_other_finds_nothing():
    assert nearest("zzz", ["indexer", "web"]) is None
    assert nearest("web", []) is None


def test_of_two_equally_near_names_the_first_in_the_alphabet_is_given_whatever_the_order():
    assert nearest("web3", ["web2", "web1"]) == nearest("web3", ["web1", "web2"]) == "web1"
