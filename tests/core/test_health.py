from __future__ import annotations

from dataclasses import replace

import pytest

from uphold.core import orders
from uphold.core.health import condition, essentials, fatal, slot_health, supervisor_health
from uphold.core.specs import RestartPolicy, WorkerSpec
from uphold.core.statuses import Condition, Fault, Health, SlotStatus, State
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))
db = WorkerSpec(name="db", command=("store",))
FAULT = Fault(code="UPH_WORKER_EXITED", message="exited with code 1 after 0.2 s")

TABLE = {
    # state: (health, health with an error, condition, condition with an error)
    State.STOPPED: ("unknown", "unknown", "stopped", "error"),
    State.WAITING: ("unknown", "unknown", "stopped", "error"),
    State.STARTING: ("unknown", "unknown", "stopped", "stopped"),
    State.RUNNING: ("healthy", "healthy", "running", "error"),
    State.STOPPING: ("unknown", "unhealthy", "running", "error"),
    State.BACKOFF: ("unhealthy", "unhealthy", "error", "error"),
    State.EXITED: ("unknown", "unhealthy", "stopped", "error"),
    State.FAILED: ("unhealthy", "unhealthy", "error", "error"),
}


@pytest.mark.accepts("B-21", "D-19", "D-22")
@pytest.mark.parametrize("state", State)
def test_every_state_has_a_health_and_a_condition(state):
    fine = SlotStatus(slot="web", state=state)
    troubled = replace(fine, error=FAULT)
    assert (
        slot_health(fine),
        slot_health(troubled),
        condition(fine),
        condition(troubled),
    ) == TABLE[state]


@pytest.mark.accepts("D-22", "B-35")
def test_a_later_good_run_clears_the_error():
    scenario = up(web).at(1).exits("web", 1)
    assert condition(scenario.status("web")) is Condition.ERROR
    scenario.acts()
    scenario.rises("web")
    assert condition(scenario.status("web")) is Condition.RUNNING
    assert slot_health(scenario.status("web")) is Health.HEALTHY


@pytest.mark.accepts("D-22")
def test_a_worker_that_stopped_because_of_an_error_keeps_showing_error():
    scenario = up(replace(web, restart=RestartPolicy.NO)).at(1).exits("web", 1).at(1e6)
    scenario.acts()
    assert condition(scenario.status("web")) is Condition.ERROR


def test_what_runs_is_healthy_and_so_is_the_supervisor():
    assert overall(up(web, db)) is Health.HEALTHY
    assert overall(Scenario(web)) is Health.HEALTHY, "nothing is wrong with what has yet to start"
    assert overall(Scenario()) is Health.HEALTHY


@pytest.mark.accepts("D-20", "D-17", "B-40")
def test_one_failing_worker_makes_the_supervisor_degraded_and_leaves_the_others_running():
    scenario = up(web, db).exits("web", 1)
    assert overall(scenario) is Health.DEGRADED
    assert slot_health(scenario.status("db")) is Health.HEALTHY
    assert ended(scenario) is None


@pytest.mark.parametrize("name", ["@pump", "web"])
def test_a_failing_companion_or_essential_worker_makes_it_unhealthy(name):
    spec = replace(web, name=name, essential=name == "web")
    assert overall(up(db, spec).exits(name, 1)) is Health.UNHEALTHY


@pytest.mark.parametrize(
    "wish",
    [
        orders.PauseWorkers(names=("web",)),
        orders.DisableWorkers(names=("web",)),
        orders.QuarantineWorkers(names=("web",)),
    ],
)
def test_what_people_hold_back_does_not_count(wish):
    assert overall(up(web).exits("web", 1).orders(wish)) is Health.HEALTHY


@pytest.mark.parametrize("essential", [True, False])
def test_only_an_essential_worker_that_ended_for_good_ends_everything(essential):
    one_shot = replace(web, restart=RestartPolicy.NO, essential=essential)
    scenario = up(one_shot)
    assert ended(scenario) is None
    scenario.at(2).exits("web", 3)
    said = ended(scenario)
    expected = "essential worker 'web' has exited: exited with code 3 after 2.0 s"
    assert said == (expected if essential else None)


def test_an_essential_worker_that_was_given_up_ends_everything():
    scenario = Scenario(db, replace(web, essential=True))
    assert ended(scenario) is None
    scenario.acts()
    scenario.cannot_start("web", "no such command", hopeless=True).acts()
    said = ended(scenario)
    assert said == "essential worker 'web' has failed: no such command"


def test_an_essential_worker_in_back_off_may_still_recover():
    scenario = up(replace(web, essential=True)).exits("web", 1)
    assert ended(scenario) is None


def test_an_essential_worker_that_people_stopped_ends_nothing():
    scenario = up(replace(web, essential=True, restart=RestartPolicy.NO)).exits("web", 0)
    scenario.orders(orders.StopWorkers(names=("web",)))
    assert ended(scenario) is None


def up(*specs: WorkerSpec) -> Scenario:
    scenario = Scenario(*specs)
    scenario.acts()
    return scenario.rises(*scenario.observed.slots)


def overall(scenario: Scenario) -> Health:
    return supervisor_health(scenario.declaration, scenario.observed)


def ended(scenario: Scenario) -> str | None:
    declaration = scenario.declaration
    return fatal(essentials(declaration), declaration, scenario.observed)
