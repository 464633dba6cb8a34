"""The table of handlers itself."""

from __future__ import annotations

from uphold.inbox.handlers import HANDLERS, find_handler, split_action


def test_no_two_handlers_share_a_name_or_a_number():
    names = [name for each in HANDLERS for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))
    numbers = [each.number for each in HANDLERS]
    assert numbers == sorted(set(numbers))


def test_the_order_of_the_table_is_the_order_of_work():
    assert list(HANDLERS) == sorted(HANDLERS, key=lambda each: (each.urgency, each.number))


def test_an_action_is_found_only_as_a_whole_word():
    assert split_action("pauses_web") is None
    row = find_handler("update_code_deps")
    assert split_action("update_code_deps") == (row, "")
    assert split_action("update_code_deps_a_b") == (row, "a_b")
    assert split_action("") is None
