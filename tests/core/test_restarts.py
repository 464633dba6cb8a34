from __future__ import annotations

from dataclasses import replace

import pytest

from core.steps import start, start_again
from uphold.core import orders
from uphold.core.actions import GiveUp, Start
from uphold.core.events import Exited
from uphold.core.restarts import (
    comes_back,
    delay_after,
    due,
    ended_well,
    exhausted,
    failures_after,
    still_comes_back,
    succeeded,
    tries_again,
)
from uphold.core.specs import Backoff, Instant, RestartPolicy, WorkerSpec
from uphold.core.statuses import Due, Exit, Finding, Health, Identity, SlotStatus, State
from uphold.testing.scenarios import Scenario
from uphold.wire.codecs import decode, encode

web = WorkerSpec(name="web", command=("serve",))
plain = replace(web, backoff=Backoff(jitter=0.0))
WELL = Exit(code=0, signal=None, at=0.0)
BADLY = Exit(code=1, signal=None, at=0.0)
KILLED = Exit(code=None, signal=9, at=0.0)
UNSEEN = Exit(code=None, signal=None, at=0.0)
SOMEBODY = Identity(pid=7, start_ticks=1, boot_id="b", inode=0, nonce="n")


@pytest.mark.parametrize(("end", "well"), [(WELL, True), (BADLY, False), (KILLED, False)])
def test_a_run_ends_well_with_a_code_that_counts_as_success(end, well):
    assert succeeded(end, web) is well


def test_which_codes_count_as_success_is_for_the_file_to_say():
    odd = replace(web, success_exit_codes=(3, 1))
    assert succeeded(BADLY, odd)
    assert not succeeded(WELL, odd)


def test_an_end_that_nobody_saw_is_a_failure():
    assert not succeeded(UNSEEN, web)


@pytest.mark.parametrize(
    ("policy", "returning"),
    [
        (RestartPolicy.NO, []),
        (RestartPolicy.ON_FAILURE, [BADLY, KILLED, UNSEEN]),
        (RestartPolicy.ALWAYS, [WELL, BADLY, KILLED, UNSEEN]),
    ],
)
def test_the_policy_says_after_which_ends_there_is_another_run(policy, returning):
    spec = replace(web, restart=policy)
    assert [end for end in (WELL, BADLY, KILLED, UNSEEN) if comes_back(end, spec)] == returning


@pytest.mark.parametrize(
    ("policy", "returning"),
    [
        (RestartPolicy.NO, [None]),
        (RestartPolicy.ON_FAILURE, [None, BADLY, KILLED, UNSEEN]),
        (RestartPolicy.ALWAYS, [None, WELL, BADLY, KILLED, UNSEEN]),
    ],
)
def test_so_it_does_about_an_end_that_came_before_it_and_not_about_what_never_ran(
    policy, returning
):
    spec = replace(web, restart=policy)
    slots = [SlotStatus(slot="web", exit=end) for end in (None, WELL, BADLY, KILLED, UNSEEN)]
    assert [each.exit for each in slots if still_comes_back(each, spec)] == returning


def test_what_was_ended_because_it_did_badly_has_not_ended_well_whatever_its_code():
    found = Finding(health=Health.UNHEALTHY, why="no answer", code="UPH_PROBE_FAILED")
    condemned = SlotStatus(slot="web", exit=WELL, finding=found)
    assert still_comes_back(condemned, replace(web, restart=RestartPolicy.ON_FAILURE))
    assert not ended_well(replace(condemned, terms=web))


def test_what_waits_in_a_series_of_failures_waits_for_another_try():
    due = Due(at=Instant(5.0), wall=9.0, rule="every 5 s", text="then")
    waits = SlotStatus(slot="web", state=State.WAITING, failures=1)
    assert tries_again(waits)
    assert tries_again(replace(waits, due=replace(due, owed=True)))
    assert not tries_again(replace(waits, due=due)), "it waits for its time"
    assert not tries_again(replace(waits, failures=0))
    assert not tries_again(replace(waits, state=State.STOPPED))


def test_only_a_run_that_is_over_has_ended_well():
    good = SlotStatus(slot="web", terms=web, exit=WELL)
    assert ended_well(good)
    assert not ended_well(replace(good, exit=BADLY))
    assert not ended_well(replace(good, exit=None))
    assert not ended_well(replace(good, terms=None))


def test_a_policy_that_does_not_exist_is_never_taken_for_no():
    with pytest.raises(AssertionError):
        comes_back(BADLY, replace(web, restart="sometimes"))


@pytest.mark.accepts("P8")
@pytest.mark.parametrize(
    ("identity", "lasted", "expected"),
    [
        (SOMEBODY, 59.9, 4),
        (SOMEBODY, 60.0, 1),
        (SOMEBODY, 3600.0, 1),
        (None, 3600.0, 4),  # it never came up, however long that took
    ],
)
def test_failures_count_since_the_last_stable_run(identity, lasted, expected):
    status = SlotStatus(
        slot="web", started_at=Instant(100.0), identity=identity, failures=3, state=State.RUNNING
    )
    assert failures_after(status, Instant(100.0 + lasted), web) == expected


@pytest.mark.accepts("P8", "T05")
def test_the_delays_are_0_1_2_4_and_so_on_up_to_five_minutes():
    delays = [delay_after(failures, web.backoff) for failures in range(1, 14)]
    assert delays == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


@pytest.mark.parametrize("failures", [100, 10_000, 10**9])
def test_however_many_failures_there_were_the_delay_is_the_longest_and_no_overflow(failures):
    assert delay_after(failures, web.backoff) == 300.0


def test_the_delays_are_for_the_file_to_say():
    backoff = Backoff(first=5.0, base=3.0, max=10.0)
    assert [delay_after(failures, backoff) for failures in range(5)] == [5, 5, 3, 6, 10]


@pytest.mark.accepts("P8", "T05")
@pytest.mark.parametrize("generation", range(1, 40))
def test_jitter_stays_within_ten_percent(generation):
    status = SlotStatus(slot="web", since=Instant(1000.0), failures=9, generation=generation)
    assert 0.9 * 128 <= due(status, web) - 1000.0 <= 1.1 * 128


@pytest.mark.accepts("P8")
def test_jitter_spreads_the_slots_and_is_no_chance():
    waiting = [
        SlotStatus(slot=f"web.{index}", failures=9, generation=5) for index in range(2, 1001)
    ]
    times = [due(status, web) for status in waiting]
    assert times == [due(status, web) for status in waiting]
    assert len(set(times)) > 990
    mean = sum(times) / len(times)
    assert 0.98 * 128 < mean < 1.02 * 128
    assert max(times) > 1.08 * 128
    assert min(times) < 0.92 * 128


def test_without_jitter_it_is_due_to_the_second():
    status = SlotStatus(slot="web", since=Instant(1000.0), failures=4)
    assert due(status, plain) == 1004.0


@pytest.mark.accepts("P8")
@pytest.mark.parametrize(
    ("failures", "most", "given_up"),
    [(10, 10, False), (11, 10, True), (1, 0, True), (0, 0, False), (10**6, None, False)],
)
def test_trying_ends_after_the_allowed_number_of_restarts(failures, most, given_up):
    status = SlotStatus(slot="web", failures=failures)
    assert exhausted(status, replace(web, max_restarts=most)) is given_up


def test_what_can_never_start_is_not_tried_again():
    assert exhausted(SlotStatus(slot="web", failures=1, hopeless=True), web)


@pytest.mark.accepts("P8", "T05", "B-14")
def test_a_crash_loop_waits_longer_after_each_failure_and_then_gives_up():
    scenario = Scenario(web)
    scenario.expects(start(web, why="declared"))
    waits = _crash_until_given_up(scenario)

    assert len(waits) == 10
    for waited, delay in zip(waits, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256], strict=True):
        assert 0.9 * delay <= waited <= 1.1 * delay
    status = scenario.status("web")
    assert status.state is State.FAILED
    assert "gave up after 11 failed runs; the last one exited with code 1" in status.why
    assert status.restarts <= 11
    assert scenario.at(10_000.0).decides().actions == ()


@pytest.mark.accepts("P8", "T05")
def test_the_exact_moments_of_a_crash_loop_without_jitter():
    scenario = Scenario(plain)
    scenario.expects(start(plain))
    waits = _crash_until_given_up(scenario)
    assert waits == pytest.approx([0, 1, 2, 4, 8, 16, 32, 64, 128, 256])


@pytest.mark.accepts("P8")
def test_a_first_ever_failure_counts_like_any_other():
    slow = replace(web, backoff=Backoff(first=5.0, jitter=0.0))
    (
        Scenario(slow)
        .expects(start(slow))
        .rises("web")
        .at(1)
        .exits("web", 1)
        .expects(wake_at=6)
        .at(6)
        .expects(start_again(slow))
    )


@pytest.mark.accepts("P8")
def test_a_stable_run_is_followed_by_an_immediate_restart_and_a_new_count():
    scenario = Scenario(plain).expects(start(plain)).rises("web")
    scenario.at(1).exits("web", 1).expects(start_again(plain))
    scenario.rises("web").at(2).exits("web", 1).expects(wake_at=3)
    scenario.at(3).expects(start_again(plain)).rises("web")

    scenario.at(63).exits("web", 1)

    assert scenario.status("web").failures == 1
    scenario.expects(start_again(plain))


@pytest.mark.accepts("P8", "B-14")
def test_a_start_that_comes_up_and_fails_again_does_not_clear_the_count():
    scenario = Scenario(plain).expects(start(plain)).rises("web")
    scenario.at(59).exits("web", 1).acts()
    scenario.rises("web")
    assert scenario.status("web").failures == 1
    scenario.at(118).exits("web", 1)
    assert scenario.status("web").failures == 2


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("wish", [orders.StartWorkers, orders.RestartWorkers, orders.ResetWorkers])
def test_a_person_starts_a_given_up_slot_again_with_a_clean_sheet(wish):
    scenario = Scenario(plain).expects(start(plain))
    _crash_until_given_up(scenario)
    scenario.orders(wish(names=("web",)))
    while scenario.status("web").state is not State.STARTING:
        assert scenario.acts().actions
    assert scenario.status("web").failures == 0
    scenario.rises("web")
    assert len(_crash_until_given_up(scenario)) == 10


@pytest.mark.accepts("P8")
def test_a_changed_spec_starts_a_given_up_slot_again():
    scenario = Scenario(plain).expects(start(plain))
    _crash_until_given_up(scenario)
    mended = replace(plain, stable_after=5.0)
    scenario.declares(mended).expects(start(mended, why="its terms changed"))


@pytest.mark.accepts("P8")
def test_the_count_survives_a_restart_of_the_supervisor():
    before = Scenario(plain).expects(start(plain)).rises("web")
    for _ in range(3):
        before.exits("web", 1).at(before.now.mono + 10)
        before.acts()
        before.rises("web")
    before.exits("web", 1)

    after = Scenario(plain)
    written = [encode(status) for status in before.observed.slots.values()]
    after.observed = after.observed.with_changes([decode(SlotStatus, row) for row in written], ())

    after.at(before.now.mono)
    assert after.status("web").failures == 4
    after.expects(wake_at=after.now.mono + 4)


@pytest.mark.accepts("P8", "T05", "M-48")
def test_a_thousand_slots_that_crash_together_come_back_together():
    many = replace(web, replicas=1000)
    scenario = Scenario(many)
    assert len(scenario.acts().actions) == 1000
    slots = tuple(scenario.observed.slots)
    scenario.rises(*slots)
    scenario.at(1)
    scenario.happens(*(Exited(slot=slot, generation=1, exit=BADLY) for slot in slots))
    again = scenario.decides()
    assert len(again.actions) == 1000
    assert again.wakes == ()


def _crash_until_given_up(scenario: Scenario) -> list[float]:
    """Let every run of `web` fail at once; give how long each restart was waited for."""
    waits = []
    while True:
        if scenario.status("web").state is State.STARTING:
            scenario.rises("web")
        failed_at = scenario.now.mono
        scenario.exits("web", 1)
        decided = scenario.acts()
        if not decided.actions:
            scenario.at(decided.wake_at - 0.001)
            assert scenario.acts().actions == (), "nothing starts before its time"
            decided = scenario.at(decided.wake_at).acts()
        (action,) = decided.actions
        if isinstance(action, GiveUp):
            return waits
        assert isinstance(action, Start)
        assert action.automatic
        waits.append(scenario.now.mono - failed_at)
