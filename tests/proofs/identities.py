"""T08: a number that has come to mean another process is never signalled and never adopted.

In a PID namespace of its own, where nobody else takes numbers: a worker dies, its number is given
to a stranger at once (often within the same clock tick), and then the driver is asked to signal,
stop, kill, adopt or start. The stranger must not notice.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from drivers.conftest import Stage
from proofs.living import fields
from proofs.proving import Verdict, main
from uphold.core.specs import StopRule
from uphold.core.statuses import Identity

LAST = Path("/proc/sys/kernel/ns_last_pid")
SLOT = "web"
BLOCKED = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""What a stranger puts off, so that whatever it was sent can be read from its pending signals."""
NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
FOR_OTHERS = ("unshare", "--user", "--map-root-user", *NAMESPACE[1:])


class NoNamespaceError(Exception):
    """This machine gives nobody a PID namespace of their own."""


def reuses(count: int, seed: int, folder: Path) -> Verdict:
    """Force `count` reuses of a PID in a namespace of our own; NoNamespaceError if there can be none."""
    unshare = NAMESPACE if os.geteuid() == 0 else FOR_OTHERS
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        raise NoNamespaceError(f"{' '.join(unshare)} is not allowed here")
    # The shell is process 1 there: what only process 1 may ignore must not help the driver.
    inner = [sys.executable, __file__, "inside", str(count), "--seed", str(seed)]
    command = [*unshare, "sh", "-c", '"$@"; exit $?', "sh", *inner]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=path)
    if not done.stdout:
        return Verdict(count=0, violations=(f"seed {seed}: no answer: {done.stderr[-2000:]}",))
    told = json.loads(done.stdout.splitlines()[-1])
    return Verdict(
        count=told["count"], violations=tuple(told["violations"]), figures=tuple(told["figures"])
    )


def inside(count: int, seed: int, folder: Path) -> Verdict:
    """Do the work; whoever calls this is alone in a PID namespace."""
    return asyncio.run(_inside(count, seed, folder))


async def _inside(count: int, seed: int, folder: Path) -> Verdict:
    rng = random.Random(seed)
    lair = Lair(folder)
    tried: Counter[str] = Counter()
    same_tick = 0
    for number in range(count):
        scene = rng.choice(SCENES)
        lair.when = f"seed {seed}, reuse {number} ({scene.__name__})"
        await scene(lair, rng)
        tried[scene.__name__] += 1
        same_tick += lair.same_tick
        await lair.clear()
    await lair.stage.driver.close()
    figures = (f"{same_tick} within one clock tick", f"{len(tried)} kinds of moment")
    return Verdict(count=count, violations=tuple(lair.wrong), figures=figures)


class Lair:
    """One slot, and the stranger that gets the number of its worker."""

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder)
        self.wrong: list[str] = []
        self.when = ""
        self.same_tick = False
        self.who: Identity | None = None
        self._generation = 0
        self._stranger = 0

    async def worker(self) -> int:
        """Start the slot's worker."""
        await self.stage.driver.start(self.launch())
        self.who = self.stage.seen("Started", SLOT).identity
        return self.who.pid

    def launch(self):
        self._generation += 1
        return self.stage.launch(SLOT, "sleep", "1000", generation=self._generation)

    def trace(self, identity: Identity | None):
        return self.stage.trace(
            self.stage.launch(SLOT, "sleep", "1000", generation=self._generation), identity
        )

    def end_unnoticed(self, pid: int) -> None:
        """End the worker and let its number go before the driver's loop has its turn."""
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def give_to_a_stranger(self, pid: int) -> None:
        """Start a stranger that leads a session and a group of its own, with this number."""
        for _ in range(100):
            LAST.write_text(str(pid - 1))
            child = os.posix_spawn(
                "/bin/sleep", ["sleep", "1000"], {}, setsid=True, setsigmask=BLOCKED
            )
            if child == pid:
                break
            os.kill(child, signal.SIGKILL)  # a thread of ours had taken the number
            os.waitpid(child, 0)
        assert child == pid, f"number {pid} could not be had"
        self._stranger = child
        assert self.who is not None
        self.same_tick = fields(child)[19] == str(self.who.start_ticks)

    def is_unharmed(self) -> None:
        """Note a stranger that was signalled or taken in."""
        ended, status = os.waitpid(self._stranger, os.WNOHANG)
        if ended:
            self.wrong.append(f"{self.when}: the stranger was ended ({status})")
            self._stranger = 0
        elif fields(self._stranger)[0] == "T":
            self.wrong.append(f"{self.when}: the stranger was stopped")
        elif sent := pending(self._stranger):
            self.wrong.append(f"{self.when}: the stranger was sent {', '.join(sent)}")
        adopted = self.stage.seen("Adopted", SLOT)
        if adopted is not None:
            self.wrong.append(f"{self.when}: the stranger was adopted: {adopted}")

    async def clear(self) -> None:
        """End the stranger and whatever runs in the slot."""
        if self._stranger:
            os.kill(self._stranger, signal.SIGKILL)
            os.waitpid(self._stranger, 0)
            self._stranger = 0
        self.stage.facts.clear()
        await self.stage.driver.kill(SLOT)
        await self.stage.told("Gone", SLOT, within=60)
        self.stage.facts.clear()


async def asked_before_noticed(lair: Lair, rng: random.Random) -> None:
    """The number changes hands before the loop has heard of the end."""
    pid = await lair.worker()
    lair.end_unnoticed(pid)
    lair.give_to_a_stranger(pid)
    verb = rng.choice(("signal", "stop", "kill"))
    if verb == "signal":
        lair.stage.driver.signal(SLOT, "KILL")
    elif verb == "stop":
        await lair.stage.driver.stop(SLOT, StopRule(signal=rng.choice(("TERM", "STOP"))))
    else:
        await lair.stage.driver.kill(SLOT)
    await lair.stage.told("Exited" if verb == "signal" else "Gone", SLOT, within=60)
    lair.is_unharmed()


async def while_it_is_emptied(lair: Lair, rng: random.Random) -> None:
    """The number changes hands when the exit is told, before anybody looks for left-overs."""
    pid = await lair.worker()

    def hear(fact: object) -> None:
        if type(fact).__name__ == "Exited":
            lair.give_to_a_stranger(pid)

    lair.stage.driver.subscribe(hear)
    try:
        if rng.random() < 0.5:
            await lair.stage.driver.stop(SLOT, StopRule())
        else:
            await lair.stage.driver.kill(SLOT)
        await lair.stage.told("Gone", SLOT, within=60)
    finally:
        lair.stage.driver.unsubscribe(hear)
    lair.is_unharmed()


async def adopted_by_the_next(lair: Lair, rng: random.Random) -> None:
    """The number changes hands while no supervisor looks."""
    pid = await lair.worker()
    await lair.stage.next_supervisor()
    lair.end_unnoticed(pid)
    lair.give_to_a_stranger(pid)
    recorded = lair.who if rng.random() < 0.7 else None
    await lair.stage.driver.adopt([lair.trace(recorded)])
    if lair.stage.seen("Gone", SLOT) is None:
        lair.wrong.append(f"{lair.when}: not said to be gone: {lair.stage.facts}")
    lair.is_unharmed()
    lair.stage.facts.clear()
    await lair.stage.driver.kill(SLOT)
    await lair.stage.told("Gone", SLOT, within=60)
    lair.is_unharmed()


async def started_by_the_next(lair: Lair, rng: random.Random) -> None:
    """The number changes hands while no supervisor looks, and the slot is simply started."""
    pid = await lair.worker()
    await lair.stage.next_supervisor()
    lair.end_unnoticed(pid)
    lair.give_to_a_stranger(pid)
    await lair.stage.driver.start(lair.launch())
    started = lair.stage.seen("Started", SLOT)
    if started is None or started.identity.pid == pid:
        lair.wrong.append(f"{lair.when}: not started beside the stranger: {lair.stage.facts}")
    lair.is_unharmed()


def pending(pid: int) -> list[str]:
    """Name the signals that a process was sent and has put off."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd"))]
    sent = masks[0] | masks[1]
    return [f"signal {number}" for number in range(1, 65) if sent >> (number - 1) & 1]


Scene = Callable[[Lair, random.Random], Awaitable[None]]
SCENES: tuple[Scene, ...] = (
    asked_before_noticed,
    while_it_is_emptied,
    adopted_by_the_next,
    started_by_the_next,
)

if __name__ == "__main__":
    main({"reuses": reuses, "inside": inside})
