"""Supervisors judged by their rows: who lives, who is silent, and whose clock is wrong."""

from __future__ import annotations

import pytest

from uphold.core.absorbing import Observed
from uphold.core.statuses import SlotStatus, State
from uphold.core.supervisors import (
    SupervisorHealth,
    SupervisorRow,
    age_at,
    interval_of,
    judge,
    metrics_of,
    moment_of,
)
from uphold.core.times import utc_text

NOW = 1_767_225_600.0


def row(status="active", ago=None, beat=None, **metrics):
    last = utc_text(NOW - ago) if ago is not None else beat
    return SupervisorRow(
        id="s-1", name="orion", status=status, last_heartbeat=last, metrics=metrics
    )


@pytest.mark.accepts("O-40", "E-33")
@pytest.mark.parametrize(
    ("found", "health"),
    [
        (None, "not_found"),
        (row("spawning"), "unknown"),
        (row("active"), "unknown"),
        (row("active", ago=0), "healthy"),
        (row("active", ago=89), "healthy"),
        (row("active", ago=90), "unresponsive"),
        (row("spawning", ago=1), "healthy"),
        (row("paused", ago=1), "paused"),
        (row("paused", ago=90), "unresponsive"),
        (row("failed", ago=1), "failed"),
        (row("failed", ago=9999), "failed"),
        (row("terminated", ago=9999), "terminated"),
    ],
)
def test_a_row_says_how_its_supervisor_does(found, health):
    assert judge(found, NOW).health == SupervisorHealth(health)


@pytest.mark.accepts("O-40", "E-33")
def test_how_many_beats_are_missed_goes_by_the_interval_in_the_row():
    assert judge(row(ago=10, heartbeat_every=5), NOW).missed == 2
    assert judge(row(ago=15, heartbeat_every=5.0), NOW).health is SupervisorHealth.UNRESPONSIVE
    assert judge(row(ago=150, heartbeat_every=60), NOW).health is SupervisorHealth.HEALTHY
    silent = judge(row(ago=100), NOW)
    assert (silent.missed, silent.age) == (3, 100.0)
    assert silent.why == "no heartbeat for 100 s, one is due every 30 s"


@pytest.mark.parametrize("told", [None, "30", True, 0, -1, float("nan"), float("inf"), [5]])
def test_an_interval_that_is_none_is_the_usual_one(told):
    assert interval_of({"heartbeat_every": told}) == 30.0


@pytest.mark.accepts("E-33")
def test_the_reason_of_a_failure_is_told():
    assert judge(row("failed", error="the socket is taken"), NOW).why == "the socket is taken"
    assert judge(row("failed"), NOW).why == "it ended by a mistake"


@pytest.mark.accepts("E-41", "B-76")
@pytest.mark.parametrize(
    ("ago", "age", "skewed"),
    [(5.0, 5.0, False), (0.0, 0.0, False), (-2.0, 0.0, False), (-2.001, 0.0, True)],
)
def test_an_age_is_never_below_zero_and_a_beat_from_the_future_is_flagged(ago, age, skewed):
    assert age_at(NOW - ago, NOW) == (age, skewed)
    found = judge(row(ago=ago), NOW)
    assert (found.age, found.skewed, found.health) == (age, skewed, SupervisorHealth.HEALTHY)
    assert ("compare the clocks" in found.why) == skewed


@pytest.mark.accepts("E-41", "B-77")
@pytest.mark.parametrize(
    "beat",
    [
        "2025-12-31T23:59:50Z",
        "2025-12-31 23:59:50.000",
        "2025-12-31 23:59:50",
        "2026-01-01 00:59:50+01:00",
        NOW - 10,
    ],
)
def test_a_beat_is_read_however_a_database_prints_it(beat):
    found = judge(row(beat=beat), NOW)
    assert (found.age, found.health) == (10.0, SupervisorHealth.HEALTHY)


@pytest.mark.parametrize("beat", ["", "soon", "0000-00-00 00:00:00", 0, float("nan"), True])
def test_a_beat_that_is_no_time_makes_nobody_dead(beat):
    assert moment_of(beat) is None
    assert judge(row(beat=beat), NOW).health is SupervisorHealth.UNKNOWN


def test_only_those_who_are_gone_may_be_succeeded():
    gone = {health for health in SupervisorHealth if judge_as(health).gone}
    assert {str(health) for health in gone} == {
        "failed",
        "terminated",
        "unresponsive",
        "not_found",
    }


def judge_as(health):
    rows = {
        "healthy": row(ago=1),
        "unknown": row(),
        "unresponsive": row(ago=1000),
        "not_found": None,
        "paused": row("paused", ago=1),
        "failed": row("failed"),
        "terminated": row("terminated"),
    }
    found = judge(rows[health], NOW)
    assert found.health == health
    return found


@pytest.mark.accepts("O-40")
def test_a_heartbeat_counts_the_workers_by_state_and_companions_do_not_count():
    slots = {
        slot: SlotStatus(slot=slot, state=state)
        for slot, state in (
            ("web", State.RUNNING),
            ("web.2", State.RUNNING),
            ("db", State.FAILED),
            ("@pump", State.RUNNING),
        )
    }
    observed = Observed().with_changes(slots.values(), ())
    assert metrics_of(observed, 5.0, 0.012345) == {
        "heartbeat_every": 5.0,
        "loop_lag": 0.0123,
        "workers": {"failed": 1, "running": 2},
    }
