from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.overrides import (
    PLAIN,
    Author,
    Override,
    after_absence,
    author_of,
    file_says,
    order_behind,
    reason,
    signed,
    still_in_force,
)
from uphold.core.specs import WorkerSpec
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))
EVERYTHING = Override(
    up=False, enabled=False, quarantined=True, replicas=3, held=True, nudge=4, by="ann"
)
EDITS = {
    "up": replace(web, autostart=False),
    "enabled": replace(web, enabled=False),
    "quarantined": replace(web, quarantined=True),
    "replicas": replace(web, replicas=2),
}


@pytest.mark.parametrize("key", EDITS)
def test_a_changed_key_of_the_file_ends_what_was_ordered_for_it_and_nothing_else(key):
    after = still_in_force(EVERYTHING, file_says(web), file_says(EDITS[key]))
    assert after == replace(EVERYTHING, **{key: None})


def test_other_edits_end_nothing():
    edited = replace(web, command=("other",), stable_after=5.0)
    assert still_in_force(EVERYTHING, file_says(web), file_says(edited)) == EVERYTHING


@pytest.mark.parametrize("key", EDITS)
def test_an_edit_made_while_nobody_ran_counts_like_any_other(key):
    given = replace(EVERYTHING, said=file_says(web))
    after = after_absence(given, EDITS[key])
    assert after == replace(given, said=file_says(EDITS[key]), **{key: None})
    assert after_absence(after, EDITS[key]) == after, "and it counts once"


def test_without_an_edit_everything_holds():
    given = replace(EVERYTHING, said=file_says(web))
    assert after_absence(given, web) == given


@pytest.mark.parametrize("key", EDITS)
def test_books_older_than_the_comparison_hold_everything_and_are_compared_from_then_on(key):
    first = after_absence(EVERYTHING, EDITS[key])
    assert first == replace(EVERYTHING, said=file_says(EDITS[key]))
    assert getattr(after_absence(first, web), key) is None


def test_nothing_ordered_stays_nothing_to_remember():
    assert after_absence(PLAIN, web) == PLAIN


@pytest.mark.parametrize(
    "wish", [orders.StopWorkers(names=("web",)), orders.ScaleWorker(name="web", replicas=2)]
)
def test_an_order_remembers_what_the_file_said(wish):
    scenario = Scenario(web).orders(wish)
    assert scenario.declaration.workers["web"].override.said == file_says(web)


def test_a_signal_is_no_override():
    scenario = Scenario(web).orders(orders.SignalWorkers(names=("web",), signal="HUP"))
    assert scenario.declaration.workers["web"].override == PLAIN


ANN, BOB = Author(by="ann: noise", order="job_1"), Author(by="bob", order="job_2")


def test_each_order_is_somebodys():
    given = signed(signed(PLAIN, ("up", "kick"), ANN), ("kick",), BOB)
    assert (author_of(given, "up"), author_of(given, "kick")) == (ANN, BOB)
    assert author_of(given, "held") == Author(), "nobody is made up"
    assert (reason(given, "up"), reason(given, "held")) == ("stopped by ann: noise", "paused")


def test_books_that_know_one_author_alone_mean_that_one():
    older = Override(held=True, by="ann", order="job_1")
    assert author_of(older, "held") == Author(by="ann", order="job_1")
    reset = replace(signed(older, ("pardon",), BOB), by=BOB.by, order=BOB.order)
    assert author_of(reset, "held") == Author(), "it may have been anybody before bob"


def test_what_an_update_does_makes_nobody_forget_who_paused_a_worker_before_it():
    """To let it go again is signed, and is nobody's wish: the last order is still ann's."""
    older = Override(held=True, by="ann", order="job_1")
    assert author_of(signed(older, ("kick",), BOB), "held") == Author(by="ann", order="job_1")


@pytest.mark.parametrize(
    ("why", "order"),
    [
        ("stopped by ann: noise", "job_1"),
        ("start ordered by bob", "job_2"),
        ("stopped by ann", None),
        ("paused by ann: noise", None),
        ("restart after it ended by signal 9", None),
        ("start ordered by bobby", None),
        ("paused", None),
        ("declared", None),
    ],
)
def test_a_reason_leads_back_to_its_order(why, order):
    assert order_behind(signed(signed(PLAIN, ("up",), ANN), ("kick",), BOB), why) == order
    assert order_behind(PLAIN, why) is None


def test_what_no_order_is_behind_is_seen_at_a_glance():
    """It is asked of every action, and so of a thousand starts at once."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    ordered = signed(PLAIN, ("up",), ANN)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        order_behind(ordered, "declared")
    finally:
        sys.setprofile(before)
    assert calls == 1
