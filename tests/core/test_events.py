from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import get_args

import pytest

from uphold.core.events import Moment, Note, Recorded, SlotFact, StateChanged
from uphold.core.specs import Instant
from uphold.core.statuses import State

FACTS = get_args(SlotFact)


@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_about_a_slot_names_the_slot_and_has_a_public_name(fact):
    assert "slot" in {field.name for field in fields(fact)}
    assert fact.TYPE.startswith("worker.")


def test_no_two_facts_share_a_public_name():
    types = [fact.TYPE for fact in (*FACTS, StateChanged)]
    assert len(types) == len(set(types))


@pytest.mark.accepts("M-37", "M-40")
def test_the_names_that_other_programs_rely_on_are_there():
    types = {fact.TYPE for fact in (*FACTS, StateChanged)}
    assert types >= {
        "worker.starting",
        "worker.connected",
        "worker.disconnected",
        "worker.exited",
        "worker.adopted",
        "worker.stop_failed",
        "worker.failed",
        "worker.state_changed",
    }


@pytest.mark.accepts("E-05")
def test_whatever_a_process_can_be_late_with_carries_a_generation():
    without = {fact.__name__ for fact in FACTS if "generation" not in fact.__slots__}
    # These are our own decisions, taken about the slot as it is now.
    booked = {"WaitBegun", "GaveUp", "Rested", "Forgotten", "Pardoned", "Amended"}
    assert without == booked | {"Appointed", "Skipped"}


def test_two_notes_never_share_their_payload():
    one = Note(type="a", entity_type="worker", entity_id="web")
    other = Note(type="b", entity_type="worker", entity_id="web")
    assert one.payload == {}
    assert one.payload is not other.payload
    assert one.severity == "info"


def test_history_cannot_be_changed():
    change = StateChanged(slot="web", before=State.STOPPED, after=State.STARTING, why="declared")
    recorded = Recorded(seq=1, id="e1", at=0.0, event=change)
    for value, field in ((change, "after"), (recorded, "seq")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field, None)
    assert recorded.cause is None


def test_a_moment_is_one_reading_of_both_clocks():
    assert Moment(mono=Instant(5.0), wall=7.0) == Moment(mono=Instant(5.0), wall=7.0)
