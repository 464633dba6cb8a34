"""Kills a supervisor again and again, and counts its processes without its help.

Run as a program: `crash_harness.py HOME ROUNDS SEED`. It forks a warm supervisor, lets it act
for a random time, kills it, and looks into /proc. Prints what is wrong; silence is success.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from uphold.core.events import Adopted, Exited, Gone, Started, StartFailed
from uphold.core.specs import StopRule, WorkerSpec
from uphold.core.statuses import Identity
from uphold.drivers.process import ProcessDriver
from uphold.host.clock import MachineClock
from uphold.host.homes import Home
from uphold.ports.drivers import Launch, Trace
from uphold.testing.waiting import eventually

SLEEP = "sleep 1000"
COMMANDS = {
    "plain": ("sleep", "1000"),
    "tree": ("/bin/sh", "-c", f"{SLEEP} & {SLEEP}"),
    "stray": ("/bin/sh", "-c", f"setsid {SLEEP} & {SLEEP}"),
    "short": ("sleep", "0.02"),
}
ACTING, ALL_UP = b"a", b"u"


# The supervisor under test: a driver and a book of intents and facts, nothing more.


class Book:
    def __init__(self, folder):
        self.folder = folder

    def read(self, slot):
        try:
            return json.loads((self.folder / slot).read_text())
        except FileNotFoundError:
            return {"generation": 0, "nonce": "", "identity": None, "nonces": []}

    def write(self, slot, page):
        temp = self.folder / f".{slot}"
        temp.write_text(json.dumps(page))
        temp.replace(self.folder / slot)

    def trace(self, slot):
        page = self.read(slot)
        identity = page["identity"] and Identity(**page["identity"])
        return Trace(
            slot=slot,
            generation=page["generation"],
            nonce=page["nonce"],
            identity=identity,
            spec=spec_of(slot, self.folder.parent),
        )


def spec_of(slot, home):
    mark = (("CRASH_HOME", str(home)),)
    return WorkerSpec(name=slot, command=COMMANDS[slot], environment=mark)


class Supervisor:
    def __init__(self, home, rng):
        self.book = Book(home.path / "book")
        self.driver = ProcessDriver(home, MachineClock())
        self.driver.subscribe(self.hear)
        self.up = set()
        self.down = set()
        self.rng = rng

    def hear(self, fact):
        if isinstance(fact, Started | Adopted):
            page = self.book.read(fact.slot)
            self.book.write(fact.slot, page | {"identity": asdict(fact.identity)})
            self.up.add(fact.slot)
            self.down.discard(fact.slot)
        elif isinstance(fact, Gone | StartFailed) or (
            isinstance(fact, Exited) and not fact.left_overs
        ):
            self.up.discard(fact.slot)
            self.down.add(fact.slot)

    async def start_what_is_down(self):
        launches = []
        for slot in sorted(self.down):
            page = self.book.read(slot)
            nonce = f"{self.rng.getrandbits(128):032x}"
            page["generation"] += 1
            page |= {"nonce": nonce, "identity": None, "nonces": [*page["nonces"], nonce]}
            self.book.write(slot, page)
            launches.append(
                Launch(
                    slot=slot,
                    generation=page["generation"],
                    nonce=nonce,
                    spec=spec_of(slot, self.book.folder.parent),
                )
            )
            self.down.discard(slot)
        await self.driver.start_all(launches)

    async def come_up(self):
        await self.driver.adopt([self.book.trace(slot) for slot in COMMANDS])
        await self.start_what_is_down()

    async def act(self, *, calm):
        await self.come_up()
        while True:
            slot = self.rng.choice(list(COMMANDS))
            if not calm and slot in self.up:
                self.up.discard(slot)
                how = self.rng.random()
                if how < 0.5:
                    self.driver.signal(slot, "KILL")
                elif how < 0.8:
                    await self.driver.stop(slot, StopRule())
                else:
                    await self.driver.kill(slot)
            await self.start_what_is_down()
            await asyncio.sleep(0.001)

    async def finish(self, say):
        await self.come_up()
        while not set(COMMANDS) - {"short"} <= self.up:
            await self.start_what_is_down()
            await asyncio.sleep(0.005)
        say(ALL_UP)
        self.down.clear()
        for slot in COMMANDS:
            await self.driver.stop(slot, StopRule())
        await eventually(lambda: self.down >= set(COMMANDS), what="all stopped")
        await self.driver.close()


def supervise(home, seed, pipe, mode):
    supervisor = Supervisor(home, random.Random(seed))

    def say(word):
        os.write(pipe, word)

    async def run():
        say(ACTING)
        if mode == "finish":
            await supervisor.finish(say)
        else:
            await supervisor.act(calm=mode == "calm")

    asyncio.run(run())


# The judge: knows nothing but /proc and what the book intended.


class Seen(NamedTuple):
    slot: str
    nonce: str
    pid: int
    main: bool
    """It leads a session, and is the oldest of its run that does."""


def living(home):
    """Find every process of this home, by what it was born with."""
    mark = f"CRASH_HOME={home.path}".encode()
    found = []
    for entry in os.listdir("/proc"):
        try:
            born_with = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            stat = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if mark in born_with and stat[0] not in "ZX":
            pairs = dict(pair.decode().split("=", 1) for pair in born_with if b"=" in pair)
            is_main = int(entry) == int(stat[3]) and pairs["UPHOLD_SLOT"] != "stray"
            found.append(Seen(pairs["UPHOLD_SLOT"], pairs["UPHOLD_NONCE"], int(entry), is_main))
    return found


def judge(home, alive, when):
    """Name every slot with two live runs, and every process that nobody intended."""
    book = Book(home.path / "book")
    runs = {}
    wrong = []
    for seen in alive:
        runs.setdefault(seen.slot, set()).add(seen.nonce)
        if seen.nonce not in book.read(seen.slot)["nonces"]:
            wrong.append(f"{when}: nobody intended {seen}")
    wrong += [f"{when}: {slot} has two live runs" for slot, each in runs.items() if len(each) > 1]
    return wrong


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def fork_supervisor(home, seed, mode):
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(readable)
        code = 1
        try:
            supervise(home, seed, writable, mode)
            code = 0
        finally:
            os._exit(code)
    os.close(writable)
    return pid, readable


def main(path, rounds, seed):
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to us, so that they are reaped at once
    home = Home(path)
    for folder in (home.slots, home.run, home.logs, home.path / "book"):
        folder.mkdir()
    rng = random.Random(seed)
    wrong = []
    quiet = False
    try:
        for number in range(rounds):
            found, quiet = one_round(home, rng, f"after kill {number}", quiet=quiet)
            wrong += found
        wrong += finish(home, rng)
    finally:
        for seen in living(home):
            with suppress(ProcessLookupError):
                os.kill(seen.pid, signal.SIGKILL)
    print("\n".join(wrong))
    return 1 if wrong else 0


def one_round(home, rng, when, *, quiet):
    """Let a supervisor act for up to 30 ms, kill it, and look. Now and then a worker dies too.

    `quiet` says that the last round sent no signal that could still be on its way.
    """
    calm = rng.random() < 0.4
    before = {seen for seen in living(home) if seen.main and seen.slot != "short"}
    pid, pipe = fork_supervisor(home, rng.getrandbits(32), "calm" if calm else "wild")
    os.read(pipe, 1)
    time.sleep(rng.random() * 0.03)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(pipe)
    reap()
    after = living(home)
    wrong = judge(home, after, when)
    if calm and quiet:
        lost = before - set(after)
        wrong += [f"{when}: {seen} was disturbed by a supervisor that did nothing" for seen in lost]
    strike = bool(after) and rng.random() < 0.2
    if strike:
        os.kill(rng.choice(after).pid, signal.SIGKILL)
        reap()
    return wrong, calm and not strike


def finish(home, rng):
    """Let a last supervisor bring everything up and stop it; nothing may be left."""
    wrong = []
    pid, pipe = fork_supervisor(home, rng.getrandbits(32), "finish")
    os.read(pipe, 1)
    if os.read(pipe, 1) != ALL_UP:
        wrong.append("after the last start not all slots came up")
    wrong += judge(home, living(home), "at the end")
    if status := os.waitpid(pid, 0)[1]:
        wrong.append(f"the last supervisor ended with {status}")
    wrong += [f"left after everything was stopped: {seen}" for seen in living(home)]
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
