from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from uphold.core import orders
from uphold.core.orders import AboutWorkers, Order, Refusal, Wish, order_id

NEW_YEAR = 1_767_225_600.0


@pytest.mark.parametrize("wish", get_args(Wish))
def test_every_wish_has_the_verb_people_use_for_it(wish):
    assert re.fullmatch("[a-z]+(-[a-z]+)?", wish.VERB)


def test_only_pause_resume_and_restart_are_said_of_two_wishes():
    # pause and resume: of a worker or of the supervisor; restart: at once or after a rest.
    verbs = [wish.VERB for wish in get_args(Wish)]
    assert {verb for verb in verbs if verbs.count(verb) > 1} == {"pause", "resume", "restart"}


@pytest.mark.parametrize("wish", get_args(AboutWorkers))
def test_a_wish_about_workers_names_them(wish):
    more = {"signal": "HUP"} if wish is orders.SignalWorkers else {}
    assert wish(names=("web",), **more).names == ("web",)


def test_an_order_cannot_be_changed_after_it_was_given():
    order = Order(
        id="o", wish=orders.StopWorkers(names=("web",)), author="ann", origin="cli", at=0.0
    )
    with pytest.raises(FrozenInstanceError):
        order.author = "bob"  # type: ignore[misc]


def test_a_refusal_exits_with_not_permitted_unless_it_says_otherwise():
    assert Refusal(code="UPH_ORDER_REFUSED", message="no.").exit_code == 4


@pytest.mark.accepts("E-27")
def test_the_id_of_an_order_is_its_date_its_time_and_four_characters():
    assert order_id(NEW_YEAR, 0) == "job_20260101_000000_0000"
    assert order_id(NEW_YEAR + 3661.5, 36 * 2 + 10) == "job_20260101_010101_002a"


@pytest.mark.accepts("E-27")
def test_orders_of_the_same_second_are_told_apart():
    ids = {order_id(NEW_YEAR, number) for number in range(5000)}
    assert len(ids) == 5000
    assert all(re.fullmatch(r"job_\d{8}_\d{6}_[0-9a-z]{4}", text) for text in ids)
