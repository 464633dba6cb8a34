"""T02: an hour of supervision for each seed, on virtual time, with everything going wrong.

The real engine and the real core run against a simulated machine; each seed has faults of some
kinds only, so that no kind hides another. The same seed gives the same hour, to the last event.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from proofs.invariants import Eye
from proofs.proving import Verdict, main
from proofs.settling import check_end, check_settled
from proofs.simulated_disk import Disk
from proofs.simulated_lives import PUMP, Life, Weather, end_all
from proofs.simulated_loop import StandstillError, Times, VirtualLoop
from proofs.simulated_machine import Machine
from proofs.simulated_operators import STEERED, Operator
from proofs.simulated_people import Client, Editor, specs, temper
from proofs.simulated_probes import watched
from proofs.simulated_share import SimulatedShare
from uphold.core import orders
from uphold.core.specs import DeploySpec, InboxSpec
from uphold.host.homes import Home
from uphold.testing.stages import FakeConfig

HOUR = 3600.0
CALM_AFTER = 3100.0
"""From here on nothing goes wrong any more, and everything must come to rest."""
REST = 400.0
"""Longer than the longest back-off, and than the slowest start."""
SWEEPS_EVERY = 43.7
TWINS = 20
"""Every how many seeds it is tried whether jumps of the wall clock have any effect."""
QUICK = Path("/dev/shm")
"""Where the files of a share lie, if that is there: they are written thousands of times."""
KEPT = Path(__file__).parent / "kept_seeds.txt"
KINDS = (
    "kills",
    "power_cuts",
    "upgrades",
    "stops",
    "full_disk",
    "slow_disk",
    "slow_driver",
    "bad_driver",
    "pauses",
    "jumps",
    "edits",
    "dependencies",
    "replicas",
    "early",
    "missing",
    "deaf",
    "slow",
    "stuck",
    "leaves",
    "unseen",
    "echoes",
    "lost_books",
    "essential",
    "companion",
)
SHARE_MOODS = ("hangs", "gone", "unmounted", "full", "failing", "slow")
"""What goes wrong with a share, in seeds that have one; each in some of them only."""
AWAY = ("hangs", "gone", "unmounted")
KNOWN_WITHIN = 45.0
"""Seconds: the next poll asks, whatever a flag has begun meanwhile, and is given up after 9."""
JUMPS = (1.0, 3600.0, 86_400.0, 315_576_000.0)


class World:
    """One seed: the machine, its disk, the people, and whoever supervises at the moment."""

    def __init__(self, seed, *, jumps=True, always=(), later=True):
        self.loop = VirtualLoop(seed)
        self.loop.set_exception_handler(self._stray_error)
        self.rng = random.Random(f"world of {seed}")
        self._chance = random.Random(f"faults of {seed}")
        self.kinds = {kind for kind in KINDS if self._chance.random() < 0.4}
        self.kinds.update(always)
        self._jumps = jumps
        self._pace = random.Random(f"jumps of {seed}")
        self.times = Times(self.loop)
        self.eye = Eye(self.loop, self.times)
        self.machine = Machine(self.loop, self.rng, self.eye)
        self.disk = Disk()
        self.weather = Weather(self.rng, self.eye)
        self.weather.sees_exits = self._chance.random() < 0.5
        self.weather.echoes = 0.2 if "echoes" in self.kinds else 0.0
        self.eye.machine, self.eye.disk = self.machine, self.disk
        self.companions = (PUMP,) if "companion" in self.kinds else ()
        self.orders_are_given = True
        self.remembered = None
        """What people ordered, as it is known beside the journal when that was lost."""
        self.accepted = {}
        self.refused = {}
        self.physician = random.Random(f"health of {seed}")
        first = self._watched(specs(self._chance, self.kinds), later=later)
        self.editor = Editor(self._chance, first)
        self.machine.tempers = {spec.name: temper(self._chance, self.kinds) for spec in first}
        self.life = None
        self.share = self.operator = self.home = None
        # Drawn apart: a seed without what came later is the hour it always was.
        self._sea = random.Random(f"share of {seed}")
        self._folder = None
        if later and (self._sea.random() < 0.4 or "share" in self.kinds):
            self._have_share()
        self._faults = [name for name in FAULTS if name in self.kinds]
        self._until = 0.0

    def _watched(self, first, *, later):
        """Have some workers asked how they are, in some seeds."""
        rng = self.physician
        if not later or not (rng.random() < 0.4 or "freezes" in self.kinds):
            return first
        self.kinds.add("freezes")
        first = tuple(watched(spec, rng) if rng.random() < 0.4 else spec for spec in first)
        asked = [spec for spec in first if spec.live is not None]
        self.machine.watched = {spec.name: (rng, spec.ready is not None) for spec in asked}
        return first

    def _have_share(self):
        """Have a share with an inbox, and somebody who steers by it."""
        self.kinds.add("share")
        self._folder = TemporaryDirectory(dir=QUICK if QUICK.is_dir() else None)
        folder = Path(self._folder.name)
        self.home = Home(folder / "home")
        self.home.path.mkdir()
        self.share = SimulatedShare(self.loop, self._sea, self.eye, folder)
        self.operator = Operator(self, self.share, self._sea)
        self._moods = [mood for mood in SHARE_MOODS if self._sea.random() < 0.5]
        if self._moods:
            self.loop.call_later(self._sea.expovariate(1.0 / 200.0), self._spoil_share)

    def _spoil_share(self):
        """Let something be wrong with the share for a while, whatever else goes on."""
        if not self.orders_are_given:
            return
        mood = self._sea.choice(self._moods)
        if mood == "slow":
            self.share.slow = self._sea.choice((0.5, 4.0, 20.0))
        else:
            self.share.change(mood)
        self.loop.call_later(self._sea.uniform(0.0, 150.0), self._mend_share)

    def _judge_silence(self):
        """See that a share that has been away for long is known to be (P17)."""
        since = max(self.share.moody_since, self.eye.born_under)
        life = self.life
        if self.share.mood not in AWAY or self.loop.time() - since < KNOWN_WITHIN:
            return
        if life is not None and life.up and not life.ended:
            shown = life.outreach.shown()
            if shown["state"] != "unreachable":
                self.eye.wrong(f"P17: the share is {self.share.mood}, and told to be {shown}")

    def _mend_share(self):
        self._judge_silence()
        self.share.slow = 0.0
        self.share.change("well")
        if self.orders_are_given:
            self.loop.call_later(self._sea.expovariate(1.0 / 200.0), self._spoil_share)

    def run(self):
        """Live through the hour."""
        asyncio.set_event_loop(self.loop)
        self.loop.after_round = self.eye.look
        try:
            self.loop.run_until_complete(self._hour())
        except StandstillError as error:
            self.eye.wrong(str(error))
        finally:
            self.loop.after_round = None
            with suppress(StandstillError):
                self.loop.run_until_complete(end_all(self.loop))
            asyncio.set_event_loop(None)
            self.loop.close()
            if self._folder is not None:
                self._folder.cleanup()

    async def _hour(self):
        await self.rise()
        self.loop.call_later(SWEEPS_EVERY, self._sweep)
        if "jumps" in self.kinds:
            self.loop.call_later(1.0, self._jump)
        while self.loop.time() < CALM_AFTER and not self.eye.violations:
            pause = self._chance.expovariate(1.0 / 100.0)
            await asyncio.sleep(min(pause, CALM_AFTER - self.loop.time()))
            if self.life.ended:
                await self.life.bury()
                await self.rise_later()
            elif self._faults:
                await FAULTS[self._chance.choice(self._faults)](self)
        if not self.eye.violations:
            await self._come_to_rest()

    async def _come_to_rest(self):
        self.orders_are_given = False
        self.weather.clear()
        self.machine.calm_down()
        if self.share is not None:
            self._mend_share()
        if self.life.ended:
            await self.life.bury()
            await self.rise()
        if self.life.supervisor.snapshot().declaration.paused:
            await self.order(orders.ResumeSupervisor())
        # The last trouble may have lasted into the calm.
        await asyncio.sleep(max(REST, HOUR - self.loop.time()))
        # Flags are dealt with one by one, and each may wait for what never comes.
        while self.operator is not None and self.operator.is_owed() and self.loop.time() < 4 * HOUR:
            await asyncio.sleep(60.0)
        life = self.life
        if life.supervisor.snapshot().declaration.closing is None:
            check_settled(self)
            if self.operator is not None:
                self.operator.check_settled()
            if not self.eye.violations:
                check_end(self, life, await life.leave(keep=False))
            return
        # An essential worker has ended for good, and all the others with it.
        await life.supervisor.wait()
        await life.bury()
        check_end(self, life, 0)

    def _sweep(self):
        self.eye.sweep()
        if not self.eye.violations:
            self.loop.call_later(SWEEPS_EVERY, self._sweep)

    def _stray_error(self, loop, context):
        self.eye.wrong(f"an error nobody took: {context}")

    async def order(self, wish):
        """Give an order ourselves."""
        desk = self.life.supervisor.desk
        return await desk.submit(desk.order(wish, author="director", origin="socket"))

    async def rise(self):
        """Start a supervisor, and let people talk to it."""
        self.eye.trace("rises")
        self.life = Life(self, self._config())
        await self.life.begin()
        for number in range(3):
            client = Client(self, number)
            work = client.run(self.life, self._chance.choice((90.0, 200.0, 500.0)))
            self.loop.create_task(work, name=f"client {number}")

    def _config(self):
        if self.share is None:
            return FakeConfig(*self.editor.current)
        spec = InboxSpec(share=str(self.share.top), poll_every=30.0)
        steered = DeploySpec(repo=str(self.home.path / "checkout"), workers=STEERED)
        return FakeConfig(*self.editor.current, inbox=spec, deploy=steered)

    async def rise_later(self):
        if self._chance.random() < 0.6:
            await asyncio.sleep(self._chance.expovariate(1.0 / 20.0))
        if "edits" in self.kinds and self._chance.random() < 0.3:
            self.editor.edit()
        await self.rise()

    async def kill(self):
        await self.life.die()
        if "lost_books" in self.kinds and self._chance.random() < 0.3:
            self._lose_books()
        await self.rise_later()

    def _lose_books(self):
        """Let the journal be found damaged: it is set aside, and the next one begins empty."""
        self.eye.trace("books lost")
        self.remembered = dict(self.disk.written.overrides)
        self.disk.lose_books()
        self.accepted.clear()
        self.refused.clear()
        if self.operator is not None:
            self.operator.books_lost()

    async def cut_power(self):
        await self.life.die()
        self.machine.lose_power()
        self.disk.lose_power()
        self.times.boot()
        self.eye.trace("power cut")
        await self.rise()

    async def upgrade(self):
        await self.life.leave(keep=True)
        await self.rise_later()

    async def stop(self):
        try:
            async with asyncio.timeout(self._chance.choice((5.0, 1000.0))):
                await self.life.leave(keep=False)
        except TimeoutError:
            await self.life.die()
        await self.rise_later()

    async def fill_disk(self):
        self.weather.disk_full = True
        await self._for_a_while(120.0)
        self.weather.disk_full = False
        self.eye.troubled(10.0)

    async def slow_disk(self):
        self.weather.disk_slow = self._chance.choice((0.01, 0.3, 2.0))
        await self._for_a_while(120.0)
        self.weather.disk_slow = 0.0

    async def slow_driver(self):
        self.weather.driver_slow = self._chance.choice((0.1, 0.7))
        await self._for_a_while(300.0)
        self.weather.driver_slow = 0.0

    async def bad_driver(self):
        self.weather.driver_bad = self._chance.choice((0.1, 0.5))
        await self._for_a_while(100.0)
        self.weather.driver_bad = 0.0

    async def pause(self):
        await self.order(orders.PauseSupervisor())
        await self._for_a_while(60.0)
        self.eye.episodes.paused(self.loop.time())
        if self.life.up and not self.life.ended:
            await self.order(orders.ResumeSupervisor())

    def _jump(self):
        """Set the wall clock now and then, whatever else goes on."""
        seconds = self._pace.choice((-1.0, 1.0)) * self._pace.choice(JUMPS)
        if self._jumps:
            self.times.jump_wall(seconds)
            self.eye.counts["jumps"] += 1
        self.loop.call_later(self._pace.expovariate(1.0 / 36.0), self._jump)

    async def edit(self):
        self.life.config.change(*self.editor.edit())

    async def _for_a_while(self, longest):
        """Let the trouble last; another fault may strike meanwhile."""
        await asyncio.sleep(self._chance.uniform(0.0, longest))
        others = [name for name in self._faults if name in SUDDEN]
        if others and not self.life.ended and self._chance.random() < 0.4:
            await FAULTS[self._chance.choice(others)](self)
            await asyncio.sleep(self._chance.uniform(0.0, longest / 4))


FAULTS = {
    "kills": World.kill,
    "power_cuts": World.cut_power,
    "upgrades": World.upgrade,
    "stops": World.stop,
    "full_disk": World.fill_disk,
    "slow_disk": World.slow_disk,
    "slow_driver": World.slow_driver,
    "bad_driver": World.bad_driver,
    "pauses": World.pause,
    "edits": World.edit,
}
SUDDEN = ("kills", "power_cuts", "edits")


def live(seed, *, jumps=True, always=(), later=True):
    """Live through one seed, with faults of these kinds at least; gives the world as it was left.

    `later`: with shares and with workers that are asked how they are, of which earlier seeds knew
    nothing.
    """
    world = World(seed, jumps=jumps, always=always, later=later)
    world.run()
    return world


def kept_seeds():
    """Give the seeds that once found something, most of them before there were shares."""
    lines = (line.partition("#")[0].strip() for line in KEPT.read_text().splitlines())
    return [int(line) for line in lines if line]


def seeds(count, seed, folder):
    """Live through `count` seeds from this one on."""
    return lived(range(seed, seed + count))


def lived(numbers, *, later=True):
    """Live through these seeds; some also without the jumps of the wall clock (P15)."""
    found, totals, tried = [], Counter(), 0
    began = time.process_time()
    for number in numbers:
        world = live(number, later=later)
        tried += 1
        totals["shares"] += world.share is not None
        found += [f"seed {number}, {each}" for each in world.eye.violations[:3]]
        totals.update(world.eye.counts)
        totals["longest"] = max(totals["longest"], world.eye.episodes.longest)
        if number % TWINS == 0 and "jumps" in world.kinds:
            totals["twins"] += 1
            if live(number, jumps=False, later=later).eye.digest != world.eye.digest:
                found.append(
                    f"seed {number}: P15: without jumps of the wall clock it goes otherwise"
                )
    spent = time.process_time() - began
    figures = (
        f"{totals['starts']} starts",
        f"{totals['events']} events",
        f"{totals['lives']} supervisors",
        f"{totals['longest']} automatic starts in a row",
        f"{totals['flags']} flags on {totals['shares']} shares",
        f"{totals['jumps']} jumps of the wall clock",
        f"{totals['twins']} hours lived again without them",
        f"{1000 * spent / max(1, tried):.0f} ms of CPU for a seed",
    )
    return Verdict(count=tried, violations=tuple(found), figures=figures)


if __name__ == "__main__":
    main({"seeds": seeds})
