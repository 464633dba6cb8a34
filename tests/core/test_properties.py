"""What holds in every life of a supervisor, however strange (see `stories`)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from core.stories import STORIES, is_alive, lived, plan_for, says_the_same_later, starts
from uphold.core import events
from uphold.core.absorbing import Illegal, Observed, absorb
from uphold.core.actions import Plan
from uphold.core.changes import begins_anew
from uphold.core.dependencies import unmet
from uphold.core.names import worker_of
from uphold.core.restarts import due
from uphold.core.statuses import SlotStatus, State
from uphold.testing.scenarios import Scenario

many = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@pytest.mark.accepts("P5", "P8", "P11", "B-14", "B-14b", "B-45", "M-33", "M-35")
@many
@given(STORIES)
def test_every_plan_keeps_the_rules(story):
    world = lived(story)
    versions = [before.declaration.version for before, _ in world.plans]
    assert versions == sorted(versions)
    for before, decided in world.plans:
        assert before.decides() == decided, "same inputs, same plan, however much later"
        _has_one_action_per_slot(decided)
        _is_the_sum_of_the_plans_for_each(before, decided)
        _starts_only_what_may_start(before, decided)
        _leaves_nobody_without_a_reason_or_a_time(before, decided)
        assert says_the_same_later(before, decided)


@pytest.mark.accepts("P5", "P3", "M-48")
@many
@given(STORIES)
def test_every_story_comes_to_rest_and_is_then_as_wished(story):
    world = lived(story)
    world.settles()
    assert not world.doubled, "never two processes in one slot"
    declaration, observed = world.scenario.declaration, world.scenario.observed
    if declaration.closing is not None:
        assert not world.processes
        return
    if declaration.paused:
        return
    for slot, status in observed.slots.items():
        entry = declaration.workers.get(worker_of(slot))
        assert entry is not None
        assert slot in entry.slots(), "what is not declared is forgotten"
        assert (slot in world.processes) == is_alive(status), "the books are true"
        if entry.wanted:
            _is_as_wished(status, world.scenario)
        else:
            assert status.state is State.STOPPED
    for entry in declaration.workers.values():
        for slot in entry.slots() if entry.wanted else ():
            assert slot in observed.slots, "what is wanted is known"


@pytest.mark.accepts("E-05", "E-01", "P11")
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
        assert not isinstance(after, Illegal), "nothing that can happen breaks the table"
        assert after.generation >= before.generation
        forgotten = [fact.slot] if isinstance(fact, events.Forgotten) else []
        observed = observed.with_changes([after], forgotten)
    assert observed == scenario.observed


def _has_one_action_per_slot(decided: Plan) -> None:
    slots = [action.slot for action in decided.actions]
    assert len(slots) == len(set(slots))


def _is_the_sum_of_the_plans_for_each(before: Scenario, decided: Plan) -> None:
    everybody = [*before.declaration.workers]
    everybody += [name for name in before.observed.by_worker if name not in everybody]
    singles = [plan_for(before, name) for name in everybody]
    assert decided.actions == tuple(action for each in singles for action in each.actions)
    assert decided.wakes == tuple(wake for each in singles for wake in each.wakes)


def _starts_only_what_may_start(before: Scenario, decided: Plan) -> None:
    declaration, observed = before.declaration, before.observed
    for action in starts(decided):
        entry = declaration.workers[worker_of(action.slot)]
        status = observed.slots.get(action.slot) or SlotStatus(slot=action.slot)
        assert not declaration.paused
        assert declaration.closing is None
        assert entry.wanted
        assert action.slot in entry.slots()
        assert unmet(entry, declaration, observed) is None
        assert not is_alive(status)
        if status.state is State.BACKOFF and due(status, entry.spec) > decided.at:
            # A restart is asked for until a start has seen it: the run may end in between.
            nudged = entry.override.nudge > status.started_seen
            asked = nudged or entry.override.kick > status.seen
            assert asked or begins_anew(status, entry.spec)


def _leaves_nobody_without_a_reason_or_a_time(before: Scenario, decided: Plan) -> None:
    assert all(at > decided.at for _, at in decided.wakes), "what is due is done, not awaited"
    if decided.actions or before.declaration.paused or before.declaration.closing:
        return
    waking = {name for name, _ in decided.wakes}
    for name, entry in before.declaration.workers.items():
        for slot in entry.slots() if entry.wanted else ():
            status = before.observed.slots[slot]
            if status.state is State.BACKOFF:
                assert name in waking
            elif not is_alive(status):
                _is_as_wished(status, before)


def _is_as_wished(status: SlotStatus, scenario: Scenario) -> None:
    entry = scenario.declaration.workers[worker_of(status.slot)]
    if status.state is State.WAITING:
        assert unmet(entry, scenario.declaration, scenario.observed) is not None
    else:
        assert status.state in (State.RUNNING, State.EXITED, State.FAILED)
