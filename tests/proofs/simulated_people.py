"""Those who want something: several clients that give orders, and somebody who edits the file."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from proofs.simulated_machine import Temper
from uphold.core import orders
from uphold.core.names import worker_of
from uphold.core.orders import Refusal
from uphold.core.specs import Backoff, Need, RestartPolicy, StopRule, WorkerSpec

WORKERS = 20
VERBS = (
    orders.StartWorkers,
    orders.StartWorkers,
    orders.StopWorkers,
    orders.RestartWorkers,
    orders.RestartWorkers,
    orders.PauseWorkers,
    orders.ResumeWorkers,
    orders.ResumeWorkers,
    orders.DisableWorkers,
    orders.EnableWorkers,
    orders.QuarantineWorkers,
    orders.ApproveWorkers,
    orders.ResetWorkers,
)


def specs(rng, kinds):
    """Draw the workers of a seed."""
    return tuple(_spec(rng, kinds, number) for number in range(WORKERS))


def _spec(rng, kinds, number):
    depends_on = ()
    if "dependencies" in kinds and number and rng.random() < 0.4:
        others = rng.sample(range(number), min(number, rng.randint(1, 2)))
        needs = (Need.STARTED, Need.STARTED, Need.HEALTHY, Need.COMPLETED)
        depends_on = tuple((f"w{other}", rng.choice(needs)) for other in sorted(others))
    policies = (RestartPolicy.ALWAYS,) * 3 + (RestartPolicy.ON_FAILURE, RestartPolicy.NO)
    plain = rng.random() < 0.4
    return WorkerSpec(
        name=f"w{number}",
        command=("work", "1"),
        replicas=rng.choice((1, 1, 1, 2, 3)) if "replicas" in kinds else 1,
        restart=rng.choice(policies),
        backoff=Backoff()
        if plain
        else Backoff(
            first=rng.choice((0.0, 0.0, 0.5)),
            base=rng.choice((0.2, 1.0, 3.0)),
            max=rng.choice((5.0, 30.0)),
        ),
        stable_after=60.0 if plain else rng.choice((1.0, 10.0)),
        max_restarts=10 if plain else rng.choice((0, 3, 5)),
        stop=StopRule(grace=rng.choice((0.0, 0.5, 5.0, 30.0))),
        depends_on=depends_on,
        autostart=rng.random() < 0.9,
        essential="essential" in kinds and number == 0,
    )


def temper(rng, kinds):
    """Draw how the processes of one worker behave."""
    some = lambda kind, chance: chance if kind in kinds and rng.random() < 0.5 else 0.0  # noqa: E731
    return Temper(
        life=rng.choice((None,) * 8 + (900.0, 200.0, 60.0, 10.0)),
        codes=rng.choice(((1,), (0, 1), (0,), (3, -11), (-9, 0))),
        early=some("early", rng.choice((0.1, 0.5))),
        missing=some("missing", 0.1),
        deaf=some("deaf", 0.5),
        slow=some("slow", rng.choice((0.1, 3.0, 40.0))),
        stuck=some("stuck", 0.3),
        leaves=some("leaves", 0.5),
        unseen=some("unseen", 0.3),
    )


class Editor:
    """Edits the configuration, in ways that its reader would accept."""

    def __init__(self, rng, first):
        self._rng = rng
        self._all = {spec.name: spec for spec in first}
        self._removed = set()
        self._count = 1

    @property
    def current(self):
        return tuple(
            self._whole(spec) for spec in self._all.values() if spec.name not in self._removed
        )

    def edit(self):
        """Change something; gives the whole file."""
        rng = self._rng
        for name in rng.sample(sorted(self._all), rng.randint(1, 3)):
            self._change(name)
        return self.current

    def _change(self, name):
        rng, spec = self._rng, self._all[name]
        self._count += 1
        match rng.randrange(8):
            case 0 | 1:
                spec = replace(spec, command=("work", str(self._count)))
            case 2:
                spec = replace(spec, stop=StopRule(grace=rng.choice((0.0, 1.0, 10.0))))
            case 3:
                self._removed ^= {name}
            case 4:
                spec = replace(spec, replicas=rng.randint(1, 3))
            case 5:
                spec = replace(spec, autostart=not spec.autostart)
            case 6:
                spec = replace(spec, enabled=not spec.enabled)
            case _:
                lower = rng.randrange(int(name[1:]) + 1)
                after = ((f"w{lower}", Need.STARTED),) if f"w{lower}" != name else ()
                spec = replace(spec, depends_on=after)
        self._all[name] = spec

    def _whole(self, spec):
        there = tuple(each for each in spec.depends_on if each[0] not in self._removed)
        return spec if there == spec.depends_on else replace(spec, depends_on=there)


class Client:
    """Gives orders at random, and believes what it is told."""

    def __init__(self, world, number):
        self._world = world
        self._number = number
        self._rng = world.rng

    async def run(self, life, gap):
        while True:
            await asyncio.sleep(self._rng.expovariate(1.0 / gap))
            if not self._world.orders_are_given:
                return
            await self._give(life)

    async def _give(self, life):
        wish = self._wish(life)
        desk = life.supervisor.desk
        order = desk.order(wish, author=f"client {self._number}", origin="socket")
        answer = await desk.submit(order)
        self._world.eye.trace("answer", type(wish).__name__, type(answer).__name__)
        if isinstance(answer, Refusal):
            self._world.refused[order.id] = answer.code
            return
        if order.id not in self._world.disk.synced.audit:
            self._world.eye.wrong(f"P10: {order.id} was acknowledged and is not in the audit")
        self._world.accepted[order.id] = life
        if self._rng.random() < 0.3:
            await asyncio.wait({answer.done}, timeout=20.0)
        answer.done.add_done_callback(lambda done: self._came_true(life, order, done))

    def _came_true(self, life, order, done):
        """Check that "stopped" is said only of what is stopped (P3, P27)."""
        if done.cancelled() or not life.up or not isinstance(order.wish, orders.StopWorkers):
            return
        declared = life.supervisor.snapshot().declaration.workers
        for result in done.result():
            entry = declared.get(result.name)
            if not result.ok or entry is None or entry.override.order != order.id:
                continue
            alive = [p for p in self._world.machine.everybody() if worker_of(p.slot) == result.name]
            if alive and not entry.wanted:
                self._world.eye.wrong(f"P27: {result.name} is said to be stopped and lives")

    def _wish(self, life):
        rng = self._rng
        names = sorted(n for n in life.supervisor.snapshot().declaration.workers if n[0] != "@")
        if not names or rng.random() < 0.03:
            return orders.StopWorkers(names=("nobody",))
        if rng.random() < 0.1:
            return orders.ScaleWorker(name=rng.choice(names), replicas=rng.randint(0, 3))
        if rng.random() < 0.05:
            return orders.SignalWorkers(names=(rng.choice(names),), signal="HUP")
        many = min(len(names), rng.choice((1, 1, 1, 2, 5)))
        return rng.choice(VERBS)(names=tuple(rng.sample(names, many)))
