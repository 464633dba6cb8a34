"""Changed copies of frozen values."""

from dataclasses import FrozenInstanceError, replace

import pytest

from uphold.core.altering import alter
from uphold.core.statuses import SlotStatus, State

STATUS = SlotStatus(slot="web", generation=3, why="declared")


def test_gives_what_replace_would_give():
    altered = alter(STATUS, state=State.RUNNING, generation=4)
    assert altered == replace(STATUS, state=State.RUNNING, generation=4)


def test_the_first_value_stays_as_it_was():
    alter(STATUS, why="changed")
    assert STATUS.why == "declared"


def test_the_copy_is_frozen_as_well():
    with pytest.raises(FrozenInstanceError):
        alter(STATUS, why="x").why = "y"  # type: ignore[misc]


def test_an_unknown_field_is_refused():
    with pytest.raises(KeyError, match="colour"):
        alter(STATUS, colour="red")
