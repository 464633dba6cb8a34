"""Random lives of a supervisor: files, orders and everything that can happen to a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from uphold.core import events, orders
from uphold.core.actions import Action, Plan, Start
from uphold.core.planning import plan
from uphold.core.specs import Backoff, Need, RestartPolicy, StopRule, WorkerSpec
from uphold.core.statuses import ALIVE, Exit, Fault, SlotStatus, State
from uphold.testing.scenarios import Scenario

NAMES = ("a", "b", "c", "@pump")
SURVIVED = Fault(code="UPH_STOP_UNKILLABLE", message="it survived SIGKILL")
MOST_ROUNDS = 60
"""After so many rounds with an obedient world everything must have come to rest."""


def _spec(name: str) -> st.SearchStrategy[WorkerSpec]:
    earlier = NAMES[: NAMES.index(name)]  # so nobody waits for himself
    needs = st.lists(
        st.tuples(st.sampled_from(earlier or ("nobody",)), st.sampled_from(Need)),
        max_size=2,
        unique_by=lambda need: need[0],
    )
    return st.builds(
        WorkerSpec,
        name=st.just(name),
        command=st.sampled_from([("serve",), ("serve", "--fast")]),
        enabled=st.sampled_from([True, True, True, False]),
        quarantined=st.sampled_from([False, False, False, True]),
        autostart=st.sampled_from([True, True, True, False]),
        replicas=st.sampled_from([1, 1, 2, 0]),
        restart=st.sampled_from(RestartPolicy),
        backoff=st.sampled_from([Backoff(), Backoff(first=5.0, jitter=0.0)]),
        max_restarts=st.sampled_from([0, 1, 10, None]),
        stop=st.sampled_from([StopRule(), StopRule(grace=0.0)]),
        depends_on=needs.map(tuple),
    )


def _wishes() -> st.SearchStrategy[orders.Wish]:
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple)
    about = [
        orders.StartWorkers,
        orders.StopWorkers,
        orders.RestartWorkers,
        orders.PauseWorkers,
        orders.ResumeWorkers,
        orders.EnableWorkers,
        orders.DisableWorkers,
        orders.QuarantineWorkers,
        orders.ApproveWorkers,
        orders.ResetWorkers,
    ]
    return st.one_of(
        st.sampled_from(about).flatmap(lambda wish: st.builds(wish, names=names)),
        st.sampled_from(about).flatmap(lambda wish: st.builds(wish, names=names)),
        st.builds(orders.ScaleWorker, name=st.sampled_from(NAMES), replicas=st.integers(0, 3)),
        st.sampled_from(
            [
                orders.PauseSupervisor(),
                orders.ResumeSupervisor(),
                orders.ResumeSupervisor(),
                orders.ShutDown(),
            ]
        ),
    )


FILES = st.tuples(*(st.one_of(_spec(name), _spec(name), st.none()) for name in NAMES)).map(
    lambda specs: tuple(spec for spec in specs if spec is not None)
)
MOVES = st.one_of(
    st.tuples(st.just("acts"), st.none()),
    st.tuples(st.just("happens"), st.integers(0, 999)),
    st.tuples(st.just("happens"), st.integers(0, 999)),
    st.tuples(st.just("passes"), st.sampled_from([0.5, 1.0, 7.0, 31.0, 61.0, 400.0])),
    st.tuples(st.just("orders"), _wishes()),
    st.tuples(st.just("declares"), FILES),
)
STORIES = st.tuples(FILES, st.lists(MOVES, max_size=25))


@dataclass
class World:
    """A scenario and the processes in it; every plan that is made in it is kept."""

    scenario: Scenario
    processes: set[str] = field(default_factory=set)
    """Slots of which something lives, known to nobody but the world."""
    doubled: set[str] = field(default_factory=set)
    """Slots that were to be started while something of them lived."""
    plans: list[tuple[Scenario, Plan]] = field(default_factory=list)

    def moves(self, how: str, what: Any) -> None:
        match how:
            case "acts":
                self.acts()
            case "passes":
                self.scenario.at(self.scenario.now.mono + what)
            case "orders":
                self.scenario.orders(what)
            case "declares":
                self.scenario.declares(*what)
            case "happens":
                self.happens(what)

    def acts(self) -> tuple[Action, ...]:
        before = copy_of(self.scenario)
        decided = self.scenario.acts()
        self.plans.append((before, decided))
        self.doubled |= self.processes & {action.slot for action in starts(decided)}
        return decided.actions

    def happens(self, number: int) -> None:
        """Let one of the things happen that can happen now."""
        found = [
            fact
            for status in self.scenario.observed.slots.values()
            for fact in self._possible(status)
        ]
        if found:
            self._let(found[number % len(found)])

    def obeys(self) -> None:
        """Let every process that was started come up, and every one that was stopped go."""
        for slot, status in tuple(self.scenario.observed.slots.items()):
            if status.state is State.STARTING:
                self._let(self._started(status))
            elif status.state is State.STOPPING:
                self._let(events.Gone(slot=slot, generation=status.generation, proof="world"))

    def settles(self) -> None:
        """Go on, in an obedient world, until there is nothing to do and nothing to wait for."""
        for _ in range(MOST_ROUNDS):
            if self.acts():
                self.obeys()
                continue
            self.obeys()
            decided = self.scenario.decides()
            if not decided.actions and decided.wakes:
                self.scenario.at(max(self.scenario.now.mono, decided.wake_at))
            elif not decided.actions:
                return
        raise AssertionError("it never came to rest")

    def _let(self, fact: events.SlotFact) -> None:
        self.scenario.happens(fact)
        match fact:
            case events.Started():
                self.processes.add(fact.slot)
            case events.Exited(left_overs=False) | events.Gone():
                self.processes.discard(fact.slot)

    def _started(self, status: SlotStatus) -> events.Started:
        return self.scenario.started(status.slot)

    def _possible(self, status: SlotStatus) -> list[events.SlotFact]:
        mine: dict[str, Any] = {"slot": status.slot, "generation": status.generation}
        ends = [
            events.Exited(**mine, exit=Exit(code=code, signal=None, at=0.0), left_overs=left)
            for code in (0, 1, None)
            for left in (False, True)
        ]
        late: dict[str, Any] = {"slot": status.slot, "generation": status.generation - 1}
        always: list[events.SlotFact] = [events.Gone(**late, proof="late")]
        fault = Fault(code="UPH_SPAWN_FAILED", message="no memory")
        lives = status.slot in self.processes
        if not lives and status.state in (State.STARTING, State.STOPPING):
            return [
                *always,
                self._started(status),
                events.StartFailed(**mine, fault=fault),
                events.StartFailed(**mine, fault=fault, hopeless=True),
                events.Gone(**mine, proof="world"),
            ]
        if lives and status.identity is not None:
            gone = events.Gone(**mine, proof="world")
            adopted = events.Adopted(**mine, identity=status.identity)
            dying = [events.StopFailed(**mine, fault=SURVIVED)] if status.killed else []
            return [*always, *ends, gone, adopted, *dying]
        return [*always, events.Gone(**mine, proof="again")]


def lived(story: tuple[tuple[WorkerSpec, ...], list[tuple[str, Any]]]) -> World:
    """Let a story happen."""
    file, moves = story
    world = World(Scenario(*file))
    for how, what in moves:
        world.moves(how, what)
    return world


def copy_of(scenario: Scenario) -> Scenario:
    """Give a scenario that stands where this one stands now."""
    copy = Scenario().at(scenario.now.mono)
    copy.declaration, copy.observed = scenario.declaration, scenario.observed
    return copy


def plan_for(scenario: Scenario, *names: str) -> Plan:
    return plan(scenario.declaration, scenario.observed, scenario.now.mono, names=names)


def starts(decided: Plan) -> list[Start]:
    return [action for action in decided.actions if isinstance(action, Start)]


def is_alive(status: SlotStatus | None) -> bool:
    return status is not None and status.state in ALIVE
