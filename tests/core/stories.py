"""Random lives of a supervisor: files, orders and everything that can happen to a process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from uphold.core import events, orders
from uphold.core.actions import Action, Plan, Start
from uphold.core.planning import plan
from uphold.core.specs import Backoff, Instant, Need, RestartPolicy, StopRule, WorkerSpec
from uphold.core.statuses import ALIVE, Exit, Fault, SlotStatus, State
from uphold.testing.scenarios import Scenario

NAMES = ("a", "b", "c", "@pump")
NO_MEMORY = Fault(code="UPH_SPAWN_FAILED", message="no memory")
SURVIVED = Fault(code="UPH_STOP_UNKILLABLE", message="it survived SIGKILL")
MOST_ROUNDS = 60
"""After so many rounds with an obedient world everything must have come to rest."""


def _specs(name: str) -> list[WorkerSpec]:
    """Make terms of many kinds for one worker, plain ones first; the same in every run."""
    chance = Random(name)
    earlier = NAMES[: NAMES.index(name)] or ("nobody",)  # so that no circle can close
    plain = WorkerSpec(name=name, command=("serve",), backoff=Backoff(jitter=0.0))
    return [plain, replace(plain, restart=RestartPolicy.NO)] + [
        WorkerSpec(
            name=name,
            command=chance.choice([("serve",), ("serve", "--fast")]),
            enabled=chance.random() < 0.8,
            quarantined=chance.random() < 0.2,
            autostart=chance.random() < 0.8,
            replicas=chance.choice([1, 1, 2, 0]),
            restart=chance.choice([*RestartPolicy]),
            backoff=chance.choice([Backoff(), Backoff(first=5.0, jitter=0.0)]),
            max_restarts=chance.choice([0, 1, 10, None]),
            stop=chance.choice([StopRule(), StopRule(grace=0.0)]),
            depends_on=chance.choice([(), ((chance.choice(earlier), chance.choice([*Need])),)]),
        )
        for _ in range(60)
    ]


def _wishes() -> list[orders.Wish]:
    whom = [(name,) for name in NAMES] + [("a", "b"), ("b", "c")]
    about: list[orders.Wish] = [
        wish(names=names)
        for names in whom
        for wish in (
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
        )
    ]
    scaling = [orders.ScaleWorker(name=name, replicas=n) for name in NAMES for n in range(4)]
    pausing = [orders.PauseSupervisor(), orders.ResumeSupervisor(), orders.ResumeSupervisor()]
    closing = [orders.ShutDown(), orders.ShutDown(hurry=True)]
    return [*about, *scaling, *pausing, *closing]


FILES = st.tuples(*(st.sampled_from([*_specs(name), None]) for name in NAMES)).map(
    lambda specs: tuple(spec for spec in specs if spec is not None)
)
MOVES = st.one_of(
    st.tuples(st.just("happens"), st.integers(0, 99)),
    st.tuples(st.just("happens"), st.integers(0, 99)),
    st.just(("obeys", None)),
    st.sampled_from(
        [
            *(("passes", seconds) for seconds in (0.5, 1.0, 7.0, 31.0, 61.0, 400.0)),
            ("looks away", None),
        ]
    ),
    st.tuples(st.just("orders"), st.sampled_from(_wishes())),
    st.tuples(st.just("declares"), FILES),
)
STORIES = st.tuples(FILES, st.lists(MOVES, min_size=8, max_size=24))


@dataclass
class World:
    """A scenario and the processes in it; every plan that is made in it is kept."""

    scenario: Scenario
    processes: set[str] = field(default_factory=set)
    """Slots of which something lives, known to nobody but the world."""
    looks_away: bool = False
    doubled: set[str] = field(default_factory=set)
    """Slots that were to be started while something of them lived."""
    plans: list[tuple[Scenario, Plan]] = field(default_factory=list)

    def moves(self, how: str, what: Any) -> None:
        """Make one move; the supervisor acts after each, unless it was looking away before."""
        match how:
            case "looks away":
                self.looks_away = True
                return
            case "obeys":
                self.obeys()
            case "passes":
                self.scenario.at(self.scenario.now.mono + what)
            case "orders":
                self.scenario.orders(what)
            case "declares":
                self.scenario.declares(*what)
            case "happens":
                self.happens(what)
        if not self.looks_away:
            self.acts()
        self.looks_away = False

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
                self._let(self.scenario.started(slot))
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
        current = self.scenario.status(fact.slot).generation
        self.scenario.happens(fact)
        match fact:
            case events.Started():
                self.processes.add(fact.slot)
            case events.Exited(left_overs=False) | events.Gone() if fact.generation == current:
                self.processes.discard(fact.slot)

    def _possible(self, status: SlotStatus) -> list[events.SlotFact]:
        mine: dict[str, Any] = {"slot": status.slot, "generation": status.generation}
        gone = events.Gone(**mine, proof="world")
        late = replace(gone, generation=status.generation - 1)
        if status.slot in self.processes:
            assert status.identity is not None
            ends = [
                events.Exited(**mine, exit=Exit(code=code, signal=None, at=0.0), left_overs=left)
                for left in (False, True)
                for code in (1, 0, None)
            ]
            survived = [events.StopFailed(**mine, fault=SURVIVED)] if status.killed else []
            adopted = events.Adopted(**mine, identity=status.identity)
            return [*(ends if status.exit is None else ()), *survived, gone, adopted, late]
        if status.state in (State.STARTING, State.STOPPING) and status.identity is None:
            started = self.scenario.started(status.slot)
            failed = events.StartFailed(**mine, fault=NO_MEMORY)
            return [started, failed, replace(failed, hopeless=True), gone, late]
        return [gone, late]


def lived(story: tuple[tuple[WorkerSpec, ...], list[tuple[str, Any]]]) -> World:
    """Let a story happen."""
    file, moves = story
    world = World(Scenario(*file))
    world.acts()
    for how, what in moves:
        world.moves(how, what)
    return world


def copy_of(scenario: Scenario) -> Scenario:
    """Give a scenario that stands where this one stands now."""
    copy = Scenario().at(scenario.now.mono)
    copy.declaration, copy.observed = scenario.declaration, scenario.observed
    return copy


def plan_for(scenario: Scenario, *names: str) -> Plan:
    return plan(
        scenario.declaration,
        scenario.observed,
        scenario.now.mono,
        wall=scenario.now.wall,
        names=names,
    )


def starts(decided: Plan) -> list[Start]:
    return [action for action in decided.actions if isinstance(action, Start)]


def is_alive(status: SlotStatus | None) -> bool:
    return status is not None and status.state in ALIVE


def says_the_same_later(before: Scenario, decided: Plan) -> bool:
    """Tell whether a plan that names neither an action nor a time holds for good.

    The engine relies on it: such a plan is not made again as long as nothing differs.
    """
    if decided.actions or decided.wakes:
        return True
    later = (
        plan(
            before.declaration,
            before.observed,
            Instant(before.now.mono + seconds),
            wall=before.now.wall + by_the_wall,
        )
        for seconds, by_the_wall in ((0.001, 0.0), (31.0, 31.0), (61.0, -500.0), (4e5, 9e6))
    )
    return not any(each.actions or each.wakes for each in later)
