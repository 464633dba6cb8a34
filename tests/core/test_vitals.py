from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.core.events import Moment
from uphold.core.notices import Beat
from uphold.core.specs import Heartbeat, Instant, Probe
from uphold.core.statuses import Finding, Health
from uphold.core.vitals import (
    Answer,
    Outcome,
    Pulse,
    Tally,
    judge_pulse,
    next_look,
    pause_before,
    worst,
)

PROBE = Probe(way="tcp", target="1", successes=2, failures=3)
PASS, MISS, NONE = (Answer(outcome) for outcome in Outcome)
RULE = Heartbeat(stale_after=10.0)
NOW = Instant(1000.0)


@pytest.mark.accepts("E-04", "B-17")
@pytest.mark.parametrize(
    ("answers", "passed", "failed"),
    [
        ((PASS,), False, False),
        ((PASS, PASS), True, False),
        ((PASS, MISS, PASS), False, False),
        ((MISS, MISS), False, False),
        ((MISS, MISS, MISS), False, True),
        ((MISS, MISS, PASS, MISS, MISS), False, False),
        ((NONE,), False, True),
        ((NONE, PASS), False, False),
    ],
)
def test_answers_are_counted_in_a_row_and_evidence_at_once(answers, passed, failed):
    tally = Tally()
    for answer in answers:
        tally = tally.after(answer)
    assert (tally.passed(PROBE), tally.failed(PROBE)) == (passed, failed)


def test_who_is_not_ready_yet_is_asked_sooner():
    pauses = [pause_before(PROBE, asked, ready=False) for asked in range(9)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert pause_before(PROBE, 0, ready=True) == 10.0
    assert pause_before(PROBE, 10**9, ready=False) == 1.0
    often = Probe(way="tcp", target="1", every=0.5)
    assert pause_before(often, 9, ready=False) == 0.5


def pulse(ago, **more):
    return Pulse(began=Instant(0.0)).after(Beat(**more), Instant(NOW - ago), 0.0)


@pytest.mark.parametrize(
    ("ago", "health", "code"),
    [
        (9.9, Health.HEALTHY, ""),
        (10.0, Health.HEALTHY, ""),
        (20.0, Health.DEGRADED, ""),
        (30.0, Health.UNHEALTHY, "UPH_WORKER_UNRESPONSIVE"),
    ],
)
def test_the_ladder_of_missing_beats(ago, health, code):
    found = judge_pulse(pulse(ago), RULE, NOW)
    assert (found.health, found.code) == (health, code)
    assert NOW < next_look(pulse(ago), RULE, NOW) <= NOW + 10.0


@pytest.mark.parametrize("ago", [10.0, 20.0, 3000.0])
def test_a_stale_file_only_degrades_unless_the_file_says_otherwise(ago):
    rule = Heartbeat(file="/b", stale_after=10.0)
    assert judge_pulse(pulse(ago), rule, NOW).health is Health.DEGRADED
    harsh = Heartbeat(file="/b", stale_after=10.0, on_stale="restart")
    assert bool(judge_pulse(pulse(ago), harsh, NOW).code) is (ago >= 30.0)


@pytest.mark.parametrize(
    ("told", "health"),
    [
        ({"status": "busy"}, Health.HEALTHY),
        ({"status": "degraded"}, Health.DEGRADED),
        ({"status": "stuck"}, Health.UNHEALTHY),
        ({"status": "ok", "error": "no disk"}, Health.UNHEALTHY),
    ],
)
def test_a_beat_tells_more_than_that_it_lives(told, health):
    assert judge_pulse(pulse(1.0, **told), RULE, NOW).health is health


def test_nothing_is_said_while_the_first_beat_may_still_come():
    begun = Pulse(began=Instant(NOW - 59.0))
    assert judge_pulse(begun, RULE, NOW) is None
    assert next_look(begun, RULE, NOW) == NOW + 1.0


def test_the_worst_finding_counts():
    well = Finding(health=Health.HEALTHY, why="a")
    sick = Finding(health=Health.DEGRADED, why="b")
    assert worst([well, sick, well]) == sick
    assert worst([]) is None


def reading(known, beat, mono):
    """Read a file in which this beat is found at a moment; the clocks agree."""
    return known.after_reading(beat, Moment(mono=Instant(mono), wall=mono))


@pytest.mark.accepts("P26")
def test_a_beat_in_a_file_takes_back_no_later_sign_of_life():
    asked_for_more = reading(Pulse(began=Instant(0.0)), Beat(at=10.0), 11.0).touched(
        Instant(300.0), 12.0
    )
    again = reading(asked_for_more, Beat(at=10.0), 20.0)
    newer = reading(again, Beat(at=25.0, progress=1.0), 30.0)
    assert (again.last, newer.last, newer.progress) == (300.0, 300.0, 1.0)
    assert reading(newer, Beat(at=310.0), 311.0).last == 310.0


def test_a_beat_of_an_earlier_run_says_nothing_whatever_else_was_heard_of_this_one():
    heard = Pulse(began=Instant(50.0)).touched(Instant(60.0), 60.0)
    assert reading(heard, Beat(at=40.0, error="no disk"), 70.0) == replace(heard, set_to=0.0)
