"""What holds in every life of a supervisor, however strange (see `stories`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from core.stories import STORIES, copy_of, is_alive, lived, plan_for, starts
from uphold.core import events
from uphold.core.absorbing import Illegal, Observed, absorb
from uphold.core.changes import begins_anew
from uphold.core.dependencies import unmet
from uphold.core.names import worker_of
from uphold.core.restarts import due
from uphold.core.statuses import SlotStatus, State
from uphold.testing.scenarios import Scenario

many = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@pytest.mark.accepts("P5", "P11")
@many
@given(STORIES)
def test_no_plan_ever_does_what_no_plan_may_do(story):
    for before, decided in lived(story).plans:
        slots = [action.slot for action in decided.actions]
        assert len(slots) == len(set(slots)), "one action per slot"
        assert before.decides() == decided, "same inputs, same plan"
        everybody = [*before.declaration.workers]
        everybody += [name for name in before.observed.by_worker if name not in everybody]
        singles = [plan_for(before, name) for name in everybody]
        assert decided.actions == tuple(a for each in singles for a in each.actions)
        assert decided.wakes == tuple(wake for each in singles for wake in each.wakes)
        assert all(at > decided.at for _, at in decided.wakes), "what is due is done, not awaited"


@pytest.mark.accepts("P5", "P8", "B-14", "B-14b", "B-45")
@many
@given(STORIES)
def test_nothing_is_started_that_may_not_start(story):
    world = lived(story)
    for before, decided in world.plans:
        declaration, observed = before.declaration, before.observed
        for action in starts(decided):
            entry = declaration.workers[worker_of(action.slot)]
            status = observed.slots.get(action.slot) or SlotStatus(slot=action.slot)
            assert entry.wanted
            assert action.slot in entry.slots()
            assert declaration.closing is None
            assert not declaration.paused
            assert unmet(entry, declaration, observed) is None
            assert not is_alive(status)
            if status.state is State.BACKOFF and due(status, entry.spec) > decided.at:
                asked = max(entry.override.kick, entry.override.nudge) > status.seen
                assert asked or begins_anew(status, entry.spec)


@pytest.mark.accepts("P5")
@many
@given(STORIES)
def test_no_slot_ever_has_two_processes(story):
    """The world knows better than the books: a start into a living slot would show here."""
    world = lived(story)
    assert not world.doubled
    for slot in world.processes:
        assert is_alive(world.scenario.observed.slots.get(slot))


@pytest.mark.accepts("M-48", "P5", "P3")
@many
@given(STORIES)
def test_every_story_comes_to_rest_and_is_then_as_wished(story):
    world = lived(story)
    world.settles()
    declaration, observed = world.scenario.declaration, world.scenario.observed
    if declaration.closing == "stop":
        assert not world.processes
    if declaration.paused or declaration.closing is not None:
        return
    for slot, status in observed.slots.items():
        entry = declaration.workers.get(worker_of(slot))
        assert entry is not None
        assert slot in entry.slots(), "what is not declared is forgotten"
        if entry.wanted:
            _is_settled(status, world.scenario)
        else:
            assert status.state is State.STOPPED
            assert slot not in world.processes
    for entry in declaration.workers.values():
        for slot in entry.slots() if entry.wanted else ():
            assert slot in observed.slots, "what is wanted is known"


@pytest.mark.accepts("P8", "P11")
@many
@given(STORIES)
def test_whenever_nothing_is_decided_every_wanted_slot_is_as_wished_or_has_a_time(story):
    for before, decided in lived(story).plans:
        if decided.actions or before.declaration.paused or before.declaration.closing:
            continue
        waking = {name for name, _ in decided.wakes}
        for name, entry in before.declaration.workers.items():
            for slot in entry.slots() if entry.wanted else ():
                status = before.observed.slots[slot]
                if status.state is State.BACKOFF:
                    assert name in waking
                elif not is_alive(status):
                    _is_settled(status, before)


@pytest.mark.accepts("E-05", "P11", "E-01")
@many
@given(STORIES)
def test_replaying_the_facts_gives_the_same_picture_and_no_generation_falls(story):
    scenario = lived(story).scenario
    observed = Observed()
    for fact, at, version in scenario.history:
        before = observed.slots.get(fact.slot)
        if before is None:
            before = SlotStatus(slot=fact.slot, since=at.mono, since_wall=at.wall)
        after = absorb(before, fact, at, version)
        assert not isinstance(after, Illegal)
        assert after.generation >= before.generation
        forgotten = [fact.slot] if isinstance(fact, events.Forgotten) else []
        observed = observed.with_changes([after], forgotten)
    assert observed == scenario.observed


@pytest.mark.accepts("M-33", "M-35")
@many
@given(STORIES)
def test_versions_only_rise_and_what_was_read_before_never_changes(story):
    versions = []
    for before, decided in lived(story).plans:
        versions.append(before.declaration.version)
        assert copy_of(before).decides() == decided
    assert versions == sorted(versions)


def _is_settled(status: SlotStatus, scenario: Scenario) -> None:
    entry = scenario.declaration.workers[worker_of(status.slot)]
    if status.state is State.WAITING:
        assert unmet(entry, scenario.declaration, scenario.observed) is not None
    else:
        assert status.state in (State.RUNNING, State.EXITED, State.FAILED)
