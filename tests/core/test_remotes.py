"""Remote workers: which heartbeats are believed, and what silence means."""

from __future__ import annotations

import pytest

from uphold.core.events import Moment
from uphold.core.notices import Beat, Refused
from uphold.core.remotes import RemoteStatus, absorb_beat, count_refused, judge, view
from uphold.core.specs import NEVER, Heartbeat, Instant
from uphold.core.statuses import Health

RULE = Heartbeat(stale_after=10.0)
FRESH = RemoteStatus(since=Instant(100.0))


def moment(mono):
    return Moment(mono=Instant(mono), wall=1_000_000.0 + mono)


def heard(*beats, status=FRESH, at=100.0):
    """Take in heartbeats, one a second."""
    for number, beat in enumerate(beats):
        taken = absorb_beat(status, beat, moment(at + number))
        assert isinstance(taken, RemoteStatus), taken
        status = taken
    return status


def numbered(*numbers):
    return [Beat(seq=number) for number in numbers]


def verdict(status, now, rule=RULE):
    found = judge(status, rule, Instant(now))
    return found.health, found.missed


@pytest.mark.accepts("O-40")
def test_the_ladder_from_unknown_to_healthy_to_unresponsive():
    assert verdict(FRESH, 100) == (Health.UNKNOWN, 0)
    status = heard(Beat(), at=105.0)
    assert verdict(status, 105) == (Health.HEALTHY, 0)
    assert verdict(status, 114.9) == (Health.HEALTHY, 0)
    assert verdict(status, 115) == (Health.HEALTHY, 1)
    assert verdict(status, 125) == (Health.DEGRADED, 2)
    assert verdict(status, 135) == (Health.UNHEALTHY, 3)
    assert "unresponsive, no heartbeat" in judge(status, RULE, Instant(135)).why
    assert verdict(heard(Beat(), status=status, at=136.0), 136) == (Health.HEALTHY, 0)


def test_who_was_never_heard_is_unresponsive_in_the_end():
    assert verdict(FRESH, 129) == (Health.UNKNOWN, 2)
    last = judge(FRESH, RULE, Instant(130))
    assert last.health is Health.UNHEALTHY
    assert "not one heartbeat" in last.why
    assert last.again_at == NEVER


def test_every_rung_says_when_the_next_one_is_due():
    status = heard(Beat())
    assert judge(FRESH, RULE, Instant(101)).again_at == 110
    assert judge(status, RULE, Instant(104)).again_at == 110
    assert judge(status, RULE, Instant(110)).again_at == 120
    assert judge(status, RULE, Instant(121)).again_at == 130
    assert judge(status, RULE, Instant(130)).again_at == NEVER


def test_the_reason_changes_only_with_the_verdict():
    status = heard(Beat())
    assert judge(status, RULE, Instant(100)).why == judge(status, RULE, Instant(109)).why
    assert judge(status, RULE, Instant(131)).why == judge(status, RULE, Instant(900)).why


def test_missing_numbers_are_a_gap_and_counted():
    status = heard(*numbered(5, 6, 9, 10, 20))
    assert (status.gaps, status.lost, status.beats, status.seq) == (2, 11, 5, 20)


@pytest.mark.parametrize(("number", "reason"), [(7, "repeated"), (6, "old"), (2, "old")])
def test_an_old_or_repeated_number_is_refused_and_counted(number, reason):
    status = heard(*numbered(6, 7))
    refused = absorb_beat(status, Beat(seq=number), moment(110))
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert str(number) in refused.text
    counted = count_refused(count_refused(status, reason), reason)
    assert counted.refused == ((reason, 2),)
    assert judge(counted, RULE, Instant(110)) == judge(status, RULE, Instant(110))


@pytest.mark.parametrize("first", [0, 1])
def test_who_begins_to_count_anew_has_been_started_again(first):
    status = heard(*numbered(41, 42, first, first + 1))
    assert (status.seq, status.gaps, status.begun) == (first + 1, 0, 1)
    assert isinstance(absorb_beat(status, Beat(seq=first + 1), moment(110)), Refused)


def test_heartbeats_without_numbers_are_believed_in_their_order():
    status = heard(Beat(), Beat(seq=3), Beat(), Beat(seq=4))
    assert (status.seq, status.gaps, status.beats) == (4, 0, 4)


def test_what_was_made_before_the_last_one_is_no_news():
    status = heard(Beat())
    old = absorb_beat(status, Beat(), moment(105), age=6.0)
    assert isinstance(old, Refused)
    taken = absorb_beat(status, Beat(), moment(105), age=4.0)
    assert isinstance(taken, RemoteStatus)
    assert (taken.heard, taken.heard_wall) == (101.0, 1_000_101.0)
    ahead = absorb_beat(status, Beat(), moment(105), age=-4.0)
    assert isinstance(ahead, RemoteStatus)
    assert ahead.heard == 105.0


@pytest.mark.parametrize(
    ("beat", "health", "word"),
    [
        (Beat(status="busy"), Health.HEALTHY, "beating"),
        (Beat(status="degraded"), Health.DEGRADED, "'degraded'"),
        (Beat(status="broken"), Health.UNHEALTHY, "'broken'"),
        (Beat(error="disk full"), Health.UNHEALTHY, "disk full"),
    ],
)
def test_what_it_says_of_itself_counts_while_it_is_heard(beat, health, word):
    found = judge(heard(beat), RULE, Instant(105))
    assert found.health is health
    assert word in found.why


def test_silence_makes_nobody_better():
    status = heard(Beat(error="disk full"))
    assert verdict(status, 121) == (Health.UNHEALTHY, 2)
    assert "disk full" in judge(status, RULE, Instant(121)).why


def test_a_worker_that_beats_and_stands_still_is_degraded():
    at_work = Beat(progress=7.0)
    status = heard(*[at_work] * 10)
    assert verdict(status, 109) == (Health.HEALTHY, 0)
    status = heard(at_work, status=status, at=110.0)
    assert verdict(status, 110) == (Health.DEGRADED, 0)
    assert "stands still at 7" in judge(status, RULE, Instant(110)).why
    assert verdict(heard(Beat(progress=8.0), status=status, at=111.0), 111)[0] is Health.HEALTHY
    idle = Beat(progress=7.0, status="idle")
    assert verdict(heard(idle, status=status, at=111.0), 111)[0] is Health.HEALTHY
    assert verdict(heard(Beat(), status=status, at=111.0), 111)[0] is Health.HEALTHY
    patient = Heartbeat(stale_after=10.0, stall_after=60.0)
    assert verdict(status, 110, patient)[0] is Health.HEALTHY


def test_who_is_silent_is_not_said_to_stand_still():
    status = heard(Beat(progress=7.0))
    assert verdict(status, 115) == (Health.HEALTHY, 1)


def test_what_is_shown():
    assert view(FRESH)["at"] is None
    assert view(FRESH)["status"] is None
    shown = view(count_refused(heard(Beat(seq=3, summary="at it"), Beat(seq=5)), "old"))
    assert (shown["seq"], shown["gaps"], shown["lost"]) == (5, 1, 1)
    assert shown["refused"] == {"old": 1}
    assert shown["at"] == 1_000_101.0
