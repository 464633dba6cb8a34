"""The table of handlers itself."""

from __future__ import annotations

from uphold.inbox.handlers import HANDLERS, split_action


def test_no_two_handlers_share_a_name_or_a_number():
    names = [name for each in HANDLERS for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))
    numbers = [each.number for each in HANDLERS]
    assert numbers == sorted(set(numbers))


def test_the_order_of_the_table_is_the_order_of_work():
    assert list(HANDLERS) == sorted(HANDLERS, key=lambda each: (each.urgency, each.number))


def test_an_action_is_found_only_as_a_whole_word():
    assert split_action("pauses_web") is None
    assert split_action("update_code_deps") == ("update_code_deps", "")
    assert split_action("update_code_deps_a_b") == ("update_code_deps", "a_b")
    assert split_action("") is None


def test_actions_that_are_not_in_the_table_count_if_they_are_named():
    assert split_action("drain_web") is None
    assert split_action("drain_web", HANDLERS, ("drain", "")) == ("drain", "web")
    assert split_action("pause_all_web", HANDLERS, ("pause_all",)) == ("pause_all", "web")
    assert split_action("update_code_web", HANDLERS, ("update",)) == ("update_code", "web")
