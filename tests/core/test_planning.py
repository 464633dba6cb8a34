from __future__ import annotations

from dataclasses import replace

import pytest

from core.steps import (
    amend,
    forget,
    give_up,
    kill,
    pardon,
    rest,
    start,
    start_again,
    stop,
    stop_for_now,
    wait,
    wait_afresh,
)
from uphold.core import events, orders
from uphold.core.actions import Abort, Start
from uphold.core.planning import plan
from uphold.core.specs import (
    NEVER,
    Backoff,
    Instant,
    Kind,
    Logs,
    Need,
    RestartPolicy,
    StopRule,
    WorkerSpec,
)
from uphold.core.statuses import Fault, SlotStatus, State
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",), backoff=Backoff(jitter=0.0))
db = WorkerSpec(name="db", command=("store",), backoff=Backoff(jitter=0.0))
app = replace(web, name="app", depends_on=(("db", Need.HEALTHY),))
once = replace(web, name="once", restart=RestartPolicy.NO)
pump = WorkerSpec(name="@pump", command=("pump",))
WEB = ("web",)
CONDEMNED = events.Condemned(slot="web", generation=2, code="UPH_WORKER_UNHEALTHY", why="hangs")
DB = ("db",)

HOLDS = [
    (orders.PauseWorkers(names=WEB), orders.ResumeWorkers(names=WEB), "paused by ann"),
    (orders.DisableWorkers(names=WEB), orders.EnableWorkers(names=WEB), "disabled by ann"),
    (orders.QuarantineWorkers(names=WEB), orders.ApproveWorkers(names=WEB), "quarantined by ann"),
    (orders.StopWorkers(names=WEB), orders.StartWorkers(names=WEB), "stopped by ann"),
]
HELD_BY_FILE = [
    (replace(web, enabled=False), "disabled"),
    (replace(web, quarantined=True), "quarantined"),
    (replace(web, autostart=False), "not wanted"),
]


def running(*specs: WorkerSpec) -> Scenario:
    """Everything declared, started and up."""
    scenario = Scenario(*specs)
    for _ in range(len(specs) + 1):
        begun = [action.slot for action in scenario.acts().actions if isinstance(action, Start)]
        scenario.rises(*begun)
    assert scenario.decides().actions == ()
    return scenario


# Wish against fact


@pytest.mark.accepts("M-15", "M-23")
def test_a_new_worker_is_started():
    Scenario(web).expects(start(web, why="declared")).expects()


@pytest.mark.accepts("M-16", "M-17", "B-45")
@pytest.mark.parametrize(("spec", "_why"), HELD_BY_FILE)
def test_a_new_worker_that_the_file_holds_back_is_not(spec, _why):
    Scenario(spec).expects(wake_at=NEVER).at(1e6).expects()


@pytest.mark.accepts("M-11", "M-48")
def test_where_wish_and_fact_agree_there_is_nothing_to_do():
    running(web, db, app).at(1e6).expects()


@pytest.mark.accepts("M-18", "M-19")
@pytest.mark.parametrize(("spec", "why"), HELD_BY_FILE)
def test_a_running_worker_that_the_file_holds_back_is_stopped_and_later_started_again(spec, why):
    (
        running(web)
        .at(5)
        .declares(spec)
        .expects(stop("web", why))
        .at(6)
        .exits("web", signal=15)
        .vanishes("web")
        .expects()
        .at(9)
        .declares(web)
        .expects(start(web))
    )


def test_a_file_that_holds_a_worker_back_is_not_blamed_on_whoever_ordered_something_before():
    scenario = running(web).orders(orders.RestartWorkers(names=WEB)).expects(stop("web"))
    scenario.vanishes("web").expects(start(web)).rises("web")
    (action,) = scenario.declares(replace(web, enabled=False)).decides().actions
    assert action.why == "disabled"


@pytest.mark.accepts("M-22")
@pytest.mark.parametrize(("hold", "release", "why"), HOLDS)
def test_what_people_order_down_stays_down_until_the_opposite_verb(hold, release, why):
    scenario = running(web).at(1).orders(hold).expects(stop("web", why)).at(2).vanishes("web")
    scenario.expects(wake_at=NEVER)
    scenario.declares(replace(web, labels=(("a", "b"),))).at(1e6).expects()
    scenario.orders(release).expects(start(replace(web, labels=(("a", "b"),)), why="start ordered"))


@pytest.mark.accepts("M-20", "P5")
def test_a_changed_worker_is_stopped_and_started_on_its_new_terms():
    fast = replace(web, command=("serve", "--fast"))
    (
        running(web)
        .at(5)
        .declares(fast)
        .expects(stop("web", "changed: command"))
        .expects(wake_at=35)
        .at(6)
        .exits("web", signal=15)
        .expects(wake_at=35)
        .at(7)
        .vanishes("web")
        .expects(start(fast))
        .rises("web")
        .expects()
    )


def test_a_change_that_needs_no_restart_applies_in_place():
    calm = replace(web, stable_after=5.0, logs=Logs(keep=2))
    running(web).declares(calm).expects(amend(calm)).expects()


def test_any_change_reconnects_an_mcp_worker():
    mcp = replace(web, kind=Kind.MCP)
    running(mcp).declares(replace(mcp, labels=(("a", "b"),))).expects(stop("web", "labels"))


def test_a_process_whose_terms_were_lost_is_taken_to_be_as_declared():
    scenario = Scenario(web)
    identity = running(web).status("web").identity
    assert identity is not None
    scenario.happens(events.Adopted(slot="web", generation=9, identity=identity))
    scenario.expects(amend(web, why="lost")).expects()
    assert scenario.status("web").terms == web


@pytest.mark.accepts("M-21", "P12")
def test_a_removed_worker_is_stopped_on_the_terms_it_was_started_under_and_forgotten():
    quick = replace(web, stop=StopRule(grace=10))
    (
        running(quick, db)
        .at(5)
        .declares(db)
        .expects(stop("web", "no longer declared"))
        .expects(wake_at=15)
        .at(15)
        .expects(kill("web", "still there 10 s after it was asked to stop"))
        .at(16)
        .vanishes("web")
        .expects(forget("web"))
        .expects()
    )


@pytest.mark.accepts("P12", "M-48", "B-40")
def test_a_change_of_one_worker_touches_that_worker_only():
    scenario = running(web, db)
    scenario.declares(replace(web, command=("x",)), db).expects(stop("web"))
    scenario.vanishes("web").acts()
    scenario.cannot_start("web", hopeless=True).expects(give_up("web"))
    assert scenario.status("db").state is State.RUNNING
    assert scenario.status("db").stop_asked is False


# Restart


def test_a_restart_is_a_stop_and_a_start():
    (
        running(web)
        .at(5)
        .orders(orders.RestartWorkers(names=WEB))
        .expects(stop("web", "restart ordered by ann"))
        .at(6)
        .vanishes("web")
        .expects(start(web, why="restart ordered by ann"))
        .rises("web")
        .expects()
    )


def test_a_stop_that_lands_in_the_middle_of_a_restart_wins():
    (
        running(web)
        .orders(orders.RestartWorkers(names=WEB))
        .expects(stop("web"))
        .orders(orders.StopWorkers(names=WEB))
        .at(1)
        .vanishes("web")
        .expects()
    )


@pytest.mark.accepts("P5")
def test_two_restarts_at_once_are_one():
    scenario = running(web).orders(orders.RestartWorkers(names=WEB))
    scenario.orders(orders.RestartWorkers(names=WEB)).expects(stop("web"))
    scenario.orders(orders.RestartWorkers(names=WEB)).vanishes("web")
    scenario.expects(start(web)).rises("web").expects()
    assert scenario.status("web").generation == 2


def test_a_restart_ordered_during_a_start_follows_it():
    scenario = Scenario(web).expects(start(web)).orders(orders.RestartWorkers(names=WEB))
    scenario.expects().rises("web").expects(stop("web", "restart"))


@pytest.mark.parametrize("wish", [orders.StartWorkers, orders.RestartWorkers])
def test_a_one_shot_that_has_ended_runs_again_when_ordered(wish):
    scenario = running(once).at(1).exits("once", 0).expects()
    scenario.orders(wish(names=("once",))).expects(start(once, why="ordered by ann"))


def test_a_start_of_what_runs_does_nothing():
    running(web).orders(orders.StartWorkers(names=WEB)).expects()


# One action per slot


@pytest.mark.accepts("P5")
def test_a_slot_with_an_action_under_way_gets_no_other_until_its_fact_arrives():
    scenario = Scenario(web).expects(start(web))
    for later in (1, 60, 3600, 1e6):
        scenario.at(later).expects(wake_at=NEVER)
    scenario.orders(orders.StopWorkers(names=WEB)).expects(stop("web")).expects()


@pytest.mark.accepts("P5", "P3")
def test_nothing_is_started_before_everything_of_the_last_run_is_gone():
    scenario = running(web).at(1).exits("web", 1, left_overs=True).expects()
    scenario.at(1e6).expects()
    scenario.vanishes("web").expects(start_again(web))


@pytest.mark.accepts("P3", "P5")
def test_what_cannot_be_killed_is_never_replaced():
    scenario = running(web).orders(orders.RestartWorkers(names=WEB)).expects(stop("web"))
    scenario.at(30).expects(kill("web"))
    fault = Fault(code="UPH_STOP_UNKILLABLE", message="process 1001 survived SIGKILL")
    scenario.at(32).happens(events.StopFailed(slot="web", generation=1, fault=fault))
    scenario.expects(wake_at=NEVER).at(1e6).expects()
    scenario.vanishes("web").expects(start(web))


@pytest.mark.accepts("P4")
def test_a_kill_that_the_driver_did_not_carry_out_is_tried_again_after_a_while():
    scenario = running(web).orders(orders.RestartWorkers(names=WEB)).expects(stop("web"))
    scenario.at(30).expects(kill("web"))
    fault = Fault(code="UPH_DRIVER_FAILED", message="the driver failed: no more threads")
    failed = events.StopFailed(slot="web", generation=1, fault=fault)
    scenario.at(31).happens(failed).expects(wake_at=36)
    scenario.at(36).expects(kill("web", "could not be killed before")).expects(wake_at=NEVER)
    scenario.at(37).happens(failed).expects(wake_at=42).at(42).expects(kill("web"))
    scenario.vanishes("web").expects(start(web))


# Stopping


@pytest.mark.accepts("D-25", "P4", "P15")
def test_a_worker_that_does_not_stop_in_time_is_killed_once():
    (
        running(web)
        .at(100)
        .orders(orders.StopWorkers(names=WEB))
        .expects(stop("web"))
        .at(101)
        .expects(wake_at=130)
        .at(129.9)
        .expects(wake_at=130)
        .at(130)
        .expects(kill("web", "still there 30 s after it was asked to stop"))
        .at(1e6)
        .expects(wake_at=NEVER)
    )


@pytest.mark.accepts("D-25")
def test_a_grace_in_whole_seconds_is_a_time_to_wait_and_no_action():
    whole = replace(web, stop=StopRule(grace=5))
    scenario = running(whole).at(3).orders(orders.StopWorkers(names=WEB)).expects(stop("web"))
    scenario.expects(wake_at=8)


def test_a_stop_without_known_terms_has_no_grace():
    identity = running(web).status("web").identity
    assert identity is not None
    scenario = Scenario().happens(events.Adopted(slot="web", generation=9, identity=identity))
    scenario.expects(stop("web", "no longer declared")).expects(kill("web"))


def test_a_worker_that_is_wanted_again_during_its_stop_is_still_killed_in_time_and_then_started():
    scenario = running(web).orders(orders.StopWorkers(names=WEB)).expects(stop("web"))
    scenario.orders(orders.StartWorkers(names=WEB)).expects(wake_at=30)
    scenario.at(30).expects(kill("web")).at(31).vanishes("web").expects(start(web))


@pytest.mark.parametrize("hold", [hold for hold, _, _ in HOLDS])
@pytest.mark.accepts("P3")
def test_what_ended_and_is_no_longer_wanted_is_called_stopped_only_when_verified(hold):
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.at(2).exits("web", 1).expects(wake_at=3)
    scenario.orders(hold).expects(stop("web", "by ann")).expects(wake_at=32)
    assert scenario.status("web").state is State.STOPPING
    scenario.vanishes("web").expects(wake_at=NEVER)
    assert scenario.status("web").state is State.STOPPED
    assert scenario.status("web").failures == 0


@pytest.mark.parametrize("hold", [hold for hold, _, _ in HOLDS])
def test_what_never_ran_and_is_no_longer_wanted_simply_rests(hold):
    waiting = replace(web, depends_on=(("db", Need.STARTED),))
    off = replace(db, autostart=False)
    scenario = Scenario(waiting, off).expects(wait("web")).orders(hold)
    scenario.expects(rest("web", "by ann")).expects(wake_at=NEVER)


# Failing


@pytest.mark.accepts("B-14", "B-14b", "P8")
def test_no_path_starts_a_slot_before_its_next_attempt_is_due():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.at(2).exits("web", 1)
    due = 3
    for look in (2, 2.5, 2.999):
        scenario.at(look).expects(wake_at=due)
        assert plan(scenario.declaration, scenario.observed, Instant(look), names=WEB).actions == ()
    scenario.declares(web).expects(wake_at=due)
    scenario.declares(replace(web, stable_after=5.0)).expects(wake_at=due)
    scenario.declares(web, db).expects(start(db), wake_at=due)
    scenario.orders(orders.PauseSupervisor()).orders(orders.ResumeSupervisor()).expects(wake_at=due)
    scenario.at(due).expects(start_again(replace(web), why="restart after it exited with code 1"))


@pytest.mark.accepts("B-14b", "P8")
def test_no_amount_of_looking_starts_what_was_given_up():
    scenario = running(replace(web, max_restarts=0)).at(1).exits("web", 1)
    scenario.expects(give_up("web", "gave up after 1 failed run; the last one exited with code 1"))
    for look in (60, 3600, 1e6):
        scenario.at(look).expects(wake_at=NEVER)


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("wish", [orders.StartWorkers, orders.RestartWorkers])
def test_a_person_need_not_wait_for_the_next_attempt(wish):
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.at(2).exits("web", 1).orders(wish(names=WEB)).expects(start(web, why="ordered by ann"))
    assert scenario.status("web").failures == 0


@pytest.mark.accepts("B-14", "P8")
@pytest.mark.parametrize("wish", [orders.StartWorkers, orders.RestartWorkers])
def test_an_order_is_honoured_once_and_the_next_failure_waits_like_any_other(wish):
    slow = replace(web, backoff=Backoff(first=5.0, jitter=0.0))
    scenario = running(slow).at(1).exits("web", 1).orders(wish(names=WEB))
    scenario.expects(start(slow, why="ordered by ann")).rises("web")
    scenario.at(2).exits("web", 1).expects(wake_at=7).at(7).expects(start_again(slow))


def test_a_command_that_cannot_be_run_is_given_up_at_once():
    scenario = Scenario(web).expects(start(web))
    scenario.cannot_start("web", "no such command: serve", hopeless=True)
    scenario.expects(give_up("web", "no such command: serve")).expects()


@pytest.mark.accepts("M-20")
def test_a_changed_command_is_tried_at_once_wherever_the_slot_stands():
    fast = replace(web, command=("serve", "--fast"))
    backoff = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    backoff.at(2).exits("web", 1).declares(fast).expects(start(fast, why="changed: command"))
    given_up = Scenario(web).expects(start(web)).cannot_start("web", hopeless=True)
    given_up.expects(give_up("web")).declares(fast).expects(start(fast, why="changed: command"))
    ended = running(once).exits("once", 0)
    again = replace(once, command=("twice",))
    ended.declares(again).expects(start(again, why="changed: command"))


def test_a_change_that_needs_no_restart_starts_no_ended_one_shot():
    running(once).exits("once", 0).declares(replace(once, labels=(("a", "b"),))).expects()


def test_a_reset_forgives_and_starts_afresh():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.at(2).exits("web", 1).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web", "reset by ann")).expects(start(web)).expects()
    assert (scenario.status("web").failures, scenario.status("web").restarts) == (0, 0)


def test_a_reset_starts_what_was_given_up():
    scenario = Scenario(web).expects(start(web)).cannot_start("web", hopeless=True)
    scenario.expects(give_up("web")).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web")).expects(start(web))


def test_a_reset_of_a_running_slot_clears_its_counters_and_leaves_it_running():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web")).expects()
    assert scenario.status("web").state is State.RUNNING
    running(web).orders(orders.ResetWorkers(names=WEB)).expects()


@pytest.mark.accepts("P8", "P27")
def test_a_reset_is_not_lost_while_the_supervisor_is_paused():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.orders(orders.PauseSupervisor()).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web", "reset by ann")).expects()
    scenario.at(2).exits("web", 1).expects()
    assert scenario.status("web").failures == 1
    scenario.orders(orders.ResumeSupervisor()).expects(start_again(web))


@pytest.mark.accepts("B-14", "P8")
def test_a_reset_is_honoured_once_and_what_fails_afterwards_counts_again():
    scenario = Scenario(web).expects(start(web)).cannot_start("web", hopeless=True)
    scenario.expects(give_up("web")).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web")).expects(start(web)).rises("web")
    scenario.at(1).exits("web", 1).expects(start_again(web)).rises("web").expects()
    assert scenario.status("web").restarts == 1
    scenario.at(2).exits("web", 1).expects(wake_at=3).at(3).expects(start_again(web))
    scenario.cannot_start("web", hopeless=True).expects(give_up("web")).expects(wake_at=NEVER)


def test_a_reset_counts_in_the_moment_of_a_start():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web))
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web", "reset by ann"))
    scenario.rises("web").expects()
    assert (scenario.status("web").failures, scenario.status("web").restarts) == (0, 0)


def test_a_reset_of_a_stopped_slot_clears_its_counters_at_once():
    """Not when it is wanted again: who asks then would be told of a reset of yesterday."""
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.orders(orders.StopWorkers(names=WEB)).acts()
    scenario.vanishes("web").acts()
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web", "reset by ann"))
    assert (scenario.status("web").state, scenario.status("web").restarts) == (State.STOPPED, 0)
    scenario.expects()


def test_a_reset_of_an_ended_one_shot_starts_nothing():
    running(once).exits("once", 0).orders(orders.ResetWorkers(names=("once",))).expects()


def test_a_reset_counts_although_a_restart_was_ordered_with_it():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.orders(orders.RestartWorkers(names=WEB)).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web")).expects(stop("web")).vanishes("web").expects(start(web))
    assert scenario.status("web").restarts == 0


def test_a_reset_counts_although_a_stop_was_ordered_with_it():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.orders(orders.DisableWorkers(names=WEB)).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web")).expects(stop("web"))
    assert scenario.status("web").restarts == 0


def test_a_reset_counts_while_a_stop_is_under_way():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.orders(orders.DisableWorkers(names=WEB)).expects(stop("web"))
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web"))
    assert scenario.status("web").restarts == 0
    assert scenario.status("web").state is State.STOPPING


def aborting(spec: WorkerSpec = web) -> Scenario:
    """Failed once, up again, and being ended because it does badly."""
    scenario = running(spec).at(1).exits("web", 1).expects(start_again(spec)).rises("web")
    scenario.happens(CONDEMNED).expects(Abort(slot="web", why="hangs"))
    return scenario


@pytest.mark.parametrize("max_restarts", [10, 0])
def test_a_reset_while_it_is_aborted_counts_and_the_end_that_follows_is_told(max_restarts):
    spec = replace(web, max_restarts=max_restarts)
    scenario = aborting(web).declares(spec).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web", "reset by ann")).expects()
    assert (scenario.status("web").failures, scenario.status("web").restarts) == (0, 0)
    scenario.exits("web", signal=6).vanishes("web")
    scenario.expects(start_again(spec) if max_restarts else give_up("web"))
    status = scenario.status("web")
    assert (status.failures, status.error and status.error.code) == (1, "UPH_WORKER_UNHEALTHY")


def test_a_reset_with_nothing_to_forgive_does_not_forgive_the_end_of_an_abort_either():
    scenario = running(replace(web, restart=RestartPolicy.NO))
    scenario.happens(replace(CONDEMNED, generation=1)).expects(Abort(slot="web", why="hangs"))
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web")).expects()
    scenario.vanishes("web").expects()
    assert scenario.status("web").state is State.EXITED
    assert scenario.status("web").error is not None
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web")).expects()
    assert scenario.status("web").error is None, "that one came after it"


def test_a_start_that_is_ordered_while_it_is_aborted_follows_at_once_also_after_a_reset():
    slow = replace(web, backoff=Backoff(first=60.0, jitter=0.0))
    scenario = running(slow).happens(replace(CONDEMNED, generation=1))
    scenario.expects(Abort(slot="web", why="hangs"))
    scenario.orders(orders.StartWorkers(names=WEB)).orders(orders.ResetWorkers(names=WEB))
    scenario.expects(pardon("web")).vanishes("web").expects(start(slow, why="ordered by ann"))


def test_a_reset_after_its_end_forgives_that_although_something_is_left_of_it():
    scenario = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    scenario.exits("web", 1, left_overs=True).expects()
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web")).vanishes("web")
    scenario.expects(pardon("web")).expects(start(web))
    assert (scenario.status("web").failures, scenario.status("web").restarts) == (0, 0)


def test_a_reason_names_whoever_ordered_that_and_not_whoever_came_last():
    restarted = running(web).orders(orders.RestartWorkers(names=WEB), author="bob")
    restarted.orders(orders.EnableWorkers(names=WEB), author="cal")
    restarted.expects(stop("web", "restart ordered by bob")).vanishes("web")
    restarted.orders(orders.EnableWorkers(names=WEB), author="cal")
    restarted.expects(start(web, why="restart ordered by bob"))
    started = running(once).exits("once", 0)
    started.orders(orders.StartWorkers(names=("once",)), author="bob")
    started.orders(orders.ResetWorkers(names=("once",)), author="cal")
    started.expects(start(once, why="start ordered by bob"))
    failed = running(web).at(1).exits("web", 1).expects(start_again(web)).rises("web")
    failed.orders(orders.ResetWorkers(names=WEB), author="bob")
    failed.orders(orders.EnableWorkers(names=WEB), author="cal")
    failed.expects(pardon("web", "reset by bob"))


def test_what_is_let_go_after_a_change_is_not_started_by_whoever_ordered_something_before():
    scenario = running(web).orders(orders.ResetWorkers(names=WEB), author="bob")
    scenario.orders(orders.WithholdWorkers(names=WEB), author="cal").acts()
    scenario.vanishes("web").orders(orders.ReleaseWorkers(names=WEB), author="cal")
    scenario.expects(start(web, why="start ordered by cal"))


# Waiting


def test_a_slot_that_fails_while_its_dependency_is_down_waits_and_is_not_forgiven():
    scenario = running(db, app).at(1).exits("app", 1).expects(start_again(app)).rises("app")
    scenario.at(2).orders(orders.StopWorkers(names=("db",))).expects(stop("db")).vanishes("db")
    scenario.exits("app", 1).expects(wake_at=3)
    scenario.at(3).expects(wait("app", "waits for 'db' to be healthy (it is stopped)")).expects()
    scenario.at(9).orders(orders.StartWorkers(names=("db",))).expects(start(db))
    scenario.expects(wait("app", "it is starting")).rises("db").expects(start_again(app))
    assert scenario.status("app").failures == 2


def failing_without_db():
    """Give a worker with failures whose dependency is down."""
    scenario = running(db, app).at(1).exits("app", 1).expects(start_again(app)).rises("app")
    scenario.at(2).orders(orders.StopWorkers(names=("db",))).expects(stop("db")).vanishes("db")
    return scenario.exits("app", 1)


def db_comes_back(scenario):
    scenario.orders(orders.StartWorkers(names=("db",))).expects(start(db))
    return scenario.expects(wait("app")).rises("db")


APP = ("app",)
FORGIVING = [
    orders.StartWorkers(names=APP),
    orders.RestartWorkers(names=APP),
    orders.ResumeWorkers(names=APP),
    orders.Declare(specs=(db, replace(app, command=("other",)))),
]


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("wish", FORGIVING)
def test_what_is_ordered_in_spite_of_failures_is_forgiven_them_although_it_has_to_wait(wish):
    scenario = failing_without_db().orders(wish).expects(wait_afresh("app", "'db'")).expects()
    assert scenario.status("app").failures == 0
    db_comes_back(scenario).expects(start(scenario.declaration.workers["app"].spec))


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("wish", FORGIVING)
def test_what_waits_with_failures_is_forgiven_them_by_an_order_too(wish):
    scenario = failing_without_db().at(3).expects(wait("app", "'db'"))
    scenario.orders(wish).expects(wait_afresh("app", "'db'")).expects()
    assert scenario.status("app").failures == 0
    db_comes_back(scenario).expects(start(scenario.declaration.workers["app"].spec))


def test_an_order_that_comes_with_what_it_waited_for_forgives_too():
    scenario = failing_without_db().at(3).expects(wait("app", "'db'"))
    db_comes_back(scenario).orders(FORGIVING[0]).expects(start(app))


def test_a_reset_clears_the_counters_of_what_waits():
    scenario = failing_without_db().at(3).expects(wait("app", "'db'"))
    scenario.orders(orders.ResetWorkers(names=APP)).expects(pardon("app")).expects()
    status = scenario.status("app")
    assert (status.state, status.failures, status.restarts) == (State.WAITING, 0, 0)


@pytest.mark.accepts("P8")
@pytest.mark.parametrize("before", [State.WAITING, State.BACKOFF, State.FAILED])
def test_a_slot_that_somebody_asks_for_is_forgiven_although_it_has_to_wait(before):
    fails = replace(app, max_restarts=0 if before is State.FAILED else 1)
    scenario = running(db, fails).orders(orders.StopWorkers(names=("db",))).expects(stop("db"))
    scenario.vanishes("db").exits("app", code=1)
    if before is State.FAILED:
        scenario.expects(give_up("app"))
    elif before is State.WAITING:
        scenario.expects(wait("app"))
    assert (scenario.status("app").state, scenario.status("app").failures) == (before, 1)
    scenario.orders(orders.StartWorkers(names=("app",)))
    scenario.expects(replace(wait("app"), afresh=True))
    scenario.orders(orders.StartWorkers(names=("db",))).expects(start(db))
    scenario.expects(wait("app", "it is starting")).rises("db").expects(start(fails))
    assert scenario.status("app").failures == 0


def test_a_restarted_worker_waits_for_what_it_depends_on_too():
    scenario = running(db, app).orders(orders.StopWorkers(names=("db",))).expects(stop("db"))
    scenario.vanishes("db").orders(orders.RestartWorkers(names=("app",))).expects(stop("app"))
    scenario.vanishes("app").expects(wait("app", "'db'")).expects()


def test_the_reason_for_waiting_is_kept_up_to_date_and_said_once():
    scenario = Scenario(app).expects(wait("app", "'db', which is not declared")).expects()
    scenario.declares(db, app).expects(start(db), wait("app", "it is stopped"))
    scenario.expects(wait("app", "it is starting")).expects()


def test_a_reset_clears_what_is_held_against_a_worker_that_has_ended():
    spec = replace(web, restart=RestartPolicy.ON_FAILURE)
    scenario = running(spec).exits("web", 1).expects(start_again(spec)).rises("web")
    scenario.at(5).exits("web", 0).expects()
    scenario.orders(orders.ResetWorkers(names=WEB)).expects(pardon("web", "reset by ann")).expects()
    status = scenario.status("web")
    assert (status.state, status.failures, status.restarts) == (State.EXITED, 0, 0)


def test_a_reset_clears_the_error_of_a_one_shot_that_has_failed_and_does_not_run_it_again():
    scenario = running(once).exits("once", 1).orders(orders.ResetWorkers(names=("once",)))
    scenario.expects(pardon("once")).expects(wake_at=NEVER)
    assert (scenario.status("once").state, scenario.status("once").error) == (State.EXITED, None)


# Another restart policy


def test_what_has_ended_is_started_when_the_file_now_wants_another_run():
    always = replace(once, restart=RestartPolicy.ALWAYS)
    scenario = running(once).at(5).exits("once", 1).expects(wake_at=NEVER)
    scenario.declares(always).expects(start(always, why="its terms changed"))


def test_what_is_in_back_off_is_left_alone_when_the_file_wants_no_other_run():
    rare = replace(web, backoff=Backoff(first=100.0, jitter=0.0))
    never = replace(rare, restart=RestartPolicy.NO)
    scenario = running(rare).at(5).exits("web", 1).expects(wake_at=105).declares(never)
    scenario.expects(amend(never, why="restart = no")).at(1e6).expects(wake_at=NEVER)
    assert scenario.status("web").state is State.EXITED
    scenario.declares(rare).expects(start(rare))


def waiting_to_try_again() -> Scenario:
    """Has failed, and waits for what it depends on before its next try."""
    scenario = running(db, app).at(5).exits("db", 1).exits("app", 1)
    scenario.expects(start_again(db), wait("app"))
    assert scenario.status("app").failures == 1
    return scenario


def test_what_waits_for_its_next_try_is_left_alone_when_the_file_wants_no_other_run():
    never = replace(app, restart=RestartPolicy.NO)
    scenario = waiting_to_try_again().declares(db, never).expects(amend(never, why="restart = no"))
    scenario.rises("db").at(1e6).expects(wake_at=NEVER)
    status = scenario.status("app")
    assert (status.state, status.why) == (State.EXITED, "exited with code 1 after 5.0 s")
    scenario.declares(db, app).expects(start(app))


def test_what_waits_for_its_next_try_is_started_when_somebody_asks_for_it_whatever_the_policy():
    scenario = waiting_to_try_again().orders(orders.StartWorkers(names=("app",)))
    scenario.declares(db, replace(app, restart=RestartPolicy.NO)).expects(wait_afresh("app"))
    scenario.rises("db").expects(start(replace(app, restart=RestartPolicy.NO)))


def test_what_waited_for_its_next_try_when_the_supervisor_ended_is_started_by_the_next_one():
    never = replace(app, restart=RestartPolicy.NO)
    scenario = waiting_to_try_again().rises("db").exits("db", 1).orders(orders.ShutDown())
    again = started_anew(scenario.expects(stop_for_now("app")).vanishes("app"))
    again.declares(db, never).at(50).expects(start_again(db), wait("app"))
    again.rises("db").expects(start_again(never))


def test_what_could_not_be_started_is_tried_again_whatever_the_policy():
    scenario = Scenario(once).expects(start(once)).cannot_start("once")
    scenario.expects(start_again(once))


# Scaling


@pytest.mark.accepts("P5")
def test_scaling_never_touches_a_running_slot():
    scenario = running(web).orders(orders.ScaleWorker(name="web", replicas=3))
    scenario.expects(start(web, "web.2"), start(web, "web.3")).rises("web.2", "web.3")
    scenario.orders(orders.ScaleWorker(name="web", replicas=2))
    scenario.expects(stop("web.3", "scaled to 2")).vanishes("web.3").expects(forget("web.3"))
    scenario.expects()
    assert scenario.status("web").generation == scenario.status("web.2").generation == 1


def test_scaling_by_the_file_does_the_same_and_amends_the_rest():
    three = replace(web, replicas=3)
    scenario = running(web).declares(three)
    scenario.expects(amend(three), start(three, "web.2"), start(three, "web.3"))
    scenario.rises("web.2", "web.3").declares(web)
    scenario.expects(amend(web), stop("web.2", "scaled to 1"), stop("web.3", "scaled to 1"))


def test_a_worker_scaled_to_nothing_has_no_slot_left():
    scenario = running(web).orders(orders.ScaleWorker(name="web", replicas=0))
    scenario.expects(stop("web", "scaled to 0")).vanishes("web").expects(forget("web")).expects()
    assert scenario.observed.slots == {}


def test_a_surplus_slot_that_has_failed_is_put_to_rest_and_forgotten():
    two = replace(web, replicas=2)
    scenario = running(two).exits("web.2", 1).orders(orders.ScaleWorker(name="web", replicas=1))
    scenario.expects(stop("web.2", "scaled to 1")).vanishes("web.2")
    scenario.expects(forget("web.2")).expects()


# The supervisor itself


def test_a_paused_supervisor_does_nothing_whatever_happens():
    scenario = running(web, db).orders(orders.PauseSupervisor())
    scenario.at(1).exits("web", 1).declares(web, replace(db, command=("x",)))
    scenario.expects(wake_at=NEVER).at(1e6).expects(wake_at=NEVER)
    scenario.orders(orders.ResumeSupervisor()).expects(start_again(web), stop("db"))


@pytest.mark.accepts("P6")
def test_a_supervisor_that_leaves_its_workers_does_nothing_more():
    scenario = running(web, pump).orders(orders.ShutDown(keep_workers=True))
    scenario.exits("web", 1).expects(wake_at=NEVER)


def test_a_supervisor_that_ends_stops_dependents_first_and_companions_last():
    (
        running(pump, db, app, web)
        .at(5)
        .orders(orders.ShutDown())
        .expects(stop_for_now("app", "the supervisor is stopping"), stop_for_now("web"))
        .vanishes("web")
        .expects()
        .vanishes("app")
        .expects(stop_for_now("db"))
        .vanishes("db")
        .expects(stop_for_now("@pump", "the supervisor is stopping"))
        .vanishes("@pump")
        .expects()
    )


def test_a_paused_supervisor_that_ends_stops_its_workers_all_the_same():
    running(web).orders(orders.PauseSupervisor()).orders(orders.ShutDown()).expects(
        stop_for_now("web")
    )


def test_a_supervisor_that_is_hurried_gives_nobody_any_grace():
    scenario = running(db, app).at(5).orders(orders.ShutDown()).expects(stop_for_now("app"))
    scenario.at(6).expects(wake_at=35).orders(orders.ShutDown(hurry=True))
    scenario.expects(kill("app")).vanishes("app")
    scenario.expects(stop_for_now("db")).expects(kill("db")).vanishes("db").expects()


def test_a_start_under_way_is_stopped_too_when_the_supervisor_ends():
    scenario = (
        Scenario(web).expects(start(web)).orders(orders.ShutDown()).expects(stop_for_now("web"))
    )
    scenario.cannot_start("web").expects()
    assert scenario.status("web").state is State.STOPPED


@pytest.mark.accepts("P8")
def test_the_end_of_the_supervisor_forgives_no_failures_and_lets_one_shots_run_again():
    failing = replace(db, max_restarts=0)
    scenario = running(web, failing, once).exits("web", 1).exits("db", 1)
    scenario.exits("once", 0).orders(orders.PauseSupervisor()).orders(orders.ShutDown())
    scenario.expects(stop("once")).vanishes("once").expects()
    assert scenario.status("once").state is State.STOPPED
    assert scenario.status("web").failures == 1
    assert scenario.status("db").failures == 1


def test_what_has_ended_or_waits_is_stopped_because_the_supervisor_ends_and_for_no_other_reason():
    scenario = Scenario(once, replace(db, autostart=False), app).expects(start(once), wait("app"))
    scenario.rises("once").exits("once", 0).orders(orders.ShutDown())
    why = "the supervisor is stopping"
    scenario.expects(stop("once", why=why), rest("app", why=why))


@pytest.mark.accepts("P8")
def test_a_worker_that_loops_is_not_forgiven_because_the_supervisor_ends_while_it_is_up():
    scenario = failing_again(web).orders(orders.ShutDown()).expects(stop_for_now("web"))
    scenario.exits("web", 0).vanishes("web").expects()
    assert scenario.status("web").failures == 1
    again = started_anew(scenario).expects(start_again(web)).rises("web").at(20).exits("web", 1)
    assert again.status("web").failures == 2


def test_one_that_was_up_long_enough_is_in_no_series_of_failures():
    scenario = failing_again(web).at(100).orders(orders.ShutDown())
    scenario.expects(stop_for_now("web")).vanishes("web")
    assert scenario.status("web").failures == 0


@pytest.mark.accepts("P8")
def test_nor_is_one_forgiven_that_waits_for_another_when_the_supervisor_ends():
    scenario = running(db, app).exits("app", 1).exits("db", 1).orders(orders.StopWorkers(names=DB))
    scenario.expects(stop("db"), wait("app")).vanishes("db").orders(orders.ShutDown())
    scenario.expects(stop_for_now("app")).vanishes("app")
    assert scenario.status("app").failures == 1


def test_one_that_is_stopped_for_its_own_sake_while_the_supervisor_ends_is_forgiven():
    scenario = running(db, app).exits("db", 1).expects(start_again(db)).rises("db")
    scenario.orders(orders.StopWorkers(names=("db", "app"))).orders(orders.ShutDown())
    scenario.expects(stop("app")).vanishes("app").expects(stop("db")).vanishes("db")
    assert scenario.status("db").failures == 0


def test_a_person_forgives_what_was_stopped_with_the_supervisor():
    scenario = failing_again(web).orders(orders.ShutDown()).expects(stop_for_now("web"))
    again = started_anew(scenario.vanishes("web")).orders(orders.StartWorkers(names=WEB))
    again.expects(start(web)).rises("web").at(20).exits("web", 1)
    assert again.status("web").failures == 1


def failing_again(spec: WorkerSpec) -> Scenario:
    """Give a worker that has failed and is up again."""
    scenario = running(spec).at(5).exits(spec.name, 1).expects(start_again(spec))
    return scenario.rises(spec.name).at(10)


def started_anew(scenario: Scenario) -> Scenario:
    """Let the next supervisor go on with what the last one knew."""
    scenario.declaration = replace(scenario.declaration, closing=None)
    return scenario


def test_a_companion_that_is_no_longer_needed_is_stopped_like_any_other():
    scenario = running(pump, web)
    scenario.declaration = replace(
        scenario.declaration,
        workers={"web": scenario.declaration.workers["web"]},
    )
    scenario.expects(stop("@pump", "no longer declared"))


# Looking at some


def test_a_plan_can_be_made_for_some_workers_only():
    scenario = Scenario(web, db)
    some = plan(scenario.declaration, scenario.observed, Instant(0.0), names=("db",))
    assert [action.slot for action in some.actions] == ["db"]
    nobody = plan(scenario.declaration, scenario.observed, Instant(0.0), names=("nobody",))
    assert (nobody.actions, nobody.wakes) == ((), ())


def test_who_comes_after_whom_may_be_handed_in():
    scenario = running(db, app).orders(orders.StopWorkers(names=("db", "app")))
    now = scenario.now.mono
    given = plan(scenario.declaration, scenario.observed, now, after={"db": ("app",)})
    assert given == scenario.decides()
    unordered = plan(scenario.declaration, scenario.observed, now, after={})
    assert {action.slot for action in unordered.actions} == {"db", "app"}


def test_every_worker_that_waits_for_time_to_pass_says_until_when():
    scenario = running(replace(web, replicas=2), db).at(1)
    scenario.orders(orders.StopWorkers(names=("web", "db"))).acts()
    scenario.at(2)
    assert scenario.decides().wakes == (("web", 31.0), ("db", 31.0))


@pytest.mark.accepts("B-21")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("declared", [(), (web,), (replace(web, enabled=False),)])
def test_every_state_has_an_answer(state, declared):
    scenario = Scenario(*declared).at(10)
    status = SlotStatus(slot="web", state=state, generation=1, terms=web, failures=1, seen=99)
    scenario.observed = scenario.observed.with_changes([status], ())
    assert len(scenario.decides().actions) <= 1


@pytest.mark.accepts("B-21")
@pytest.mark.parametrize("declared", [(), (web,)])
def test_what_is_no_state_is_an_error(declared):
    scenario = Scenario(*declared)
    strange = SlotStatus(slot="web", state="napping")  # type: ignore[arg-type]
    scenario.observed = scenario.observed.with_changes([strange], ())
    with pytest.raises(AssertionError):
        scenario.decides()
