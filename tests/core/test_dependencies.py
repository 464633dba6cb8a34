from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.steps import forget, kill, rest, start, stop, stop_for_now, wait
from core.stories import World
from uphold.core import orders
from uphold.core.absorbing import Observed
from uphold.core.declaring import Declaration, Entry
from uphold.core.dependencies import (
    dependents,
    find_cycles,
    longest_grace,
    still_leaning,
    unmet,
    without_circles,
)
from uphold.core.events import StopFailed
from uphold.core.specs import Need, RestartPolicy, Schedule, StopRule, WorkerSpec
from uphold.core.statuses import Fault, SlotStatus, State
from uphold.testing.scenarios import Scenario

db = WorkerSpec(name="db", command=("store",))
web = WorkerSpec(name="web", command=("serve",), depends_on=(("db", Need.HEALTHY),))
job = WorkerSpec(name="job", command=("migrate",), restart=RestartPolicy.NO)


def after(spec: WorkerSpec, **needs: Need) -> WorkerSpec:
    return replace(spec, depends_on=tuple(needs.items()))


def waits_for(scenario: Scenario, name: str = "web") -> str | None:
    return unmet(scenario.declaration.workers[name], scenario.declaration, scenario.observed)


def test_what_depends_on_nothing_waits_for_nothing():
    assert waits_for(Scenario(db), "db") is None


def test_a_worker_waits_for_what_is_not_declared():
    assert waits_for(Scenario(web)) == "'db', which is not declared"


def test_the_reason_for_waiting_names_the_other_and_how_it_stands():
    scenario = Scenario(db, web)
    assert waits_for(scenario) == "'db' to be healthy (it is stopped)"
    scenario.acts()
    assert waits_for(scenario) == "'db' to be healthy (it is starting)"
    scenario.rises("db")
    assert waits_for(scenario) is None
    scenario.at(1).exits("db", 1)
    assert waits_for(scenario) == "'db' to be healthy (it is backoff)"


@pytest.mark.parametrize(
    ("wish", "standing"),
    [
        (orders.StopWorkers(names=("db",)), "it is stopped"),
        (orders.PauseWorkers(names=("db",)), "it is paused"),
        (orders.DisableWorkers(names=("db",)), "it is disabled"),
        (orders.QuarantineWorkers(names=("db",)), "it is quarantined"),
        (orders.ScaleWorker(name="db", replicas=0), "it is scaled to 0"),
    ],
)
def test_the_reason_says_when_a_person_holds_the_other_back(wish, standing):
    scenario = Scenario(db, web).orders(wish)
    assert waits_for(scenario) == f"'db' to be healthy ({standing})"


def test_every_slot_of_the_other_must_be_there():
    scenario = Scenario(replace(db, replicas=2), web)
    scenario.acts()
    scenario.rises("db")
    assert waits_for(scenario) == "'db' to be healthy (it is starting)"
    scenario.rises("db.2")
    assert waits_for(scenario) is None


@pytest.mark.parametrize(
    ("need", "running", "ended_well", "ended_badly"),
    [
        (Need.STARTED, True, True, False),
        (Need.HEALTHY, True, False, False),
        (Need.COMPLETED, False, True, False),
    ],
)
def test_what_each_need_asks_of_a_one_shot(need, running, ended_well, ended_badly):
    both = Scenario(job, after(web, job=need))
    both.acts()
    assert waits_for(both) is not None
    both.rises("job")
    assert (waits_for(both) is None) is running
    worse = Scenario(job, after(web, job=need))
    worse.acts()
    worse.rises("job").at(1).exits("job", 1)
    assert (waits_for(worse) is None) is ended_badly
    both.at(1).exits("job", 0)
    assert (waits_for(both) is None) is ended_well


def test_a_reset_does_not_make_a_bad_end_a_good_one():
    scenario = Scenario(job, after(web, job=Need.COMPLETED))
    scenario.acts()
    scenario.rises("job").at(1).exits("job", 1).orders(orders.ResetWorkers(names=("job",)))
    scenario.acts()
    assert scenario.status("job").error is None
    assert waits_for(scenario) == "'job' to be completed (it exited with code 1 after 1.0 s)"


def test_waiting_for_the_end_of_something_that_runs_says_so():
    scenario = Scenario(job, after(web, job=Need.COMPLETED))
    scenario.acts()
    scenario.rises("job")
    assert waits_for(scenario) == "'job' to be completed (it is running)"


def test_a_worker_starts_when_what_it_waits_for_is_up():
    (
        Scenario(db, web)
        .expects(start(db), wait("web", "waits for 'db' to be healthy (it is stopped)"))
        .expects(wait("web", "it is starting"))
        .expects()
        .at(2)
        .rises("db")
        .expects(start(web))
    )


def test_a_dependency_that_fails_later_leaves_its_dependents_alone():
    scenario = Scenario(db, web).expects(start(db), wait("web")).rises("db").expects(start(web))
    scenario.rises("web").at(100).exits("db", 1)
    assert [action.slot for action in scenario.acts().actions] == ["db"]


def test_dependents_says_who_comes_after_whom():
    scenario = Scenario(db, web, replace(job, depends_on=(("db", Need.STARTED),)))
    assert dependents(scenario.declaration.workers) == {"db": ("web", "job")}


def test_those_no_longer_declared_still_come_after_what_they_were_started_under():
    scenario = Scenario(db, web).expects(start(db), wait("web")).rises("db").expects(start(web))
    scenario.rises("web").declares(db)
    assert dependents(scenario.declaration.workers) == {}
    assert dependents(scenario.declaration.workers, scenario.observed) == {"db": ("web",)}


def test_what_was_never_started_has_no_terms_and_comes_after_nobody():
    scenario = Scenario(db, web).expects(start(db), wait("web")).declares(db)
    assert dependents(scenario.declaration.workers, scenario.observed) == {}


def test_dependents_that_go_down_too_go_first():
    scenario = Scenario(db, web).expects(start(db), wait("web")).rises("db").expects(start(web))
    scenario.rises("web")
    assert _leans(scenario) is None, "web stays: it does not hold db back"
    (
        scenario.at(1)
        .orders(orders.StopWorkers(names=("db", "web")))
        .expects(stop("web"))
        .expects(wake_at=31)
    )
    assert _leans(scenario) == "web"
    scenario.at(2).exits("web", signal=15).vanishes("web")
    assert _leans(scenario) is None
    scenario.expects(stop("db"))


def test_a_dependency_alone_can_be_stopped_under_its_dependents():
    scenario = Scenario(db, web).expects(start(db), wait("web")).rises("db").expects(start(web))
    scenario.rises("web").orders(orders.StopWorkers(names=("db",))).expects(stop("db"))


def test_removed_workers_are_stopped_in_reverse_order_slot_by_slot():
    pair = replace(db, replicas=2)
    scenario = Scenario(pair, web)
    scenario.expects(start(pair), start(pair, "db.2"), wait("web")).rises("db", "db.2")
    scenario.expects(start(web)).rises("web")
    scenario.at(1).declares().expects(stop("web", "no longer declared"))
    scenario.vanishes("web").expects(stop("db"), stop("db.2"), forget("web"))


@pytest.mark.accepts("P3")
def test_removed_workers_that_came_after_each_other_by_turns_are_stopped_all_the_same():
    """The run of a job goes on under its old terms, while its neighbour's are changed."""
    job = replace(web, schedule=Schedule(every=3600.0, at_load=True))
    scenario = Scenario(db, after(job, db=Need.STARTED))
    scenario.acts()
    scenario.rises("db").acts()
    scenario.rises("web").declares(after(db, web=Need.STARTED), replace(job, command=("other",)))
    scenario.acts()
    recorded = [scenario.status(name).terms for name in ("db", "web")]
    assert [terms and [name for name, _ in terms.depends_on] for terms in recorded] == [
        ["web"],
        ["db"],
    ]
    scenario.declares().expects(stop("db")).expects().vanishes("db")
    scenario.expects(forget("db"), stop("web")).vanishes("web").expects(forget("web"))


def test_a_circle_is_opened_at_the_same_place_whoever_is_known_first():
    specs = [after(spec, **{other: Need.STARTED}) for spec, other in ((db, "web"), (web, "db"))]
    known = [SlotStatus(slot=spec.name, state=State.RUNNING, terms=spec) for spec in specs]
    for order in (known, known[::-1]):
        assert dependents({}, Observed().with_changes(order, ())) == {"web": ("db",)}


def test_terms_from_the_books_lose_only_what_closes_a_circle():
    specs = {
        "a": after(replace(web, name="a"), b=Need.STARTED, c=Need.HEALTHY),
        "b": after(replace(web, name="b"), c=Need.STARTED),
        "c": after(replace(web, name="c"), a=Need.STARTED, gone=Need.STARTED),
    }
    kept = without_circles(specs)
    assert kept == specs | {"c": after(specs["c"], gone=Need.STARTED)}
    assert list(kept) == list(specs)
    assert list(find_cycles(tuple(kept.values()))) == []


def test_what_is_removed_is_looked_at_once_however_long_the_chain_and_circles_are():
    def calls(size):
        """Count the calls of Python functions for a chain with a circle at its end."""
        names = [f"w{number:04}" for number in range(size)]
        links = zip(names, [*names[1:], names[-2]], strict=True)
        specs = [after(replace(web, name=name), **{other: Need.STARTED}) for name, other in links]
        known = [SlotStatus(slot=spec.name, state=State.RUNNING, terms=spec) for spec in specs]
        observed = Observed().with_changes(known, ())
        counted = 0

        def count(_frame, event, _argument):
            nonlocal counted
            counted += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            found = dependents({}, observed)
        finally:
            sys.setprofile(before)
        assert len(found) == size - 1, "only the last link is left out"
        return counted

    assert calls(400) < 4.5 * calls(100)


NAMES = ("a", "b", "c", "d", "@pump")
RECORDED = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from((*NAMES, "gone")), unique=True) for name in NAMES}
)


@pytest.mark.accepts("P3", "P4", "M-21")
@settings(max_examples=60, deadline=None, database=None)
@given(RECORDED, st.booleans(), st.sets(st.sampled_from(("a", "b"))))
def test_removed_workers_are_stopped_whatever_they_were_started_after(recorded, closing, kept):
    world = World(Scenario(*(replace(web, name=name) for name in sorted(kept))))
    for name, others in recorded.items():
        spec = after(replace(web, name=name), **dict.fromkeys(others, Need.STARTED))
        status = SlotStatus(slot=name, state=State.RUNNING, generation=1, terms=spec)
        world.scenario.observed = world.scenario.observed.with_changes([status], ())
    if closing:
        world.scenario.orders(orders.ShutDown())
    world.settles()
    left = world.scenario.observed.slots
    assert set(left) == kept
    assert all((left[name].state is State.STOPPED) is closing for name in kept)


def test_a_dependent_that_cannot_be_killed_holds_nobody_back_for_ever():
    scenario = Scenario(db, web).expects(start(db), wait("web")).rises("db").expects(start(web))
    scenario.rises("web").orders(orders.ShutDown()).expects(stop_for_now("web"))
    scenario.at(30).expects(kill("web"))
    fault = Fault(code="UPH_STOP_UNKILLABLE", message="process 7 of 'web' survived SIGKILL")
    scenario.at(32).happens(StopFailed(slot="web", generation=1, fault=fault))
    scenario.expects(stop_for_now("db"))


def test_find_cycle_finds_nothing_where_there_is_none():
    assert list(find_cycles([])) == []
    assert list(find_cycles([db, web, job])) == []
    diamond = [
        db,
        after(WorkerSpec(name="a"), db=Need.STARTED),
        after(WorkerSpec(name="b"), db=Need.STARTED),
        after(WorkerSpec(name="c"), a=Need.STARTED, b=Need.STARTED),
    ]
    assert list(find_cycles(diamond)) == []
    assert list(find_cycles(diamond[::-1])) == []


def test_find_cycle_names_the_circle_from_end_to_end():
    a = after(WorkerSpec(name="a"), b=Need.STARTED)
    b = after(WorkerSpec(name="b"), c=Need.STARTED)
    c = after(WorkerSpec(name="c"), b=Need.STARTED)
    assert list(find_cycles([a, b, c])) == [("b", "c", "b")]
    assert list(find_cycles([after(WorkerSpec(name="me"), me=Need.STARTED)])) == [("me", "me")]


def test_find_cycle_leaves_unknown_names_to_others():
    assert list(find_cycles([after(web, nobody=Need.STARTED)])) == []


def test_a_full_stop_takes_as_long_as_the_longest_chain_of_graces():
    def graced(name: str, grace: float, *others: str) -> WorkerSpec:
        needs = tuple((other, Need.STARTED) for other in others)
        return WorkerSpec(name=name, stop=StopRule(grace=grace), depends_on=needs)

    chain = (graced("db", 10), graced("web", 5, "db"), graced("edge", 1, "web"))
    assert longest_grace(Scenario(*chain).declaration) == 16
    assert longest_grace(Scenario(*chain[::-1], graced("lone", 20)).declaration) == 20
    both = (graced("a", 7, "db"), graced("b", 2, "db"))
    assert longest_grace(Scenario(graced("db", 10), *both).declaration) == 17
    assert longest_grace(Scenario(graced("web", 5, "nobody")).declaration) == 5
    assert longest_grace(Declaration()) == 0


@pytest.mark.parametrize("turn", [1, -1])
def test_a_chain_of_two_thousand_is_a_long_stop_and_no_crash(turn):
    links = [
        Entry(
            spec=WorkerSpec(
                name=f"w{index}",
                stop=StopRule(grace=1.0),
                depends_on=((f"w{index - 1}", Need.STARTED),) if index else (),
            )
        )
        for index in range(2000)
    ][::turn]
    workers = {entry.spec.name: entry for entry in links}
    assert longest_grace(Declaration(workers=workers)) == 2000.0


def test_a_slot_that_waits_and_is_no_longer_wanted_rests():
    scenario = Scenario(db, web).expects(start(db), wait("web")).rises("db")
    scenario.orders(orders.StopWorkers(names=("web",))).expects(rest("web", "stopped by ann"))


def _leans(scenario: Scenario) -> str | None:
    return still_leaning(("web",), scenario.declaration, scenario.observed)


def test_a_companion_goes_last_whatever_it_comes_after():
    """Else the two would wait for each other."""
    companion = after(replace(db, name="@pump"), db=Need.STARTED)
    scenario = Scenario(db, companion)
    scenario.acts()
    scenario.rises("db").acts()
    scenario.rises("@pump")
    assert still_leaning(("@pump",), scenario.declaration, scenario.observed) is None
    scenario.orders(orders.ShutDown())
    assert still_leaning(("@pump",), scenario.declaration, scenario.observed) is None
    assert [action.slot for action in scenario.acts().actions] == ["db"]
