from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from uphold.core.specs import StopRule, WorkerSpec
from uphold.core.statuses import (
    ABORT_GRACE,
    ALIVE,
    RESTING,
    TRANSITIONS,
    Admin,
    Condition,
    Exit,
    Fault,
    Health,
    Identity,
    SlotStatus,
    State,
    SupervisorStatus,
)


def test_the_words_for_what_is_known_are_the_documented_ones():
    assert {*State} == {
        "stopped",
        "waiting",
        "starting",
        "running",
        "stopping",
        "backoff",
        "exited",
        "failed",
    }
    assert {*Health} == {"unknown", "healthy", "degraded", "unhealthy"}
    assert {*Admin} == {"enabled", "disabled", "paused", "quarantined"}
    assert {*Condition} == {"running", "stopped", "error"}
    assert {*SupervisorStatus} == {"spawning", "active", "paused", "failed", "terminated"}


@pytest.mark.accepts("E-01", "B-33", "B-21")
def test_every_state_stands_in_the_table():
    assert set(TRANSITIONS) == set(State)


@pytest.mark.accepts("B-33")
@pytest.mark.parametrize("state", State)
def test_every_state_can_be_left(state):
    assert TRANSITIONS[state]
    assert state not in TRANSITIONS[state]


@pytest.mark.accepts("B-33")
@pytest.mark.parametrize("state", State)
def test_every_state_can_be_reached_from_stopped_and_leads_back_to_it(state):
    assert state in _reachable(State.STOPPED)
    assert State.STOPPED in _reachable(state)


@pytest.mark.accepts("B-21")
def test_every_state_is_either_alive_or_resting():
    assert ALIVE | RESTING == set(State)
    assert not ALIVE & RESTING
    assert {State.STARTING, State.RUNNING, State.STOPPING} == ALIVE


@pytest.mark.accepts("P5", "P3")
def test_what_may_be_alive_is_never_started_again_before_it_is_known_to_be_gone():
    for state in ALIVE:
        assert State.STARTING not in TRANSITIONS[state]


@pytest.mark.accepts("B-82")
def test_a_slot_that_gave_up_or_ended_leaves_that_state_only_to_start_or_to_rest():
    for state in (State.FAILED, State.EXITED):
        assert TRANSITIONS[state] == {
            State.STARTING,
            State.STOPPED,
            State.STOPPING,
            State.WAITING,
            State.RUNNING,
        }


@pytest.mark.accepts("M-33", "M-34")
def test_what_is_known_is_a_value_that_nobody_can_change():
    identity = Identity(pid=1, start_ticks=2, boot_id="b", inode=3, nonce="n")
    status = SlotStatus(
        slot="web",
        identity=identity,
        exit=Exit(code=1, signal=None, at=0.0),
        error=Fault(code="UPH_X", message="no"),
    )
    hash(status)
    with pytest.raises(FrozenInstanceError):
        status.state = State.RUNNING  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        identity.pid = 2  # type: ignore[misc]


def test_a_slot_nobody_has_heard_of_is_stopped_and_was_never_started():
    status = SlotStatus(slot="web")
    assert status.state is State.STOPPED
    assert (status.generation, status.failures, status.restarts) == (0, 0, 0)
    assert status.identity is None
    assert status.error is None


@pytest.mark.parametrize(
    ("grace", "asked", "expected"),
    [(30.0, True, 30.0), (30.0, False, ABORT_GRACE), (5.0, False, 5.0)],
)
def test_an_abort_is_no_time_to_tidy_up_in(grace, asked, expected):
    terms = WorkerSpec(name="web", stop=StopRule(grace=grace))
    status = SlotStatus(slot="web", state=State.STOPPING, terms=terms, stop_asked=asked)
    assert status.grace == expected


def test_a_run_without_terms_has_no_grace():
    assert SlotStatus(slot="web", state=State.STOPPING, stop_asked=True).grace == 0.0


def _reachable(start: State) -> set[State]:
    found: set[State] = set()
    ahead = [start]
    while ahead:
        for state in TRANSITIONS[ahead.pop()]:
            if state not in found:
                found.add(state)
                ahead.append(state)
    return found
