from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from uphold.core.actions import Action, Plan, Stop
from uphold.core.specs import NEVER, Instant


@pytest.mark.accepts("M-23")
@pytest.mark.parametrize("action", get_args(Action))
def test_every_action_names_one_slot_and_the_reason(action):
    assert {"slot", "why"} <= set(action.__slots__)


@pytest.mark.accepts("M-23")
def test_a_plan_says_when_it_was_made():
    assert Plan(at=Instant(5.0)).at == 5.0


def test_a_plan_that_waits_for_nothing_never_wakes():
    assert Plan(at=Instant(0.0)).wake_at == NEVER


def test_a_plan_wakes_for_the_first_of_those_that_wait():
    waiting = (("web", Instant(9.0)), ("db", Instant(4.0)), ("cron", Instant(7.0)))
    assert Plan(at=Instant(0.0), wakes=waiting).wake_at == 4.0


def test_a_plan_cannot_be_changed_after_it_was_made():
    plan = Plan(at=Instant(0.0), actions=(Stop(slot="web", why="not wanted"),))
    with pytest.raises(FrozenInstanceError):
        plan.actions = ()  # type: ignore[misc]
