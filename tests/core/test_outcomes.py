from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.absorbing import Observed
from uphold.core.declaring import Declaration
from uphold.core.orders import Wish
from uphold.core.outcomes import SETTLING, Accepted, Pending, Result, outcome
from uphold.core.specs import Instant, RestartPolicy, Schedule, WorkerSpec
from uphold.core.statuses import Due, Fault, SlotStatus, State
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))
WEB = ("web",)
FAULT = Fault(code="UPH_WORKER_EXITED", message="exited with code 1 after 0.2 s")
SURVIVED = Fault(code="UPH_STOP_UNKILLABLE", message="process 7 survived SIGKILL")

START = orders.StartWorkers(names=WEB)
RESTART = orders.RestartWorkers(names=WEB)
STOP = orders.StopWorkers(names=WEB)
RESET = orders.ResetWorkers(names=WEB)
SCALE = orders.ScaleWorker(name="web", replicas=1)
DECLARE = orders.Declare(specs=(web,))

NEXT_RUN = Due(at=Instant(60.0), wall=60.0, rule="every 60 s", text="later")
YES, NO, YET = "yes", "no", "not yet"
BEFORE, AFTER = False, True


def judged(
    wish: Wish, *statuses: SlotStatus, now: float = 1000.0, declaration: Declaration | None = None
) -> Result | Pending:
    """Say what an order of version 7 has come to."""
    if declaration is None:
        declaration = Scenario(web).orders(wish).declaration
    accepted = Accepted(wish=wish, names=WEB, version=7)
    observed = Observed().with_changes(statuses, ())
    return outcome(accepted, "web", declaration, observed, Instant(now))


def slot(state: State, *, since_order: bool, **more: object) -> SlotStatus:
    """A slot that came into this state, by a new start, since the order or long before it."""
    version = 7 if since_order else 6
    known: dict[str, object] = {
        "slot": "web",
        "state": state,
        "terms": web,
        "seen": version,
        "started_seen": version,
        "why": "for a reason",
    }
    return SlotStatus(**{**known, **more})


def word(verdict: Result | Pending) -> str:
    if isinstance(verdict, Pending):
        return YET
    return YES if verdict.ok else NO


# For each state a slot may be in, entered before and since the order: has it come true?
TABLE = {
    State.STOPPED: {
        START: (YET, YET),
        RESTART: (YET, YET),
        RESET: (YET, YET),
        STOP: (YES, YES),
        SCALE: (YET, YET),
        DECLARE: (YET, YET),
    },
    State.WAITING: {
        START: (YET, YET),
        RESTART: (YET, YET),
        RESET: (YES, YES),
        STOP: (YET, YET),
        SCALE: (YET, YET),
        DECLARE: (YET, YET),
    },
    State.STARTING: {
        START: (YET, YET),
        RESTART: (YET, YET),
        RESET: (YET, YET),
        STOP: (YET, YET),
        SCALE: (YET, YET),
        DECLARE: (YET, YET),
    },
    State.RUNNING: {
        START: (YES, YES),
        RESTART: (YET, YES),
        RESET: (YES, YES),
        STOP: (YET, YET),
        SCALE: (YES, YES),
        DECLARE: (YES, YES),
    },
    State.STOPPING: {
        START: (YET, YET),
        RESTART: (YET, YET),
        RESET: (YET, YET),
        STOP: (YET, YET),
        SCALE: (YET, YET),
        DECLARE: (YET, YET),
    },
    State.BACKOFF: {
        START: (YET, NO),
        RESTART: (YET, NO),
        RESET: (YET, NO),
        STOP: (YET, YET),
        SCALE: (YES, NO),
        DECLARE: (YES, NO),
    },
    State.EXITED: {
        START: (YET, YES),
        RESTART: (YET, YES),
        RESET: (YES, YES),
        STOP: (YET, YET),
        SCALE: (YES, YES),
        DECLARE: (YES, YES),
    },
    State.FAILED: {
        START: (YET, NO),
        RESTART: (YET, NO),
        RESET: (YET, NO),
        STOP: (YET, YET),
        SCALE: (YES, NO),
        DECLARE: (YES, NO),
    },
}


@pytest.mark.accepts("P27", "B-21")
@pytest.mark.parametrize("wish", [START, RESTART, RESET, STOP, SCALE, DECLARE])
@pytest.mark.parametrize("state", State)
def test_what_an_order_has_come_to_in_every_state(state, wish):
    before = word(judged(wish, slot(state, since_order=BEFORE)))
    since = word(judged(wish, slot(state, since_order=AFTER)))
    assert (before, since) == TABLE[state][wish]


@pytest.mark.accepts("P27", "B-72")
def test_a_start_is_done_when_the_process_has_stayed_up_a_moment():
    fresh = slot(State.RUNNING, since_order=AFTER, since=Instant(100.0))
    settled = Instant(100.0 + SETTLING)
    assert judged(START, fresh, now=100.1) == Pending(at=settled)
    assert judged(START, fresh, now=settled) == Result(name="web", ok=True, state="running")


@pytest.mark.accepts("P27", "C-118", "B-72")
@pytest.mark.parametrize("state", [State.BACKOFF, State.FAILED])
def test_a_start_that_fails_says_why(state):
    failed = slot(state, since_order=AFTER)
    assert judged(START, failed) == Result(
        name="web", ok=False, state=str(state), error="for a reason"
    )
    verdict = judged(START, replace(failed, error=FAULT))
    assert isinstance(verdict, Result)
    assert verdict.error == FAULT.message


@pytest.mark.parametrize(("error", "ok"), [(None, True), (FAULT, False)])
def test_a_one_shot_is_done_when_it_has_run_and_ended_well(error, ok):
    verdict = judged(START, slot(State.EXITED, since_order=AFTER, error=error))
    assert verdict == Result(name="web", ok=ok, state="exited", error=None if ok else FAULT.message)


@pytest.mark.parametrize("wish", [orders.EnableWorkers, orders.ApproveWorkers])
@pytest.mark.parametrize("state", [State.EXITED, State.BACKOFF, State.FAILED])
def test_to_allow_what_was_allowed_before_is_done_at_once(state, wish):
    ended = slot(state, since_order=BEFORE)
    assert word(judged(wish(names=WEB), ended)) == YES
    held = orders.DisableWorkers(names=WEB), orders.QuarantineWorkers(names=WEB)
    allowed = orders.EnableWorkers(names=WEB), orders.ApproveWorkers(names=WEB)
    scenario = Scenario(web)
    for each in (*held, *held, *allowed):
        scenario.orders(each)
    assert word(judged(allowed[1], ended, declaration=scenario.declaration)) == YET


def test_what_runs_on_other_terms_is_not_there_yet():
    old = slot(State.RUNNING, since_order=AFTER, terms=replace(web, command=("x",)))
    assert judged(DECLARE, old) == Pending()


@pytest.mark.accepts("P27")
@pytest.mark.parametrize(
    "wish",
    [
        START,
        RESET,
        SCALE,
        orders.ResumeWorkers(names=WEB),
        orders.EnableWorkers(names=WEB),
        orders.ApproveWorkers(names=WEB),
    ],
)
def test_a_scheduled_run_need_not_end_for_an_order_although_its_next_one_has_other_terms(wish):
    job = replace(web, schedule=Schedule(every=60.0))
    declaration = Scenario(job).orders(wish).declaration
    edited = slot(State.RUNNING, since_order=BEFORE, terms=replace(job, command=("x",)))
    assert word(judged(wish, edited, declaration=declaration)) == YES
    assert word(judged(RESTART, edited, declaration=declaration)) == YET
    to_be_amended = slot(
        State.RUNNING, since_order=BEFORE, terms=replace(job, labels=(("a", "b"),))
    )
    assert word(judged(wish, to_be_amended, declaration=declaration)) == YET
    lost = slot(State.RUNNING, since_order=BEFORE, terms=None)
    assert word(judged(wish, lost, declaration=declaration)) == YET


@pytest.mark.accepts("P27")
@pytest.mark.parametrize(("wish", "verdict"), [(START, YES), (RESTART, YET)])
def test_a_start_is_content_with_a_scheduled_run_that_it_found_going_on(wish, verdict):
    job = replace(web, schedule=Schedule(every=60.0))
    ended = slot(State.WAITING, since_order=AFTER, terms=job, started_seen=6, due=NEXT_RUN)
    declaration = Scenario(job).orders(wish).declaration
    assert word(judged(wish, ended, declaration=declaration)) == verdict


@pytest.mark.accepts("P27")
@pytest.mark.parametrize("state", [State.BACKOFF, State.EXITED, State.FAILED])
def test_a_file_that_mends_what_has_ended_is_done_when_that_runs_again(state):
    ended = slot(state, since_order=BEFORE, terms=replace(web, command=("srve",)))
    assert judged(DECLARE, ended) == Pending()


@pytest.mark.accepts("P3", "P27")
def test_what_cannot_be_killed_ends_the_wait_with_its_reason():
    stuck = slot(State.STOPPING, since_order=AFTER, error=SURVIVED)
    expected = Result(name="web", ok=False, state="stopping", error=SURVIVED.message)
    assert judged(STOP, stuck) == expected
    assert judged(RESTART, stuck) == expected
    assert judged(STOP, stuck, declaration=Scenario().declaration) == expected


@pytest.mark.accepts("P27", "P3")
def test_a_stop_is_done_only_when_nothing_is_left():
    both = [slot(State.STOPPED, since_order=AFTER), SlotStatus(slot="web.2", state=State.STOPPING)]
    two = Scenario(replace(web, replicas=2)).orders(STOP).declaration
    assert judged(STOP, *both, declaration=two) == Pending()
    both[1] = replace(both[1], state=State.STOPPED)
    assert judged(STOP, *both, declaration=two) == Result(name="web", ok=True, state="stopped")


def test_a_removal_is_done_when_nothing_of_the_worker_lives():
    nothing = Scenario().declaration
    alive = slot(State.RUNNING, since_order=BEFORE)
    assert judged(DECLARE, alive, declaration=nothing) == Pending()
    assert judged(DECLARE, declaration=nothing) == Result(name="web", ok=True, state="removed")


def test_scaling_down_is_done_when_the_surplus_is_gone():
    here = slot(State.RUNNING, since_order=BEFORE)
    surplus = SlotStatus(slot="web.2", state=State.STOPPING)
    assert judged(SCALE, here, surplus) == Pending()
    assert word(judged(SCALE, here, replace(surplus, error=SURVIVED))) == NO
    assert word(judged(SCALE, here, replace(surplus, state=State.STOPPED))) == YES


def test_scaling_up_is_done_when_every_slot_is_up():
    wish = orders.ScaleWorker(name="web", replicas=2)
    here = slot(State.RUNNING, since_order=BEFORE)
    other = slot(State.RUNNING, since_order=AFTER, slot="web.2", since=Instant(999.9))
    assert judged(wish, here) == Pending(), "the other is not even known"
    assert judged(wish, here, replace(other, state=State.STARTING)) == Pending()
    assert judged(wish, here, other) == Pending(at=Instant(999.9 + SETTLING))
    assert judged(wish, here, other, now=1001.0) == Result(name="web", ok=True, state="running")


def test_a_slot_that_failed_is_heard_of_while_another_still_settles():
    wish = orders.ScaleWorker(name="web", replicas=2)
    settling = slot(State.RUNNING, since_order=AFTER, since=Instant(999.9))
    failed = slot(State.BACKOFF, since_order=AFTER, slot="web.2")
    assert word(judged(wish, settling, failed)) == NO


def test_slots_that_differ_are_summed_up_as_mixed():
    wish = orders.ScaleWorker(name="web", replicas=2)
    ended = slot(State.EXITED, since_order=BEFORE, slot="web.2")
    verdict = judged(wish, slot(State.RUNNING, since_order=BEFORE), ended)
    assert verdict == Result(name="web", ok=True, state="mixed")


def test_a_worker_scaled_to_nothing_is_stopped():
    wish = orders.ScaleWorker(name="web", replicas=0)
    assert judged(wish) == Result(name="web", ok=True, state="stopped")


@pytest.mark.accepts("P27")
def test_a_paused_supervisor_says_that_nothing_will_happen_yet():
    paused = Scenario(web).orders(orders.PauseSupervisor()).orders(START).declaration
    verdict = judged(START, declaration=paused)
    assert isinstance(verdict, Result)
    assert (verdict.ok, verdict.state) == (False, "stopped")
    assert "uphold resume" in str(verdict.error)


@pytest.mark.accepts("P27")
@pytest.mark.parametrize(
    ("wish", "state", "verdict"),
    [
        (START, State.RUNNING, YES),
        (RESTART, State.RUNNING, NO),
        (STOP, State.STOPPED, YES),
        (STOP, State.RUNNING, NO),
        (RESET, State.RUNNING, YES),
        (RESET, State.STOPPED, YES),
        (RESET, State.WAITING, YES),
        (START, State.STOPPED, NO),
    ],
)
def test_what_is_so_already_needs_no_acting_and_a_reset_needs_none_at_all(wish, state, verdict):
    paused = Scenario(web).orders(orders.PauseSupervisor()).orders(wish).declaration
    found = judged(wish, slot(state, since_order=BEFORE), declaration=paused)
    assert word(found) == verdict
    assert verdict == YES or "uphold resume" in str(found)


def test_a_paused_supervisor_still_waits_for_what_is_up_to_stay_up():
    paused = Scenario(web).orders(orders.PauseSupervisor()).orders(START).declaration
    young = slot(State.RUNNING, since_order=BEFORE, since=Instant(999.9))
    assert judged(START, young, declaration=paused) == Pending(at=Instant(999.9 + SETTLING))


def ending(since: float, **more: object) -> SlotStatus:
    known = {"stop_asked": True, "since": Instant(since), **more}
    return slot(State.STOPPING, since_order=AFTER, **known)


LATER = Pending(at=Instant(1000.0 + web.stop.grace))


@pytest.mark.accepts("P27")
@pytest.mark.parametrize(
    ("wish", "found", "verdict"),
    [
        (START, slot(State.STARTING, since_order=AFTER), Pending()),
        (RESTART, slot(State.STARTING, since_order=AFTER), Pending()),
        (RESTART, slot(State.STARTING, since_order=BEFORE), NO),
        (STOP, slot(State.STARTING, since_order=BEFORE), NO),
        (STOP, ending(1000.0), LATER),
        (STOP, ending(1.0), NO),
        (STOP, ending(1.0, killed=True), Pending()),
        (SCALE, ending(1000.0, slot="web.2"), LATER),
        (RESET, ending(1000.0), YES),
    ],
)
def test_what_was_begun_before_the_supervisor_was_paused_is_waited_for(wish, found, verdict):
    """It comes to its end by itself, only that nobody kills what does not."""
    paused = Scenario(web).orders(wish).orders(orders.PauseSupervisor()).declaration
    came_to = judged(wish, found, declaration=paused)
    assert verdict in (came_to, word(came_to))


@pytest.mark.parametrize(
    "wish",
    [
        STOP,
        orders.PauseWorkers(names=WEB),
        orders.DisableWorkers(names=WEB),
        orders.QuarantineWorkers(names=WEB),
    ],
)
@pytest.mark.parametrize("state", [State.STOPPED, State.WAITING, State.EXITED, State.FAILED])
def test_to_keep_down_what_is_down_is_over_although_it_is_wanted_up_by_now(state, wish):
    """Somebody lifted it at once: nothing may ever happen to it that could be waited for."""
    lifted = Scenario(web).declaration
    assert word(judged(wish, slot(state, since_order=BEFORE), declaration=lifted)) == YES


@pytest.mark.parametrize("state", [State.BACKOFF, State.FAILED])
def test_a_reset_that_counted_before_it_failed_says_that_it_failed(state):
    """As when it is given while a run is aborted: what came after it is not forgiven."""
    failed = slot(state, since_order=BEFORE, pardoned=7, error=FAULT)
    verdict = judged(RESET, failed)
    assert verdict == Result(name="web", ok=False, state=str(state), error=FAULT.message)
    assert word(judged(START, failed)) == YET


@pytest.mark.accepts("P27")
def test_so_it_does_of_a_worker_that_the_file_no_longer_has():
    paused = Scenario().orders(orders.PauseSupervisor()).declaration
    verdict = judged(DECLARE, slot(State.RUNNING, since_order=BEFORE), declaration=paused)
    assert isinstance(verdict, Result)
    assert (verdict.ok, verdict.state) == (False, "running")
    assert "uphold resume" in str(verdict.error)
    ended = judged(DECLARE, slot(State.STOPPED, since_order=BEFORE), declaration=paused)
    assert ended == Result(name="web", ok=True, state="removed")


@pytest.mark.accepts("P27")
def test_an_order_is_followed_from_wish_to_fact():
    scenario = Scenario(replace(web, restart=RestartPolicy.ON_FAILURE))
    scenario.acts()
    scenario.rises("web").at(5).orders(RESTART)
    accepted = Accepted(wish=RESTART, names=WEB, version=scenario.declaration.version)

    def come_to() -> str:
        now = scenario.now.mono
        return word(outcome(accepted, "web", scenario.declaration, scenario.observed, now))

    steps = [come_to()]
    scenario.acts()
    steps.append(come_to())
    scenario.vanishes("web").acts()
    steps.append(come_to())
    scenario.rises("web")
    steps.append(come_to())
    scenario.at(6)
    steps.append(come_to())
    assert steps == [YET, YET, YET, YET, YES]
