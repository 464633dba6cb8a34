from __future__ import annotations

import pytest

from uphold.core import orders
from uphold.core.absorbing import Observed
from uphold.core.declaring import Declaration, declare
from uphold.core.orders import Order
from uphold.core.passes import (
    START_PATIENCE,
    START_TIMEOUT,
    examine,
    left_behind,
    longest_pass,
    unsettled,
)
from uphold.core.specs import (
    Heartbeat,
    Instant,
    Need,
    Probe,
    Schedule,
    StopRule,
    WorkerSpec,
)
from uphold.core.statuses import (
    UNKILLABLE,
    Fault,
    Finding,
    Health,
    Identity,
    SlotStatus,
    State,
)
from uphold.core.vitals import Vital

NOW = Instant(10_000.0)
LONG_AGO = Instant(1_000.0)
JUST_NOW = Instant(NOW - 5.0)
WEB = WorkerSpec(name="web", command=("web",))
APP = WorkerSpec(name="app", command=("app",), depends_on=(("web", Need.HEALTHY),))
BEATS = WorkerSpec(name="web", command=("web",), heartbeat=Heartbeat(file="/b", stale_after=300.0))
SICK = Finding(health=Health.UNHEALTHY, why="no answer")
STALE = Finding(health=Health.DEGRADED, why="no heartbeat for 1 x 300 s")
GOOD = Finding(health=Health.HEALTHY, why="beating")
CRASHED = Fault(code="UPH_WORKER_EXITED", message="exited with code 3 after 0.0 s")


def declared(*specs, wishes=()):
    declaration = Declaration()
    for number, wish in enumerate((orders.Declare(specs=specs), *wishes)):
        order = Order(id=f"job_{number}", wish=wish, author="ann", origin="test", at=0.0)
        declaration = declare(declaration, order)
        assert isinstance(declaration, Declaration)
    return declaration


def slot(state, spec=WEB, name=None, **more):
    alive = state in (State.STARTING, State.RUNNING, State.STOPPING)
    identity = Identity(pid=7, start_ticks=1, boot_id="b", inode=1, nonce="n") if alive else None
    terms = {"since": LONG_AGO, "started_at": LONG_AGO, "identity": identity, "terms": spec}
    return SlotStatus(slot=name or spec.name, state=state, **{**terms, **more})


def known(*statuses):
    return Observed().with_changes(statuses, ())


def check(spec, *statuses, others=(), wishes=(), vitals=None):
    found = examine(
        declared(spec, *others, wishes=wishes),
        known(*statuses),
        NOW,
        vitals=vitals or {},
        names=(spec.name,),
    )
    return found[0]


@pytest.mark.accepts("C-017", "C-018", "C-T04")
def test_a_worker_whose_process_is_there_is_running_and_healthy():
    found = check(WEB, slot(State.RUNNING))
    assert (found.running, found.healthy, found.state) == (True, True, "running")
    assert (found.wanted, found.paused, found.starting) == (True, False, False)
    assert (found.heartbeat, found.problem) == ("none", None)


@pytest.mark.accepts("C-007", "C-018", "C-T05")
@pytest.mark.parametrize("state", [State.BACKOFF, State.FAILED, State.STOPPED])
def test_one_that_shall_run_and_does_not_is_a_problem(state):
    found = check(WEB, slot(state, why="exited with code 3"))
    assert (found.running, found.healthy) == (False, False)
    assert found.problem == f"web is {state}: exited with code 3"


def test_one_that_nobody_ever_started_is_a_problem():
    assert check(WEB).problem == "web is stopped: it was not started"


@pytest.mark.accepts("C-018", "C-147", "C-T06", "C-T07")
def test_a_heartbeat_is_good_or_stale_or_not_there():
    vitals = {"web": Vital(beat_wall=1234.0)}
    good = check(BEATS, slot(State.RUNNING, BEATS, finding=GOOD), vitals=vitals)
    assert (good.heartbeat, good.healthy, good.last_heartbeat) == ("good", True, 1234.0)
    stale = check(BEATS, slot(State.RUNNING, BEATS, finding=STALE))
    assert (stale.heartbeat, stale.healthy, stale.running) == ("stale", False, True)
    assert "no heartbeat for 1 x 300 s" in stale.problem
    missing = check(BEATS, slot(State.RUNNING, BEATS, started_at=JUST_NOW))
    assert (missing.heartbeat, missing.problem, missing.starting) == ("none", None, True)
    assert check(BEATS, slot(State.BACKOFF, BEATS)).heartbeat == "none"


def test_what_was_started_a_moment_ago_is_starting_and_not_unhealthy():
    for state, more in (
        (State.STARTING, {}),
        (State.RUNNING, {"finding": SICK}),
        (State.STARTING, {"identity": None, "since": JUST_NOW}),
    ):
        young = check(WEB, slot(state, started_at=JUST_NOW, **more))
        assert (young.problem, young.starting, young.healthy) == (None, True, False)
    late = slot(State.STARTING, started_at=Instant(NOW - START_TIMEOUT - 1))
    assert check(WEB, late).problem == "web is not ready after 61 s"
    assert check(WEB, slot(State.RUNNING, finding=SICK)).problem == "web is unhealthy: no answer"


@pytest.mark.parametrize("way", ["notify", "fd"])
def test_nobody_is_blamed_for_a_word_that_may_have_come_while_nobody_listened(way):
    says = WorkerSpec(name="web", command=("web",), ready=Probe(way=way))
    found = check(says, slot(State.STARTING, says))
    assert (found.problem, found.running) == (None, True)


@pytest.mark.accepts("C-010")
@pytest.mark.parametrize(
    ("wish", "paused"),
    [
        (orders.PauseWorkers(names=("web",)), True),
        (orders.StopWorkers(names=("web",)), False),
        (orders.DisableWorkers(names=("web",)), False),
        (orders.QuarantineWorkers(names=("web",)), False),
        (orders.PauseSupervisor(), True),
    ],
)
def test_what_people_keep_down_is_no_problem(wish, paused):
    found = check(WEB, slot(State.STOPPED), wishes=(wish,))
    assert (found.problem, found.wanted, found.paused) == (None, False, paused)


def test_a_paused_supervisor_still_sees_who_is_ill():
    found = check(WEB, slot(State.RUNNING, finding=SICK), wishes=(orders.PauseSupervisor(),))
    assert found.problem == "web is unhealthy: no answer"


def test_a_job_that_has_ended_well_is_no_problem_and_one_that_failed_is():
    assert check(WEB, slot(State.EXITED)).problem is None
    failed = check(WEB, slot(State.EXITED, error=CRASHED))
    assert failed.problem == "web has ended: exited with code 3 after 0.0 s"
    job = WorkerSpec(name="web", command=("web",), schedule=Schedule(every=60.0))
    assert check(job, slot(State.WAITING, job)).problem is None
    told = check(job, slot(State.WAITING, job, error=CRASHED)).problem
    assert told == "the last run of web failed: exited with code 3 after 0.0 s"


def test_waiting_is_a_problem_only_where_nobody_will_come():
    waits = slot(State.WAITING, APP)
    starting = slot(State.STARTING, started_at=JUST_NOW)
    assert check(APP, waits, starting, others=(WEB,)).problem is None
    held = (orders.PauseWorkers(names=("web",)),)
    assert check(APP, waits, slot(State.STOPPED), others=(WEB,), wishes=held).problem is None
    failed = check(APP, waits, slot(State.FAILED), others=(WEB,))
    assert failed.problem == "app waits for 'web' to be healthy (it is failed)"
    assert check(APP, waits, slot(State.RUNNING), others=(WEB,)).problem == "app was not started"
    assert "not declared" in check(APP, waits).problem


def test_one_that_cannot_be_stopped_is_a_problem_wanted_or_not():
    fault = Fault(code=UNKILLABLE, message="it survived SIGKILL")
    stuck = slot(State.STOPPING, error=fault)
    assert check(WEB, stuck).problem == "web is still stopping: it survived SIGKILL"
    assert check(WEB, slot(State.STOPPING)).problem == "web is still stopping"
    assert list(left_behind(declared(WEB), known(stuck))) == []
    told = ["web could not be stopped: it survived SIGKILL"]
    assert list(left_behind(declared(), known(stuck))) == told
    assert list(left_behind(declared(), known(slot(State.STOPPED)))) == []


def test_slots_that_differ_are_told_as_mixed():
    pair = WorkerSpec(name="web", command=("web",), replicas=2)
    found = check(pair, slot(State.RUNNING, pair), slot(State.FAILED, pair, name="web.2"))
    assert (found.state, found.running) == ("mixed", False)
    assert found.problem.startswith("web.2 is failed")


def test_a_worker_without_slots_is_not_running_and_no_problem():
    none = WorkerSpec(name="web", command=("web",), replicas=0)
    found = check(none)
    assert (found.running, found.problem, found.state) == (False, None, "stopped")


def test_all_that_are_declared_are_examined_but_uphold_itself():
    pump = WorkerSpec(name="@pump", command=("pump",))
    found = examine(declared(WEB, APP, pump), known(), NOW, vitals={})
    assert [each.name for each in found] == ["web", "app"]


@pytest.mark.accepts("C-118", "B-72")
def test_a_start_has_come_to_something_when_it_has_stayed_up_for_a_moment():
    just = slot(State.RUNNING, started_at=Instant(NOW - 0.1))
    assert unsettled({"web"}, known(just), NOW) == ("web",)
    assert unsettled({"web"}, known(slot(State.RUNNING)), NOW) == ()
    assert unsettled(set(), known(just), NOW) == (), "another pass has seen to it"
    assert unsettled({"web"}, known(slot(State.BACKOFF)), NOW) == ()


def test_one_that_was_started_is_waited_for_until_it_is_ready_but_not_for_ever():
    starting = slot(State.STARTING, started_at=JUST_NOW)
    assert unsettled({"web"}, known(starting), NOW) == ("web",)
    assert unsettled({"web"}, known(starting), Instant(JUST_NOW + START_PATIENCE)) == ()
    assert unsettled(set(), known(starting), NOW) == ()
    assert unsettled({"web"}, known(slot(State.STARTING)), NOW) == ()
    begun = slot(State.STARTING, identity=None, since=JUST_NOW)
    assert unsettled(set(), known(begun), NOW) == ("web",)


def test_a_stop_is_waited_for_as_long_as_it_may_take():
    slow = WorkerSpec(name="web", command=("web",), stop=StopRule(grace=100.0))
    assert unsettled(set(), known(slot(State.STOPPING, slow)), NOW) == ("web",)
    fault = Fault(code=UNKILLABLE, message="it survived SIGKILL")
    assert unsettled(set(), known(slot(State.STOPPING, error=fault)), NOW) == ()
    assert longest_pass(declared(slow)) > 100.0 + START_PATIENCE


def test_nobody_waits_for_what_belongs_to_uphold():
    pump = WorkerSpec(name="@pump", command=("pump",))
    assert unsettled({"@pump"}, known(slot(State.STOPPING, pump)), NOW) == ()
