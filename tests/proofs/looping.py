"""T05: a worker that crashes for ever is started as often as promised, no oftener, and hurts nobody.

On virtual time the sequence of delays is exact: at once after the first failure, then a second
doubled up to five minutes, each within a tenth, and given up after ten. Under a real supervisor
many such workers are counted by what they themselves write down, while the socket is asked again
and again: how long it takes to answer is the lag of the loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from proofs.eager_clocks import EagerClock
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from uphold.core import orders
from uphold.core.specs import Backoff, WorkerSpec
from uphold.core.statuses import State
from uphold.testing.drivers import FakeDriver
from uphold.testing.stages import Stage

PROMISED = tuple(min(300.0, 2.0**n) for n in range(9))
"""Seconds between the second failure and the third start, and so on, before the spread."""
MOST = 11
"""Starts of one episode: the first and ten automatic ones."""
SPREAD = 0.1
RUSH = 0.2
"""Seconds over which the starts of hundreds that crash together may be spread."""
HOURS = 7_200.0
"""Much longer than any series takes."""
LAG = 0.1
PAUSE = 0.005
RETRIES = 10
FLAPPING = """
[supervisor]
name = "flapping"
[defaults]
max_restarts = %d
backoff = { base = "200ms", max = "3s" }
[workers.calm]
command = "sleep 1000"
"""
FLAPPER = """
[workers.flap%d]
command = 'echo >> "runs/$UPHOLD_SLOT"; exit 1'
shell = true
"""


class Flapper(FakeDriver):
    """Whatever it starts ends at once, and leaves something behind that takes a while to end."""

    def __init__(self, clock, world=None, starts=None, linger=0.0):
        super().__init__(clock, world)
        self.starts = {} if starts is None else starts
        self.linger = linger
        self.lasting = set()
        """Slots that stay up."""

    def successor(self):
        return Flapper(self._clock, self.world, self.starts, self.linger)

    async def start(self, launch, deadline=None):
        await super().start(launch, deadline)
        slot = launch.slot
        self.starts.setdefault(slot, []).append(self._clock.now().mono)
        if slot not in self.lasting:
            self.end(slot, 1, left_overs=bool(self.linger))
            if self.linger:
                after = self._clock.now().mono + self.linger
                self._clock.alarm(after, lambda: self.empty(slot))


def staged(*specs, linger=0.0):
    stage = Stage(*specs, clock=EagerClock())
    stage.driver = Flapper(stage.clock, linger=linger)
    stage.supervisor = stage._supervisor()
    return stage


def flapping(
    count: int, seed: int, folder: Path, *, limit: float | None = LAG, retries: int = RETRIES
) -> Verdict:
    """Let `count` workers crash for ever, virtually and really.

    `limit` is for the p99 of the lag, beyond what the machine itself delays whoever sleeps.
    """
    wrong = asyncio.run(virtual(min(count, 200), random.Random(seed)))
    really, lags, noise = real(count, folder, retries)
    if limit is not None and p99(lags) - p99(noise) >= limit:
        really.append(f"the p99 of the lag is {p99(lags) * 1e3:.0f} ms")
    figures = (
        f"lag p99 {p99(lags) * 1e3:.0f} ms",
        f"most {max(lags) * 1e3:.0f} ms",
        f"a sleeper's p99 {p99(noise) * 1e3:.0f} ms",
        f"{count * (retries + 1)} starts",
    )
    wrong = tuple(f"seed {seed}: {each}" for each in (*wrong, *really))
    return Verdict(count=count, violations=wrong, figures=figures)


async def virtual(count, chance):
    """Try every case of the promise on a clock that only moves when told."""
    names = [f"w{number}-{chance.randrange(10**6)}" for number in range(count)]
    specs = [WorkerSpec(name=name, command=("x",)) for name in names]
    return [
        *await for_ever(specs, chance),
        *await after_a_stable_run(specs[0]),
        *await with_left_overs(specs[0], 7.0),
        *await with_left_overs(specs[0], 90.0),
        *await stopped_slowly(specs[0]),
        *await without_end(specs[0]),
    ]


async def for_ever(specs, chance):
    """Crash together, each in its own rhythm; the supervisor is killed again and again."""
    stage = await staged(*specs).start()
    for _ in range(12):
        await stage.clock.advance(chance.uniform(0.0, 90.0))
        await stage.crash()
        await stage.start()
    await stage.clock.advance(HOURS)
    wrong = []
    for spec in specs:
        wrong += sequence(spec.name, stage.driver.starts[spec.name], late=RUSH)
        status = stage.status(spec.name)
        if (status.state, status.restarts) != (State.FAILED, MOST - 1):
            wrong.append(f"{spec.name} is {status.state} after {status.restarts} restarts")
    await stage.supervisor.abandon()
    return wrong


def sequence(name, starts, more=0.0, late=1e-6):
    """Compare the times between starts with the promise; `more` is how long each run took.

    Nothing may come early; `late` is allowed when very many come back together.
    """
    gaps = [after - before - more for before, after in pairwise(starts)]
    if len(starts) != MOST:
        yield f"{name} was started {len(starts)} times"
    if gaps and not -1e-6 <= gaps[0] <= late:
        yield f"{name}: the first restart came after {gaps[0]:.3f} s, not at once"
    for gap, promised in zip(gaps[1:], PROMISED, strict=False):
        if not promised * (1 - SPREAD) - 1e-6 <= gap <= promised * (1 + SPREAD) + late:
            yield f"{name}: a restart came after {gap:.3f} s, not {promised:.0f} s"


async def after_a_stable_run(spec):
    """Stay up for a minute in the middle of a series: what follows is a new series."""
    stage = await staged(spec).start()
    await stage.clock.advance(10.0)
    stage.driver.lasting.add(spec.name)
    await stage.clock.advance(60.0 + 9.0)  # the next start comes within 9 s, and lasts
    starts = stage.driver.starts[spec.name]
    starts.clear()
    stage.driver.lasting.clear()
    starts.append(stage.clock.now().mono)  # the stable run counts as the first of the new series
    stage.driver.end(spec.name, 1)
    await stage.clock.advance(HOURS)
    await stage.supervisor.abandon()
    return [f"after a stable run {each}" for each in sequence(spec.name, starts)]


async def with_left_overs(spec, linger):
    """Leave something behind that takes a while to end: only then does the delay begin.

    However long that takes, the run itself was a short one.
    """
    stage = await staged(spec, linger=linger).start()
    await stage.clock.advance(HOURS)
    await stage.supervisor.abandon()
    starts = stage.driver.starts[spec.name]
    return [f"with left-overs {each}" for each in sequence(spec.name, starts, more=linger)]


async def stopped_slowly(spec):
    """Order a stop of a deaf run in the middle of a series: nothing starts from then on."""
    stage = await staged(spec).start()
    await stage.clock.advance(10.0)
    stage.driver.lasting.add(spec.name)
    await stage.clock.advance(9.0)
    stage.driver.ignore_stop(spec.name)
    before = len(stage.driver.starts[spec.name])
    await stage.order(orders.StopWorkers(names=(spec.name,)))
    await stage.clock.advance(HOURS)
    started = len(stage.driver.starts[spec.name]) - before
    stage.driver.lasting.clear()
    stage.driver.starts[spec.name].clear()
    await stage.order(orders.StartWorkers(names=(spec.name,)))
    await stage.clock.advance(HOURS)
    await stage.supervisor.abandon()
    wrong = [f"{spec.name} was started {started} times after a stop"] if started else []
    return [
        *wrong,
        *(f"ordered anew {e}" for e in sequence(spec.name, stage.driver.starts[spec.name])),
    ]


async def without_end(spec):
    """Never give up: the delay grows to five minutes and stays there."""
    endless = WorkerSpec(
        name=spec.name, command=("x",), max_restarts=None, backoff=Backoff(jitter=0.0)
    )
    stage = await staged(endless).start()
    await stage.clock.advance(HOURS)
    await stage.supervisor.abandon()
    gaps = {round(b - a, 6) for a, b in pairwise(stage.driver.starts[spec.name])}
    return [] if gaps == {0.0, *PROMISED, 300.0} else [f"the delays without end were {gaps}"]


def real(count, folder, retries):
    """Let them flap under a real supervisor until it has given all of them up."""
    with closing(Nursery()) as nursery, closing(Station(folder / "site", nursery)) as station:
        (station.folder / "runs").mkdir()
        station.declare(FLAPPING % retries + "".join(FLAPPER % number for number in range(count)))
        station.start()
        assert station.settle(calm="running"), "it did not start"
        calm = station.rows()["calm"]["pid"]
        lags, noise = watch(station, count)
        rows = station.rows()
    wrong = [] if rows["calm"]["pid"] == calm else ["a calm worker was disturbed"]
    for slot, row in rows.items():
        if not slot.startswith("flap"):
            continue
        runs = len((station.folder / "runs" / slot).read_bytes())
        if (runs, row["generation"], row["restarts"]) != (retries + 1, retries + 1, retries):
            wrong.append(f"{slot} ran {runs} times in {row['generation']} generations")
    return wrong, lags, noise


def p99(values):
    return sorted(values)[len(values) * 99 // 100]


def watch(station, count):
    """Ask again and again until all have been given up.

    Gives how long each answer took, and how much too late a mere sleep ended.
    """
    lags, noise = [], []
    deadline = time.monotonic() + PATIENCE * 3 + count
    while True:
        for _ in range(100):
            began = time.monotonic()
            station.call("ping")
            answered = time.monotonic()
            lags.append(answered - began)
            time.sleep(PAUSE)
            noise.append(time.monotonic() - answered - PAUSE)
        states = [row["state"] for slot, row in station.rows().items() if slot.startswith("flap")]
        if states.count("failed") == count:
            return lags, noise
        assert time.monotonic() < deadline, f"not given up: {set(states)}"


if __name__ == "__main__":
    main({"flapping": flapping})
