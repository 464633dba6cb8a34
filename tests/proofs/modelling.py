"""T03: the real engine on virtual time, step by step beside a small reference of what it should do.

Orders, crashes, edits of the file and ends of the supervisor, drawn by hypothesis. After each step
everything must agree: exit codes, states, generations, counters, who lives, and as which process.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis import seed as seeded
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from proofs.eager_clocks import EagerClock
from proofs.proving import Verdict, main
from proofs.reference import ALIVE, FRESH, KEYS, SAYS, Reference
from uphold.core import orders
from uphold.core.orders import Refusal
from uphold.core.specs import Backoff, Need, RestartPolicy, StopRule, WorkerSpec
from uphold.engine import reconciler
from uphold.testing.stages import Stage

STEPS = 50
EXAMPLES = 200
NAMES = ("a", "b", "c")
WISHES = {
    "start": orders.StartWorkers,
    "stop": orders.StopWorkers,
    "restart": orders.RestartWorkers,
    "pause": orders.PauseWorkers,
    "resume": orders.ResumeWorkers,
    "enable": orders.EnableWorkers,
    "disable": orders.DisableWorkers,
    "quarantine": orders.QuarantineWorkers,
    "approve": orders.ApproveWorkers,
    "reset": orders.ResetWorkers,
}
EDITS = {
    "autostart": (True, False),
    "enabled": (True, False),
    "quarantined": (False, True),
    "replicas": (1, 2, 3, 0),
    "command": (("x",), ("y",)),
    "labels": ((), (("team", "blue"),)),
    "restart": (RestartPolicy.ALWAYS, RestartPolicy.ON_FAILURE, RestartPolicy.NO),
    "max_restarts": (3, 1),
    "stable_after": (60.0, 2.0),
    "stop": (StopRule(grace=5.0), StopRule(grace=0.5)),
    "depends_on": tuple(Need),
}
LONGEST_END = 60.0
"""Seconds in which even a chain of deaf workers has been ended."""

names = st.sampled_from(NAMES)
verbs = st.sampled_from([*SAYS, "scale"])
numbers = st.integers(0, 3)
keys = st.sampled_from((*EDITS, *KEYS * 3, "depends_on", "depends_on"))
waits = st.sampled_from((0.1, 1.0, 3.0, 10.0, 70.0))
exit_codes = st.sampled_from((0, 1))
which = st.integers(0, 11)


class Supervision(RuleBasedStateMachine):
    """Each rule does the same to the engine and to the reference, then compares."""

    taken = 0
    """Steps of all machines so far."""

    def __init__(self):
        super().__init__()
        self.loop = None
        self.pids = {}
        self.model = Reference()

    @initialize(edits=st.lists(st.tuples(names, keys, numbers), min_size=1, max_size=6))
    def begin(self, edits):
        """Start with a file that somebody has already been busy with."""
        self.specs = {name: edited(spec_of(name), "depends_on", 1) for name in NAMES[:2]}
        for name, key, number in edits:
            self.specs[name] = edited(self.specs.get(name, spec_of(name)), key, number)
        self.loop = asyncio.new_event_loop()
        self.stage = Stage(*self.specs.values(), clock=EagerClock())
        self.model.now = self.stage.clock.now().mono
        self.model.declare(self.specs.values())
        self.do(self.stage.start())
        self.agree()

    @rule(verb=verbs, name=names, number=st.integers(-1, 3))
    def order(self, verb, name, number):
        self.together([(verb, name, number)])

    @rule(wishes=st.lists(st.tuples(verbs, names, numbers), min_size=2, max_size=3))
    def together(self, wishes):
        """Hand in orders that nobody waits between: the last word counts."""
        desk = self.stage.supervisor.desk

        async def hand_in():
            made = [desk.order(wish_of(*each), author="ann", origin="test") for each in wishes]
            answers = await asyncio.gather(*(desk.submit(each) for each in made))
            await self.stage.clock.settle()
            return answers

        expected = [self.model.order(*each) for each in wishes]
        answers = self.do(hand_in())
        codes = [each.exit_code if isinstance(each, Refusal) else 0 for each in answers]
        assert codes == expected, f"{wishes} came to {codes}, not {expected}"
        self.agree()

    @rule(paused=st.booleans())
    def suspend(self, paused):
        """Pause or resume the supervisor itself."""
        self.do(self.stage.order(orders.PauseSupervisor() if paused else orders.ResumeSupervisor()))
        self.model.paused = paused
        self.agree()

    @rule(number=which, code=exit_codes, times=st.integers(1, 3), wait=waits)
    def crash(self, number, code, times, wait):
        """Let one slot end by itself, perhaps again and again."""
        for _ in range(times):
            slot = self.pick(number, "running")
            if slot is not None:
                self.stage.driver.end(slot, code)
                self.model.ends(slot, code)
            self.pass_time(wait if times > 1 else 0.0)

    @rule(name=names, hopeless=st.booleans())
    def cannot_start(self, name, hopeless):
        """Let the next start of a slot fail."""
        self.stage.driver.fail_start(name, hopeless=hopeless)
        self.model.unlucky.setdefault(name, []).append(hopeless)

    @rule(number=which)
    def grow_deaf(self, number):
        slot = self.pick(number, "running")
        if slot is not None:
            self.stage.driver.ignore_stop(slot)
            self.model.deaf.add(slot)

    @rule(name=names, key=keys, number=numbers)
    def edit(self, name, key, number):
        """Change one key of one worker, or bring the worker in."""
        self.specs[name] = edited(self.specs.get(name, spec_of(name)), key, number)
        self.declare()

    @rule(
        name=names, verb=st.sampled_from([*(v for v in SAYS if SAYS[v].keys() & {*KEYS}), "scale"])
    )
    def change_mind(self, name, verb):
        """Order something, let the file say otherwise about the same key, and take that back."""
        self.order(verb, name, 2)
        key = "replicas" if verb == "scale" else next(iter(SAYS[verb]))
        for _ in range(2):
            spec = self.specs.get(name, spec_of(name))
            others = [n for n, value in enumerate(EDITS[key]) if value != getattr(spec, key)]
            self.edit(name, key, others[0])

    @rule(name=names)
    def remove(self, name):
        if self.specs.pop(name, None) is not None:
            self.declare()

    @rule(wait=waits)
    def wait(self, wait):
        self.pass_time(wait)

    @rule(number=which, dies=st.booleans(), away=st.sampled_from((0.0, 40.0)))
    def kill(self, number, dies, away):
        """Kill the supervisor; a worker may die while nobody watches."""
        slot = self.pick(number, "running") if dies else None
        self.succeed(away, dying=[] if slot is None else [slot])

    @rule(keep=st.booleans(), name=names, key=keys, number=numbers)
    def restart(self, keep, name, key, number):
        """End the supervisor in order, edit the file, and start the next one."""

        async def end():
            ending = asyncio.ensure_future(self.stage.supervisor.stop(keep_workers=keep))
            await self.stage.clock.advance(0.0 if keep else LONGEST_END)
            assert ending.done(), "the supervisor has not ended"
            return ending.result()

        assert self.do(end()) == 0
        self.model.close(keep=keep)
        self.agree_on_processes()
        self.specs[name] = edited(self.specs.get(name, spec_of(name)), key, number)
        self.succeed(0.0)

    def do(self, work):
        return self.loop.run_until_complete(work)

    def succeed(self, away, dying=()):
        """Put the next supervisor in place of this one."""

        async def go_on():
            self.stage.config.change(*self.specs.values())
            await self.stage.crash()
            await self.clear()
            for slot in dying:
                self.stage.driver.drop(slot)
            await self.stage.clock.advance(away)
            await self.stage.start()

        self.do(go_on())
        self.model.unlucky.clear()
        self.model.now = self.stage.clock.now().mono
        self.model.declare(self.specs.values())
        self.model.reopen(dying)
        self.agree()

    async def clear(self):
        """End what a dead supervisor has left on the loop: it would try its journal for ever."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def declare(self):
        self.do(self.stage.change(*self.specs.values()))
        self.model.declare(self.specs.values())
        self.agree()

    def pass_time(self, seconds):
        self.do(self.stage.clock.advance(seconds))
        self.model.advance(self.stage.clock.now().mono)
        self.agree()

    def pick(self, number, state):
        """Choose a slot that really is in this state, if any is."""
        found = sorted(slot for slot, each in self.model.slots.items() if each["state"] == state)
        return found[number % len(found)] if found else None

    def alive(self):
        return {slot for slot, each in self.model.slots.items() if each["state"] in ALIVE}

    def agree(self):
        """Compare everything that people can see."""
        Supervision.taken += 1
        model = self.model
        model.settle()
        snapshot = self.stage.supervisor.snapshot()
        keys = ("state", "generation", "failures", "restarts")
        told = {
            slot: tuple(str(getattr(status, key)) for key in keys)
            for slot, status in snapshot.observed.slots.items()
        }
        nothing = tuple(str(FRESH[key]) for key in keys)
        for slot in model.slots.keys() | told.keys():
            want = tuple(str(model.slots.get(slot, FRESH)[key]) for key in keys)
            seen = told.get(slot, nothing)
            assert seen == want, f"{slot} is {seen}, not {want} ({', '.join(keys)})"
        for name, entry in snapshot.declaration.workers.items():
            want = (model.admin(name), model.wanted(name), model.declared(name))
            seen = (str(entry.admin), entry.wanted, list(entry.slots()))
            assert seen == want, f"{name} is wanted as {seen}, not {want}"
        self.agree_on_processes()

    def agree_on_processes(self):
        """Compare who lives; within one generation a slot must be the same process."""
        alive = self.stage.driver.world.alive
        assert set(alive) == self.alive(), f"{set(alive)} live, not {self.alive()}"
        for slot, identity in alive.items():
            generation = self.model.slots[slot]["generation"]
            before, pid = self.pids.get(slot, (0, 0))
            same = (before == generation) == (pid == identity.pid)
            assert same, f"{slot}: process {pid} of {before}, then {identity.pid} of {generation}"
        self.pids = {s: (self.model.slots[s]["generation"], i.pid) for s, i in alive.items()}

    def teardown(self):
        """Look through the books, then let go of everything."""
        if self.loop is None:
            return  # it never began
        try:
            events = self.stage.journal._shelf.events
            self.do(self.stage.supervisor.abandon())
            self.do(self.clear())
        finally:
            self.loop.close()
        assert sorted(events) == [*range(1, len(events) + 1)], "the numbers of events have holes"
        broken = (".illegal_transition", "reconciliation.failed")
        bad = [each for each in events.values() if each["type"].endswith(broken)]
        assert not bad, f"the engine complains about itself: {bad[:3]}"


def spec_of(name: str) -> WorkerSpec:
    values = {key: values[0] for key, values in EDITS.items() if key != "depends_on"}
    return WorkerSpec(name=name, backoff=Backoff(jitter=0.0), **values)


def edited(spec: WorkerSpec, key: str, number: int) -> WorkerSpec:
    """Change a key; dependencies go to names before its own, so that there is no circle."""
    if key != "depends_on":
        return replace(spec, **{key: EDITS[key][number % len(EDITS[key])]})
    earlier = NAMES[: NAMES.index(spec.name)]
    chosen = earlier[number - 1 : number] if number else ()
    return replace(spec, depends_on=tuple((name, tuple(Need)[number % 3]) for name in chosen))


def wish_of(verb: str, name: str, number: int) -> orders.Wish:
    if verb == "scale":
        return orders.ScaleWorker(name=name, replicas=number)
    return WISHES[verb](names=(name,))


def steps(count: int, seed: int, folder: Path, *, derandomize: bool = False) -> Verdict:
    """Take at least `count` steps, a fresh machine every fifty; the first difference ends it."""
    chance = random.Random(seed)
    Supervision.taken = 0
    while Supervision.taken < count:
        number = chance.randrange(2**32)
        left = -(-(count - Supervision.taken) // STEPS)
        try:
            # In a rush turns are put off for a moment, of which the reference knows nothing.
            with patch.object(reconciler, "_LONGEST_PAUSE", 0.0):
                run_chunk(number, min(EXAMPLES, left), derandomize=derandomize)
        except Exception as problem:
            found = getattr(problem, "exceptions", (problem,))
            wrong = tuple(f"seed {seed}, chunk {number}: {retold(each)}" for each in found)
            return Verdict(count=Supervision.taken, violations=wrong)
    return Verdict(count=Supervision.taken)


def retold(problem: BaseException) -> str:
    """Say what differed, and the shortest way there that hypothesis found."""
    return "\n".join([repr(problem), *getattr(problem, "__notes__", ())])


def run_chunk(number: int, examples: int, *, derandomize: bool) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=derandomize,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    machine = Supervision if derandomize else seeded(number)(Supervision)
    run_state_machine_as_test(machine, settings=chosen)


if __name__ == "__main__":
    main({"steps": steps})
