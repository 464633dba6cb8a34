from __future__ import annotations

import pytest

from uphold.core import orders
from uphold.core.ending import Ending, ending
from uphold.core.events import StopFailed
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import Fault, SlotStatus, State
from uphold.testing.scenarios import Scenario

web = WorkerSpec(name="web", command=("serve",))
db = WorkerSpec(name="db", command=("store",))
pump = WorkerSpec(name="@pump", command=("pump",))


def closing(*specs: WorkerSpec) -> Scenario:
    """Everything up, and the supervisor told to end."""
    scenario = Scenario(*specs)
    scenario.acts()
    return scenario.rises(*scenario.observed.slots).orders(orders.ShutDown())


def end(scenario: Scenario) -> Ending | None:
    return ending(scenario.declaration, scenario.observed)


def survives(scenario: Scenario, slot: str, code: str = "UPH_STOP_UNKILLABLE") -> None:
    fault = Fault(code=code, message=f"'{slot}' survived SIGKILL")
    scenario.happens(StopFailed(slot=slot, generation=1, fault=fault))


def test_a_supervisor_that_nobody_told_to_end_goes_on():
    assert end(Scenario()) is None
    assert end(Scenario(web)) is None


@pytest.mark.accepts("P6")
def test_one_that_leaves_its_workers_ends_at_once():
    scenario = Scenario(web)
    scenario.acts()
    scenario.rises("web").orders(orders.ShutDown(keep_workers=True))
    assert end(scenario) == Ending(None)


@pytest.mark.accepts("P3", "D-27")
def test_it_ends_when_nothing_is_alive_any_more_companions_included():
    scenario = closing(pump, web)
    assert end(scenario) is None
    scenario.acts()
    assert end(scenario.exits("web", signal=15)) is None, "the exit alone is no proof"
    assert end(scenario.vanishes("web")) is None
    scenario.acts()
    assert end(scenario.vanishes("@pump")) == Ending(None)


@pytest.mark.accepts("B-21")
@pytest.mark.parametrize("state", State)
def test_only_states_in_which_nothing_lives_let_it_end(state):
    scenario = Scenario(web).orders(orders.ShutDown())
    status = SlotStatus(slot="web", state=state)
    scenario.observed = scenario.observed.with_changes([status], ())
    alive = state in (State.STARTING, State.RUNNING, State.STOPPING)
    assert (end(scenario) is None) is alive


@pytest.mark.accepts("P3", "P4")
def test_what_cannot_be_killed_does_not_keep_it_for_ever_and_is_named():
    scenario = closing(pump, web, db)
    scenario.acts()
    survives(scenario, "web")
    assert end(scenario) is None, "db may still end"
    survives(scenario, "db")
    assert end(scenario) == Ending("'web' survived SIGKILL; 'db' survived SIGKILL")


def test_a_companion_that_cannot_be_killed_is_named_when_only_it_is_left():
    scenario = closing(pump)
    scenario.acts()
    survives(scenario, "@pump")
    assert end(scenario) == Ending("'@pump' survived SIGKILL")


def test_other_trouble_in_stopping_is_not_the_end():
    scenario = closing(web)
    scenario.acts()
    survives(scenario, "web", code="UPH_DRIVER_FAILED")
    assert end(scenario) is None
