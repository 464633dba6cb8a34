from __future__ import annotations

from dataclasses import fields, replace
from typing import get_args

import pytest

from core.steps import start, start_again, stop
from uphold.core import events, orders
from uphold.core.absorbing import Illegal, Observed, absorb, describe_exit, duration_text
from uphold.core.events import Moment
from uphold.core.specs import Heartbeat, Instant, Kind, Probe, RestartPolicy, WorkerSpec
from uphold.core.statuses import (
    ALIVE,
    RESTING,
    TRANSITIONS,
    UNKILLABLE,
    Due,
    Exit,
    Fault,
    Finding,
    Health,
    Identity,
    SlotStatus,
    State,
)
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))
NOW = Moment(mono=Instant(1000.0), wall=5_000_000.0)
SEEN = 17
FAULT = Fault(code="UPH_SPAWN_FAILED", message="cannot fork: no memory")
FAILED = Exit(code=1, signal=None, at=NOW.wall)
SOMEBODY = Identity(pid=7, start_ticks=1, boot_id="b", inode=0, nonce="n3")


BEGUN = events.StartBegun(
    slot="web", generation=4, nonce="n4", terms=web, seen=SEEN, automatic=False, why="declared"
)
NOT_STARTED = events.StartFailed(slot="web", generation=3, fault=FAULT)
EXITED = events.Exited(slot="web", generation=3, exit=FAILED)
GONE = events.Gone(slot="web", generation=3, proof="lock")
STOP_BEGUN = events.StopBegun(slot="web", generation=3, why="not wanted")
KILL_BEGUN = events.KillBegun(slot="web", generation=3)
STOP_FAILED = events.StopFailed(slot="web", generation=3, fault=FAULT)


def slot(state: State, **more: object) -> SlotStatus:
    """A slot in its third generation that was started with these terms."""
    identity = SOMEBODY if state in (State.RUNNING, State.STOPPING) else None
    known: dict[str, object] = {
        "slot": "web",
        "state": state,
        "generation": 3,
        "nonce": "n3",
        "terms": web,
        "identity": identity,
        "since": Instant(900.0),
        "started_at": Instant(900.0),
        "seen": 5,
    }
    return SlotStatus(**{**known, **more})


DUE = Due(at=Instant(5.0), wall=9.0, rule="every 5 s", text="then")


def every_fact(generation: int) -> list[events.SlotFact]:
    """One of each kind, about this generation."""
    other = replace(SOMEBODY, pid=8)
    about_a_run = [
        BEGUN,
        events.Started(slot="web", generation=3, identity=other),
        events.Adopted(slot="web", generation=3, identity=other),
        NOT_STARTED,
        EXITED,
        replace(EXITED, left_overs=True),
        GONE,
        replace(GONE, exit=FAILED),
        STOP_BEGUN,
        KILL_BEGUN,
        STOP_FAILED,
        events.Ready(slot="web", generation=3),
        events.Sickened(slot="web", generation=3, health=Health.DEGRADED, why="slow"),
        events.Condemned(slot="web", generation=3, code="UPH_WORKER_UNHEALTHY", why="hangs"),
        events.Recovered(slot="web", generation=3, why="answers"),
        events.Extended(slot="web", generation=3, seconds=5.0),
    ]
    return [
        *(replace(fact, generation=generation) for fact in about_a_run),
        events.WaitBegun(slot="web", why="waits for 'db'"),
        events.GaveUp(slot="web", why="gave up"),
        events.Rested(slot="web", why="not wanted"),
        events.Forgotten(slot="web"),
        events.Pardoned(slot="web"),
        events.Amended(slot="web", terms=web),
        events.AbortBegun(slot="web", generation=generation, why="hangs"),
        events.Appointed(slot="web", due=DUE, why="then"),
        events.Skipped(slot="web", due=DUE, why="busy"),
    ]


def test_every_kind_of_fact_is_tried():
    assert {type(fact) for fact in every_fact(3)} == set(get_args(events.SlotFact))


def known(status: SlotStatus, fact: events.SlotFact, at: Moment = NOW) -> SlotStatus:
    after = absorb(status, fact, at, SEEN)
    assert isinstance(after, SlotStatus)
    return after


# The table


@pytest.mark.accepts("E-01", "B-33")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("generation", [3, 4])
def test_whatever_happens_in_whatever_state_the_table_is_kept(state, asked, generation):
    before = slot(state, stop_asked=asked)
    for fact in every_fact(generation):
        after = absorb(before, fact, NOW, SEEN)
        if isinstance(after, Illegal):
            assert after.after not in TRANSITIONS[state]
            assert (after.slot, after.before, after.fact) == ("web", state, type(fact).__name__)
        elif after.state is not state:
            assert after.state in TRANSITIONS[state]


@pytest.mark.accepts("E-01")
@pytest.mark.parametrize(
    ("fact", "after"),
    [
        (events.GaveUp(slot="web", why=""), State.FAILED),
        (events.WaitBegun(slot="web", why=""), State.WAITING),
        (events.Rested(slot="web", why=""), State.STOPPED),
        (BEGUN, State.STARTING),
    ],
)
@pytest.mark.parametrize("state", State)
def test_a_change_that_the_table_does_not_allow_is_never_made(state, fact, after):
    answer = absorb(slot(state), fact, NOW, SEEN)
    if state is after or after in TRANSITIONS[state]:
        assert isinstance(answer, SlotStatus)
        assert answer.state is after
    else:
        assert answer == Illegal(slot="web", before=state, after=after, fact=type(fact).__name__)


@pytest.mark.accepts("M-48")
@pytest.mark.parametrize("state", State)
def test_a_change_of_state_is_dated_and_nothing_else_is(state):
    for fact in every_fact(4):
        after = absorb(slot(state), fact, NOW, SEEN)
        if isinstance(after, Illegal):
            continue
        moved = after.state is not state
        assert after.since == (NOW.mono if moved else 900.0)
        # What is left of a run is not the run: it ended when its main process did.
        ended_before = state is State.STOPPING and after.state in RESTING
        ended_before |= state in (State.BACKOFF, State.WAITING) and after.state is State.EXITED
        assert after.seen == (SEEN if moved and not ended_before else 5)
        assert after.since_wall == (NOW.wall if moved else 0.0)


@pytest.mark.accepts("E-05")
@pytest.mark.parametrize("state", State)
def test_a_report_about_an_older_generation_changes_nothing(state):
    before = slot(state)
    for fact in every_fact(2):
        if "generation" in {field.name for field in fields(fact)}:
            assert absorb(before, fact, NOW, SEEN) is before


@pytest.mark.accepts("E-05", "P5")
def test_the_same_start_cannot_begin_twice():
    before = slot(State.STOPPED)
    assert absorb(before, replace(BEGUN, generation=3), NOW, SEEN) is before
    assert known(before, BEGUN).generation == 4


@pytest.mark.accepts("B-82", "E-05")
@pytest.mark.parametrize("state", [State.EXITED, State.FAILED, State.STOPPED])
def test_what_monitors_report_after_the_end_does_not_overwrite_it(state):
    before = slot(state, exit=Exit(code=0, signal=None, at=1.0), why="exited with code 0")
    for fact in every_fact(3):
        if isinstance(fact, events.Exited | events.Gone | events.StartFailed | events.KillBegun):
            after = known(before, fact)
            assert (after.state, after.exit, after.why) == (state, before.exit, before.why)


# Starting


def test_a_start_begins_with_a_clean_slot():
    before = slot(
        State.FAILED,
        exit=FAILED,
        failures=4,
        restarts=9,
        hopeless=True,
        stop_asked=True,
        killed=True,
    )
    fast = replace(web, command=("serve", "--fast"))
    after = known(before, replace(BEGUN, terms=fast, seen=12, why="asked"))
    assert after.state is State.STARTING
    assert (after.generation, after.nonce, after.terms) == (4, "n4", fast)
    assert (after.started_seen, after.why) == (12, "asked")
    assert (after.failures, after.restarts) == (0, 9)
    assert (after.exit, after.identity) == (None, None)
    assert (after.stop_asked, after.killed, after.hopeless) == (False, False, False)


@pytest.mark.accepts("B-14", "P8")
def test_an_automatic_start_keeps_the_failures_and_counts_as_a_restart():
    before = slot(State.BACKOFF, failures=4, restarts=9)
    begun = replace(BEGUN, automatic=True)
    assert (known(before, begun).failures, known(before, begun).restarts) == (4, 10)


@pytest.mark.accepts("B-35", "D-22")
@pytest.mark.parametrize("kind", [events.Started, events.Adopted])
def test_success_clears_every_sign_of_the_last_trouble(kind):
    before = slot(State.STARTING, error=FAULT, failures=2)
    after = known(before, kind(slot="web", generation=3, identity=SOMEBODY))
    assert after.state is State.RUNNING
    assert after.error is None
    assert after.failures == 2, "it has yet to prove stable"
    assert (after.started_at, after.started_wall) == (NOW.mono, NOW.wall)
    assert after.proved_wall == NOW.wall


@pytest.mark.accepts("P6")
def test_a_run_that_the_books_had_lost_has_not_ended_as_the_one_before_it():
    before = slot(State.BACKOFF, exit=FAILED, identity=None)
    lost = events.Adopted(slot="web", generation=4, identity=SOMEBODY)
    found = known(before, lost)
    assert (found.state, found.exit) == (State.RUNNING, None)
    aborted = known(found, events.AbortBegun(slot="web", generation=4, why="hangs"))
    end = Exit(code=None, signal=6, at=70.0)
    assert known(aborted, events.Exited(slot="web", generation=4, exit=end)).exit == end


def test_a_process_that_is_adopted_goes_on_as_if_nothing_had_happened():
    before = slot(State.RUNNING, failures=2, restarts=3)
    after = known(before, events.Adopted(slot="web", generation=3, identity=SOMEBODY))
    assert after == replace(before, proved_wall=NOW.wall, why="adopted")


@pytest.mark.parametrize(("named", "state"), [(True, State.STARTING), (False, State.RUNNING)])
def test_naming_another_main_process_makes_nobody_ready_whose_descriptor_is_still_open(
    named, state
):
    """With an earlier supervisor it was lost, and nobody would ever hear of its readiness."""
    terms = replace(web, ready=Probe(way="fd", target="4"))
    before = slot(State.STARTING, identity=SOMEBODY, terms=terms)
    child = replace(SOMEBODY, pid=8)
    after = known(before, events.Adopted(slot="web", generation=3, identity=child, named=named))
    assert (after.state, after.identity) == (state, child)


@pytest.mark.accepts("P2")
def test_a_process_that_the_books_had_lost_is_taken_in():
    after = known(
        SlotStatus(slot="web"), events.Adopted(slot="web", generation=9, identity=SOMEBODY)
    )
    assert after.state is State.RUNNING
    assert (after.generation, after.nonce, after.identity) == (9, "n3", SOMEBODY)


@pytest.mark.accepts("P5")
def test_a_process_that_comes_up_during_its_stop_is_still_being_stopped_and_killed_anew():
    before = slot(State.STOPPING, identity=None, stop_asked=True, killed=True)
    after = known(before, events.Started(slot="web", generation=3, identity=SOMEBODY))
    assert after.state is State.STOPPING
    assert after.stop_asked
    assert not after.killed
    assert after.since == before.since


@pytest.mark.accepts("P6", "P8")
def test_a_stop_that_a_dead_supervisor_had_begun_is_begun_anew_or_not_at_all():
    scenario = Scenario(web).expects(start(web)).rises("web")
    scenario.orders(orders.StopWorkers(names=("web",))).expects(stop("web"))
    identity = scenario.status("web").identity
    assert identity is not None
    scenario.at(5).happens(events.Adopted(slot="web", generation=1, identity=identity))
    again = Scenario(web).at(5)
    again.observed = scenario.observed
    scenario.expects(stop("web", "stopped by ann"))
    # Had the stop been taken back meanwhile, its next end is an end of its own.
    again.expects().at(9).exits("web", 1).expects(start_again(web))
    assert again.status("web").failures == 1


def test_a_start_that_fails_is_a_failed_run():
    after = known(slot(State.STARTING, failures=2), NOT_STARTED)
    assert after.state is State.BACKOFF
    assert (after.failures, after.error, after.why) == (3, FAULT, FAULT.message)
    assert not after.hopeless


@pytest.mark.accepts("P8")
def test_a_start_that_never_came_up_is_never_a_stable_run_however_long_it_took():
    before = slot(State.STARTING, failures=2, started_at=Instant(0.0))
    assert known(before, NOT_STARTED).failures == 3


def test_a_start_that_can_never_work_is_remembered_as_such():
    fact = events.StartFailed(slot="web", generation=3, fault=FAULT, hopeless=True)
    assert known(slot(State.STARTING), fact).hopeless


@pytest.mark.accepts("P3", "P27")
@pytest.mark.parametrize("state", [State.STARTING, State.RUNNING, State.STOPPING])
def test_whoever_is_up_is_not_gone_because_its_driver_says_that_it_could_not_start(state):
    """Ready or not: the process was seen, and only its end ends it."""
    before = slot(state, identity=SOMEBODY, stop_asked=state is State.STOPPING)
    assert known(before, NOT_STARTED) == before


@pytest.mark.parametrize("asked", [True, False])
def test_a_start_that_fails_while_it_is_being_stopped_is_stopped(asked):
    before = slot(State.STOPPING, stop_asked=asked, identity=None)
    after = known(before, NOT_STARTED)
    assert after.state is State.STOPPED
    assert after.error == FAULT
    assert after.failures == 0


def test_a_failed_start_that_is_reported_too_late_changes_nothing():
    before = slot(State.RUNNING)
    assert known(before, NOT_STARTED) == before


# Ending


@pytest.mark.parametrize(
    ("policy", "code", "state"),
    [
        (RestartPolicy.ALWAYS, 0, State.BACKOFF),
        (RestartPolicy.ALWAYS, 1, State.BACKOFF),
        (RestartPolicy.ON_FAILURE, 0, State.EXITED),
        (RestartPolicy.ON_FAILURE, 1, State.BACKOFF),
        (RestartPolicy.ON_FAILURE, None, State.BACKOFF),
        (RestartPolicy.NO, 0, State.EXITED),
        (RestartPolicy.NO, 1, State.EXITED),
    ],
)
@pytest.mark.parametrize("before", [State.STARTING, State.RUNNING])
def test_where_a_slot_goes_when_its_process_ends_is_for_the_policy_to_say(
    before, policy, code, state
):
    status = slot(before, terms=replace(web, restart=policy))
    end = Exit(code=code, signal=None, at=NOW.wall)
    after = known(status, replace(EXITED, exit=end))
    assert after.state is state
    assert after.exit == end
    assert after.identity is None
    assert (after.error is None) is (code == 0)
    assert after.proved_wall == NOW.wall


@pytest.mark.accepts("D-22")
def test_a_worker_that_stopped_because_of_an_error_keeps_showing_it():
    once = replace(web, restart=RestartPolicy.NO)
    after = known(slot(State.RUNNING, terms=once), EXITED)
    assert after.state is State.EXITED
    assert after.error == Fault(code="UPH_WORKER_EXITED", message="exited with code 1 after 100 s")
    later = known(after, GONE)
    assert later.error == after.error


def test_an_end_without_known_terms_is_not_followed_by_another_run():
    after = known(slot(State.RUNNING, terms=None), EXITED)
    assert after.state is State.EXITED
    assert after.error is not None


def test_what_a_process_leaves_behind_is_ended_before_anything_else():
    before = slot(State.RUNNING)
    stopping = known(before, replace(EXITED, left_overs=True))
    assert stopping.state is State.STOPPING
    assert stopping.killed
    assert stopping.exit == FAILED
    gone = known(stopping, GONE)
    assert gone.state is State.BACKOFF
    assert gone.failures == 1
    assert gone.exit == FAILED


@pytest.mark.accepts("P8")
def test_left_overs_that_take_long_to_end_make_a_short_run_no_longer():
    before = slot(State.RUNNING, failures=4, started_at=Instant(999.0))
    left = known(before, replace(EXITED, left_overs=True))
    gone = known(left, GONE, Moment(mono=Instant(2000.0), wall=NOW.wall + 1000.0))
    assert gone.failures == 5
    assert gone.since == 2000.0, "the delay begins when all is gone"
    assert gone.why == "exited with code 1 after 1.0 s"


def test_a_worker_may_ask_for_more_time_to_end_but_not_for_less_or_for_ever():
    before = slot(State.STOPPING, stop_asked=True)
    ends = NOW.mono + 30.0
    more = known(before, events.Extended(slot="web", generation=3, seconds=100.0))
    assert more.since + web.stop.grace == NOW.mono + 100.0
    assert known(more, events.Extended(slot="web", generation=3, seconds=1.0)) == more
    endless = known(before, events.Extended(slot="web", generation=3, seconds=1e9))
    assert endless.since + web.stop.grace == NOW.mono + 600.0
    assert ends
    running = slot(State.RUNNING)
    assert known(running, events.Extended(slot="web", generation=3, seconds=9.0)) == running


def test_an_exit_during_a_stop_is_noted_and_the_stop_goes_on_until_all_is_gone():
    noted = known(slot(State.STOPPING, stop_asked=True), EXITED)
    assert noted.state is State.STOPPING
    assert noted.exit == FAILED
    gone = known(noted, GONE)
    assert gone.state is State.STOPPED
    assert (gone.exit, gone.error, gone.identity) == (FAILED, None, None)


@pytest.mark.accepts("P8")
@pytest.mark.parametrize(
    ("forgives", "lasted", "left"), [(True, 1.0, 0), (False, 1.0, 3), (False, 60.0, 0)]
)
def test_failures_are_forgiven_by_a_stop_that_is_about_the_worker_and_by_a_stable_run(
    forgives, lasted, left
):
    before = slot(State.RUNNING, failures=3, started_at=Instant(NOW.mono - lasted))
    stopping = known(before, replace(STOP_BEGUN, forgives=forgives))
    assert known(stopping, GONE).failures == left


def test_an_end_that_is_learned_only_with_the_end_of_the_tree_is_an_end_like_any_other():
    after = known(slot(State.RUNNING), replace(GONE, exit=FAILED))
    assert after.state is State.BACKOFF
    assert after.exit == FAILED


def test_an_end_that_nobody_saw_is_unknown_and_a_failure():
    earlier = Exit(code=0, signal=None, at=1.0)
    after = known(slot(State.RUNNING, exit=earlier), GONE)
    assert after.state is State.BACKOFF
    assert after.exit == Exit(code=None, signal=None, at=NOW.wall)
    assert after.why == "ended unseen (exit status unknown) after 100 s"


def test_an_unseen_end_during_a_stop_is_unknown_and_no_failure():
    after = known(slot(State.STOPPING, stop_asked=True), GONE)
    assert after.state is State.STOPPED
    assert after.exit == Exit(code=None, signal=None, at=NOW.wall)
    assert after.error is None


def test_proof_that_all_is_gone_after_the_end_only_drops_the_identity():
    before = slot(State.BACKOFF, identity=SOMEBODY)
    assert known(before, GONE) == replace(before, identity=None)


# Stopping


@pytest.mark.parametrize("state", sorted(ALIVE))
def test_a_stop_is_asked_for_once_and_named(state):
    after = known(slot(state), STOP_BEGUN)
    assert after.state is State.STOPPING
    assert after.stop_asked
    assert after.why == "not wanted"


@pytest.mark.accepts("B-35")
def test_trouble_from_before_the_start_is_no_trouble_of_the_stop():
    assert known(slot(State.STARTING, error=FAULT), STOP_BEGUN).error is None


def test_a_stop_of_what_has_ended_lasts_until_nothing_of_it_is_left():
    after = known(slot(State.BACKOFF, error=FAULT, hopeless=True, killed=True), STOP_BEGUN)
    assert (after.state, after.stop_asked, after.killed) == (State.STOPPING, True, False)
    assert (after.error, after.hopeless) == (None, False)


def test_a_kill_is_noted():
    assert known(slot(State.STOPPING), KILL_BEGUN).killed


@pytest.mark.accepts("P3", "P4")
def test_what_survives_being_killed_stays_stopping_with_the_error():
    unkillable = Fault(code=UNKILLABLE, message="pid 7 survives SIGKILL")
    after = known(slot(State.STOPPING, stop_asked=True), replace(STOP_FAILED, fault=unkillable))
    assert after.state is State.STOPPING
    assert after.killed
    assert after.error == unkillable


def test_a_stop_that_could_not_even_be_asked_for_is_followed_by_a_kill():
    after = known(slot(State.STOPPING, stop_asked=True), STOP_FAILED)
    assert not after.killed
    assert after.error == FAULT
    assert known(after, KILL_BEGUN).error is None, "that is a new try"


def test_a_kill_that_was_not_carried_out_is_counted_from_its_failure():
    after = known(slot(State.STOPPING, stop_asked=True, killed=True), STOP_FAILED)
    assert (after.killed, after.error, after.since) == (True, FAULT, NOW.mono)


@pytest.mark.accepts("P3", "P11")
def test_an_end_that_is_told_twice_is_no_proof_that_what_it_left_behind_has_ended():
    left = known(slot(State.RUNNING), replace(EXITED, left_overs=True))
    unseen = replace(EXITED, exit=Exit(code=None, signal=None, at=NOW.wall))
    assert known(left, unseen) == left


# Books


def test_a_slot_that_rests_is_forgiven():
    before = slot(State.FAILED, failures=11, hopeless=True, error=FAULT, restarts=10)
    after = known(before, events.Rested(slot="web", why="stopped by ann"))
    assert after.state is State.STOPPED
    assert (after.failures, after.hopeless, after.error) == (0, False, None)
    assert (after.restarts, after.why) == (10, "stopped by ann")


@pytest.mark.parametrize("state", [State.FAILED, State.BACKOFF])
def test_a_pardon_clears_failures_and_counters_and_lets_a_slot_begin_afresh(state):
    before = slot(state, failures=11, restarts=10, hopeless=True, error=FAULT)
    after = known(before, events.Pardoned(slot="web"))
    assert after.state is State.STOPPED
    assert (after.failures, after.restarts, after.hopeless, after.error) == (0, 0, False, None)
    assert after.why == "reset"


def test_a_pardon_leaves_a_running_slot_running():
    before = slot(State.RUNNING, failures=3, restarts=10)
    after = known(before, events.Pardoned(slot="web"))
    assert after == replace(before, failures=0, restarts=0)


def test_new_terms_that_need_no_restart_are_noted():
    calmer = replace(web, stable_after=5.0)
    after = known(slot(State.RUNNING), events.Amended(slot="web", terms=calmer))
    assert after == slot(State.RUNNING, terms=calmer)


ASKED = Probe(way="tcp", target="127.0.0.1:1")
asked = replace(web, ready=ASKED, live=ASKED, heartbeat=Heartbeat(stale_after=5.0))
SICK = Finding(health=Health.UNHEALTHY, why="no longer ready: refused")
OWN_WORD = Finding(health=Health.UNHEALTHY, why="the queue is gone", named="E_QUEUE")
ENDING = Finding(health=Health.UNHEALTHY, why="hangs", code="UPH_WORKER_UNHEALTHY")
WELL = Finding(health=Health.HEALTHY, why="ready")


def left_of(finding: Finding, before: WorkerSpec | None, after: WorkerSpec) -> Finding | None:
    """Say what is still known of the health of a run whose terms change in place."""
    ill = slot(State.RUNNING, terms=before, finding=finding)
    return known(ill, events.Amended(slot="web", terms=after)).finding


@pytest.mark.parametrize("question", ["ready", "live", "heartbeat"])
def test_trouble_found_by_a_question_that_is_put_otherwise_or_no_more_is_void(question):
    assert left_of(SICK, asked, replace(asked, **{question: None})) is None
    assert left_of(SICK, replace(asked, **{question: None}), asked) is None


def test_trouble_is_void_when_nobody_knows_by_which_question_it_was_found():
    assert left_of(SICK, None, asked) is None


@pytest.mark.parametrize("finding", [SICK, OWN_WORD, ENDING, WELL])
def test_terms_that_ask_the_same_leave_health_as_it_is(finding):
    assert left_of(finding, asked, replace(asked, stable_after=5.0)) == finding


@pytest.mark.parametrize("finding", [OWN_WORD, ENDING, WELL])
def test_other_questions_take_back_no_word_of_its_own_no_sentence_and_no_good_news(finding):
    assert left_of(finding, asked, replace(asked, ready=None)) == finding


def test_a_word_of_its_own_is_void_when_it_is_not_listened_to_any_more():
    assert left_of(OWN_WORD, asked, web) is None


def test_a_worker_that_runs_elsewhere_is_judged_by_whoever_listens_to_it():
    remote = replace(asked, kind=Kind.REMOTE)
    assert left_of(SICK, remote, replace(remote, heartbeat=Heartbeat(stale_after=9.0))) == SICK


def test_a_worker_that_is_not_ready_yet_is_up_when_that_is_no_longer_asked():
    awaited = slot(State.STARTING, terms=asked, identity=SOMEBODY)
    after = known(awaited, events.Amended(slot="web", terms=replace(asked, ready=None)))
    assert (after.state, after.since) == (State.RUNNING, NOW.mono)


def test_a_worker_that_becomes_ready_is_up_and_well():
    awaited = slot(State.STARTING, terms=asked, identity=SOMEBODY, error=FAULT)
    after = known(awaited, events.Ready(slot="web", generation=3))
    assert (after.state, after.finding, after.error) == (State.RUNNING, WELL, None)


@pytest.mark.parametrize(
    ("finding", "code"), [(ENDING, "UPH_WORKER_UNHEALTHY"), (OWN_WORD, "E_QUEUE")]
)
def test_one_that_was_unhealthy_when_it_ended_has_that_for_a_reason(finding, code):
    after = known(slot(State.RUNNING, finding=finding), EXITED)
    assert after.error is not None
    assert after.error.code == code
    assert finding.why in after.why


def test_one_in_back_off_has_come_to_its_end_under_terms_that_want_no_other_run():
    before = slot(State.BACKOFF, error=FAULT, why="exited with code 1", failures=2)
    calmer = replace(web, restart=RestartPolicy.NO)
    after = known(before, events.Amended(slot="web", terms=calmer))
    assert (after.state, after.terms, after.error) == (State.EXITED, calmer, FAULT)
    assert (after.why, after.seen) == (before.why, before.seen), "it ended when it ended"


@pytest.mark.parametrize(("error", "why"), [(FAULT, FAULT.message), (None, "exited with code 1")])
def test_one_that_waits_for_another_try_comes_to_its_end_too_and_tells_that_one(error, why):
    owed = replace(DUE, owed=True)
    before = slot(State.WAITING, error=error, why="waits for 'db'", exit=FAILED, due=owed)
    calmer = replace(web, restart=RestartPolicy.NO)
    after = known(before, events.Amended(slot="web", terms=calmer))
    assert (after.state, after.terms, after.why) == (State.EXITED, calmer, why)
    assert after.due == DUE, "its next run has nothing to do with that"


def test_what_is_no_fact_is_an_error():
    with pytest.raises(AssertionError):
        absorb(slot(State.RUNNING), "it rains", NOW, SEEN)  # type: ignore[arg-type]


@pytest.mark.accepts("P15")
@pytest.mark.parametrize("jump", [-3.2e8, -86400.0, -1.0, 1.0, 3600.0, 3.2e8])
def test_jumps_of_the_wall_clock_change_nothing_but_what_is_printed(jump):
    printed = {"since_wall", "started_wall", "proved_wall", "exit"}
    for state in State:
        for fact in every_fact(4):
            still = absorb(slot(state), fact, NOW, SEEN)
            jumped = absorb(slot(state), fact, replace(NOW, wall=NOW.wall + jump), SEEN)
            if isinstance(still, Illegal):
                assert jumped == still
                continue
            assert isinstance(jumped, SlotStatus)
            for field in fields(SlotStatus):
                if field.name not in printed:
                    assert getattr(jumped, field.name) == getattr(still, field.name)


# All slots


@pytest.mark.accepts("M-33", "M-34")
def test_what_was_observed_never_changes():
    empty = Observed()
    one = empty.with_changes([slot(State.RUNNING)], ())
    two = one.with_changes([slot(State.BACKOFF), SlotStatus(slot="web.2")], ())
    assert dict(empty.slots) == {}
    assert one.slots["web"].state is State.RUNNING
    assert two.slots["web"].state is State.BACKOFF
    for observed in (empty, one, two):
        with pytest.raises(TypeError):
            observed.slots["web"] = SlotStatus(slot="web")  # type: ignore[index]
        with pytest.raises(TypeError):
            observed.by_worker["web"] = ()  # type: ignore[index]


def test_slots_are_found_by_their_worker():
    names = ("web", "db", "web.2", "@pump")
    observed = Observed().with_changes([SlotStatus(slot=name) for name in names], ())
    assert observed.of("web") == ("web", "web.2")
    assert observed.of("@pump") == ("@pump",)
    assert observed.of("nobody") == ()


def test_a_change_of_a_known_slot_moves_nothing_between_workers():
    observed = Observed().with_changes([slot(State.RUNNING)], ())
    assert observed.with_changes([slot(State.BACKOFF)], ()).by_worker is observed.by_worker


def test_a_forgotten_slot_is_gone_and_so_is_its_worker_with_the_last_one():
    names = ("web", "web.2", "db")
    observed = Observed().with_changes([SlotStatus(slot=name) for name in names], ())
    one_less = observed.with_changes((), ["web.2", "nobody"])
    assert one_less.of("web") == ("web",)
    assert "web.2" not in one_less.slots
    none_left = one_less.with_changes((), ["web", "db"])
    assert none_left == Observed()


def test_a_slot_can_come_and_go_in_one_step():
    observed = Observed().with_changes([SlotStatus(slot="web")], ["web"])
    assert observed == Observed()


# Words


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(code=3, signal=None, at=0.0), "exited with code 3"),
        (Exit(code=0, signal=None, at=0.0), "exited with code 0"),
        (Exit(code=None, signal=9, at=0.0), "ended by signal 9"),
        (Exit(code=None, signal=None, at=0.0), "ended unseen (exit status unknown)"),
    ],
)
def test_how_a_process_ended_is_said_in_words(end, words):
    assert describe_exit(end) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.24, "0.2 s"),
        (9.9, "9.9 s"),
        (10, "10 s"),
        (12.4, "12 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h 0 min"),
        (7500, "2 h 5 min"),
        (172_799, "47 h 59 min"),
        (172_800, "2 d 0 h"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations_are_written_for_people(seconds, words):
    assert duration_text(seconds) == words


@pytest.mark.accepts("E-41", "P15")
def test_a_run_never_lasted_less_than_no_time():
    before = slot(State.RUNNING, started_at=Instant(2000.0))
    assert known(before, EXITED).why == "exited with code 1 after 0.0 s"


@pytest.mark.accepts("P8")
def test_a_run_that_the_books_missed_is_not_as_old_as_the_one_they_knew():
    """Its number is known by then, from the slot's own file: its nonce tells that it is another."""
    later = Identity(pid=9, start_ticks=2, boot_id="b", inode=0, nonce="n9")
    before = slot(State.RUNNING)
    after = known(before, events.Adopted(slot="web", generation=3, identity=later))
    assert (after.started_at, after.nonce) == (NOW.mono, "n9")
    again = replace(SOMEBODY, pid=8)
    after = known(before, events.Adopted(slot="web", generation=3, identity=again))
    assert after.started_at == before.started_at


@pytest.mark.accepts("P6", "P26")
def test_a_run_that_the_books_missed_is_not_ended_for_what_the_one_before_it_did():
    condemned = Finding(health=Health.UNHEALTHY, why="no answer", code="UPH_WORKER_UNHEALTHY")
    before = slot(State.STOPPING, finding=condemned)
    later = Identity(pid=9, start_ticks=2, boot_id="b", inode=0, nonce="n9")
    for generation in (3, 4):
        fact = events.Adopted(slot="web", generation=generation, identity=later)
        assert known(before, fact).finding is None
    same = events.Adopted(slot="web", generation=3, identity=SOMEBODY)
    assert known(before, same).finding == condemned
