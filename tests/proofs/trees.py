"""T07: whatever a worker has become, "stopped" is said only when nothing of it is left.

Trees of all kinds are started by the real process driver and stopped at random moments. The
moment their end is reported, /proc is searched for the mark they were born with, without
uphold's help. Where control groups can be made, every second tree is in one (level A).
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from pathlib import Path

from drivers.conftest import Stage
from proofs.living import marked
from proofs.proving import Verdict, main
from proofs.stuck import FrozenMount
from uphold.core.specs import StopRule
from uphold.drivers.emptying import PROOF_BY_GROUP
from uphold.host.processes.hierarchies import find_hierarchies
from uphold.ports.drivers import Launch
from uphold.testing.waiting import eventually

GRACE = 0.3
PROMISED = 2.0
HAS_GROUPS = find_hierarchies().tree is not None
SAID_WITHIN = PROMISED + 1.0
"""Seconds after SIGKILL within which it is told what survives it: all of those, and a look."""
TOGETHER = 4
"""Trees of each kind that live at the same time."""
UP = ': > "$READY"'
DEAF = "trap '' TERM"
DEAF_DAEMON = f"(setsid sh -c \"{DEAF}; : > '$READY'; sleep 1000\" &)"
KINDS = {
    "deaf": f"{DEAF}; {UP}; sleep 1000; :",
    "daemon": f"{DEAF_DAEMON}; exec sleep 1000",
    "frozen": f"{UP}; kill -STOP $$; exec sleep 1000",
    "frozen and deaf": f"{DEAF}; {UP}; kill -STOP $$; sleep 1000; :",
    "other user": f"setpriv --reuid=65534 --clear-groups sleep 1000 & {UP}; exec sleep 1000",
    "exits during the stop": f"trap 'exit 0' TERM; {DEAF_DAEMON}; while :; do sleep 0.05; done",
    "exits by itself": f"{UP}; sleep 0.$(($$ % 4))",
    "many children": f"for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; {UP}; wait",
    "forks on and on": f"{DEAF}; {UP}; while :; do setsid sleep 1000 & sleep 0.02; done",
}


def trees(count: int, seed: int, folder: Path, *, limit: float = PROMISED) -> Verdict:
    """Stop `count` trees of each kind; `limit` is what a stop may take beyond its grace."""
    return asyncio.run(_trees(count, seed, folder, limit))


async def _trees(count: int, seed: int, folder: Path, limit: float) -> Verdict:
    folder.chmod(0o755)
    rng = random.Random(seed)
    forest = Forest(folder, seed)
    kinds = [kind for kind in KINDS if os.geteuid() == 0 or kind != "other user"]
    stuck: list[tuple[str, float]] = []
    try:
        for begin in range(0, count, TOGETHER):
            wave = [kind for kind in kinds for _ in range(min(TOGETHER, count - begin))]
            rng.shuffle(wave)
            await asyncio.gather(*(forest.one(kind, rng.random()) for kind in wave))
            forest.blame(f"after wave {begin}", marked(forest.mark))
            forest.stage.facts.clear()
        levels = "AB" if HAS_GROUPS else "B"
        stuck = await asyncio.gather(*map(forest.unkillable, levels))
    except AssertionError as problem:
        forest.wrong.append(f"seed {seed}: {problem}")
    finally:
        await forest.stage.driver.close()
        forest.clean_up()
    figures = [f"{len(kinds)} kinds", *(text for text, _ in stuck)]
    for level, times in forest.times.items():
        slowest = max(times, default=0.0)
        if slowest > limit:
            forest.wrong.append(f"seed {seed}: a stop took its grace and {slowest:.2f} s more")
        figures.append(f"level {level}: {len(times)}, slowest grace + {slowest:.2f} s")
    if (latest := max((took for _, took in stuck), default=0.0)) > max(limit, SAID_WITHIN):
        forest.wrong.append(f"seed {seed}: what survives was named only after {latest:.1f} s")
    tried = sum(map(len, forest.times.values()))
    return Verdict(count=tried, violations=tuple(forest.wrong), figures=tuple(figures))


class Forest:
    """Trees of one home; whoever outlives its own end is noted."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.stage = Stage(folder)
        self.stage.driver.subscribe(self._hear)
        self.mark = f"FOREST={secrets.token_hex(8)}"
        self.wrong: list[str] = []
        self.times: dict[str, list[float]] = {"A": [], "B": []}
        self._seed = seed
        self._kinds: dict[str, str] = {}
        self._ready = folder / "ready"
        self._ready.mkdir()

    async def one(self, kind: str, chance: float) -> None:
        """Start a tree, stop it, and wait for its end; one in four is stopped as it is born."""
        slot = f"tree{len(self._kinds)}"
        self._kinds[slot] = kind
        ready = self._ready / slot
        level = "A" if HAS_GROUPS and len(self._kinds) % 2 else "B"
        launch = self._launch(slot, KINDS[kind], level=level, READY=str(ready))
        await self.stage.driver.start(launch)
        if chance < 0.75:
            await eventually(ready.exists, 60, f"{kind} ready")
        else:
            await asyncio.sleep((chance - 0.75) / 5)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self.stage.driver.stop(slot, StopRule())
        late = False
        while self.stage.seen("Gone", slot) is None:
            await asyncio.sleep(0.005)
            if not late and loop.time() > began + GRACE:
                late = True
                await self.stage.driver.kill(slot)
            assert loop.time() < began + 100, f"{slot}, which {kind}: {self.stage.kinds(slot)}"
        self.times[level].append(loop.time() - began - GRACE)
        self._judge(slot, level)
        self.stage.driver.remove(slot)

    async def unkillable(self, level: str) -> tuple[str, float]:
        """Stop a process that the kernel keeps: it is named, and nothing is started beside it.

        Gives a figure, and after how many seconds it was named.
        """
        try:
            with FrozenMount(self.stage.folder / f"mount-{level}") as mount:
                took = await self._stop_stuck(mount, level)
        except PermissionError as cause:
            return f"no process in a dead mount: {cause}", 0.0
        await self.stage.told("Gone", f"stuck-{level}", within=60)
        said = f"unkillable said after {took:.1f} s, no second start"
        return f"dead mount, level {level}: {said}", took

    async def _stop_stuck(self, mount: FrozenMount, level: str) -> float:
        loop = asyncio.get_running_loop()
        driver = self.stage.driver
        slot = f"stuck-{level}"
        await driver.start(self._launch(slot, f"exec stat {mount.folder}/x", level=level))
        pid = (await self.stage.told("Started", slot)).identity.pid
        await eventually(mount.asked, 60, "a process that waits for the mount")
        began = loop.time()
        await driver.kill(slot)
        failed = await self.stage.told("StopFailed", slot, within=60)
        took = loop.time() - began
        if failed.fault.code != "UPH_STOP_UNKILLABLE" or str(pid) not in failed.fault.message:
            self.wrong.append(f"the process that survives is not named: {failed}")
        await driver.start(self._launch(slot, "exec sleep 1000", generation=2, level=level))
        await self.stage.told("StartFailed", slot, within=60)
        if marked(f"TREE={self.mark}-{slot}") != [pid] or self.stage.seen("Gone", slot):
            self.wrong.append("something was started beside a process that cannot be ended")
        await self.one("deaf", 0.0)  # nobody else waits for it
        return took

    def clean_up(self) -> None:
        """End everything; what cannot be ended is told beside all that was found before."""
        try:
            self.stage.clean_up()
        except AssertionError as problem:
            self.wrong.append(f"seed {self._seed}: what is left cannot be ended: {problem}")

    def blame(self, when: str, pids: list[int]) -> None:
        self.wrong += [f"seed {self._seed}, {when}: process {pid} lives on" for pid in pids]

    def _judge(self, slot: str, level: str) -> None:
        proof = self.stage.seen("Gone", slot).proof
        if (proof == PROOF_BY_GROUP) != (level == "A"):
            self.wrong.append(f"seed {self._seed}: {slot} of level {level} is gone by {proof}")

    def _launch(
        self, slot: str, script: str, generation: int = 1, level: str = "B", **variables: str
    ) -> Launch:
        mine = (self.mark, f"TREE={self.mark}-{slot}")
        pairs = [*(tuple(each.split("=", 1)) for each in mine), *variables.items()]
        command = ("/bin/sh", "-c", script)
        return self.stage.launch(
            slot,
            *command,
            generation=generation,
            environment=tuple(pairs),
            working_dir="/",
            containment="group" if level == "A" else "marks",
        )

    def _hear(self, fact: object) -> None:
        if type(fact).__name__ == "Gone":
            slot = fact.slot  # type: ignore[attr-defined]
            kind = self._kinds.get(slot, "is stuck")
            self.blame(f"{slot} ({kind}) was said to be gone", marked(f"TREE={self.mark}-{slot}"))


if __name__ == "__main__":
    main({"trees": trees})
