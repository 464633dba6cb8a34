"""The measurements: each yields figures of one contender, under the name of a row."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benching.contenders import HERE, Contender, Floor, Supervisord
from benching.processes import DEADLINE, Census, cpu, pss

Sample = tuple[str, float]

SPEAKERS = 100
LINES_EACH = 10.0
MANY = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is done for one figure."""

    rounds: int = 3
    kills: int = 20
    asks: int = 9
    idle: float = 30.0
    talk: float = 10.0
    flood: float = 1000.0
    settle: float = 2.0

    def for_the_slow(self) -> Effort:
        """Ask less of a contender whose figures take seconds each."""
        return Effort(
            rounds=min(self.rounds, 2),
            kills=min(self.kills, 5),
            asks=min(self.asks, 3),
            idle=self.idle,
            talk=self.talk,
            flood=self.flood,
            settle=self.settle,
        )


QUICK = Effort(rounds=2, kills=10, asks=5, idle=5.0, talk=5.0, flood=300.0, settle=1.0)


class Site:
    """One contender with N sleeping workers."""

    def __init__(self, kind: type[Contender], folder: Path, size: int) -> None:
        # A number nobody else sleeps for: workers are found by it.
        self.word = f"{10**7 + os.getpid()}.{time.monotonic_ns() % 10**6:06}"
        self.commands = [f"sleep {self.word}{number:05}" for number in range(size)]
        self.contender = kind(folder, self.commands)
        self.census = Census(self.word)
        self.size = size
        self._more = count(90_000)

    def start(self) -> float:
        """Start, and wait until all are alive and it has said so."""

        def work() -> None:
            self.contender.start()
            self.census.wait_for(self.size)

        return timed(work)

    def stop(self) -> float:
        """Stop, and wait until all are gone."""

        def work() -> None:
            self.contender.stop()
            self.census.wait_gone()

        return timed(work)

    def kill_one(self, victim: int) -> float:
        """Kill one and wait for its successor."""
        self.census.look()
        self.census.forget(victim)

        def work() -> None:
            os.kill(victim, signal.SIGKILL)
            self.census.wait_for(self.size, pause=0.0001)

        return timed(work)

    def kill_all(self) -> float:
        """Kill all at once and wait until as many are back."""
        victims = tuple(self.census.alive)
        self.census.look()
        self.census.forget(*victims)

        def work() -> None:
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            self.census.wait_for(self.size)

        return timed(work)

    def reload(self) -> float:
        """Change one worker, add another, and wait until both are alive."""
        changed, added = (f"sleep {self.word}{next(self._more)}" for _ in range(2))
        self.commands = [changed, *self.commands[1:], added]
        # Both, beside the old self of the changed one, which is gone by then.
        born = len(self.census.alive) + 2

        def work() -> None:
            self.contender.reload(self.commands)
            self.census.wait_for(born)

        return timed(work)


AREA = tempfile.TemporaryDirectory(prefix="uphold-bench-")
"""Where everything is put; it goes when the last figure is taken, and nothing of it before.

ext4 passes over what was removed in the last minutes, one inode after the other: whoever makes a
thousand files right after a thousand were removed would be measured with that.
"""


def new_folder() -> Path:
    """Make a folder for one contender and one turn."""
    return Path(tempfile.mkdtemp(dir=AREA.name))


def life(
    kind: type[Contender], size: int, turn: int, effort: Effort, wanted: set[str]
) -> Iterator[Sample]:
    """Start and stop once; between, look at it, or every second time kill all of it."""
    if kind is Supervisord and size >= MANY:
        effort = effort.for_the_slow()
    if turn >= effort.rounds:
        return
    here = Site(kind, new_folder(), size)
    yield "start", here.start()
    try:
        time.sleep(effort.settle)
        if "memory" in wanted:
            yield "memory", pss(here.contender.own())
        if turn % 2 == 0:
            # Idle once only: it takes half a minute.
            yield from looks(here, effort, wanted if turn == 0 else wanted - {"idle"})
        elif "revive" in wanted:
            yield "revive", here.kill_all()
        time.sleep(effort.settle)
    finally:
        took = here.stop()
    if turn:  # the first had more to do before it was stopped
        yield "stop", took


def looks(here: Site, effort: Effort, wanted: set[str]) -> Iterator[Sample]:
    """Take what can be seen of a running site."""
    contender = here.contender
    if "idle" in wanted:
        before = cpu(contender.own())
        time.sleep(effort.idle)
        yield "idle", (cpu(contender.own()) - before) * 30.0 / effort.idle
    if "status" in wanted:
        for _ in range(effort.asks):
            yield "status", timed(contender.status) * 1000
    if "ask" in wanted and not isinstance(contender, Floor):
        for _ in range(effort.asks * 2):
            yield "ask", timed(contender.ask) * 1000
    if "restart" in wanted:
        for victim in tuple(here.census.alive)[: effort.kills]:  # each once: no back-off
            time.sleep(0.05)
            yield "restart", here.kill_one(victim) * 1000
    if "reload" in wanted and not isinstance(contender, Floor):
        for _ in range(2):
            time.sleep(effort.settle)
            yield "reload", here.reload()


def flood(kind: type[Contender], effort: Effort) -> Iterator[Sample]:
    """Let one worker write as fast as it can, into logs that are rotated."""
    folder = new_folder()
    sign = folder / "sign"
    with speaking(kind, folder, [("flood", effort.flood, sign)]) as pids:
        before = cpu(pids)
        sign.touch()
        took = float(wait_for_file(Path(f"{sign}.took")))
        time.sleep(0.3)  # what the pipe still held
        yield "flood", effort.flood / took
        yield "flood-cpu", (cpu(pids) - before) * 1000 / effort.flood
    shutil.rmtree(folder)  # few files, and much in them


def trickle(kind: type[Contender], effort: Effort) -> Iterator[Sample]:
    """Let a hundred workers write now and then."""
    folder = new_folder()
    sign = folder / "sign"
    with speaking(kind, folder, [("trickle", LINES_EACH, sign)] * SPEAKERS) as pids:
        sign.touch()
        time.sleep(effort.settle)
        before = cpu(pids)
        time.sleep(effort.talk)
        yield "trickle", (cpu(pids) - before) * 10.0 / effort.talk


@contextmanager
def speaking(
    kind: type[Contender], folder: Path, speakers: list[tuple[str, float, Path]]
) -> Iterator[list[int]]:
    """Run workers that write, and name the processes that carry their words to the disk."""
    program = [sys.executable, "-I", "-S", str(HERE / "speaking.py")]
    commands = [[*program, how, str(amount), str(sign)] for how, amount, sign in speakers]
    if kind is Floor:
        with _cats(folder, commands) as pids:
            yield pids
        return
    contender = kind(folder, [" ".join(each) for each in commands])
    contender.start()
    try:
        time.sleep(1.0)
        yield contender.own()
    finally:
        contender.stop()


@contextmanager
def _cats(folder: Path, commands: list[list[str]]) -> Iterator[list[int]]:
    """Give each speaker a `cat` of its own: the least that moves bytes from a pipe to a file."""
    speakers, cats = [], []
    for number, command in enumerate(commands):
        with Path(folder, f"{number}.log").open("wb") as file:
            speaker = subprocess.Popen(command, stdout=subprocess.PIPE)
            assert speaker.stdout is not None
            cats.append(subprocess.Popen(["cat"], stdin=speaker.stdout, stdout=file))
            speaker.stdout.close()
            speakers.append(speaker)
    try:
        time.sleep(1.0)
        yield [each.pid for each in cats]
    finally:
        for each in (*speakers, *cats):
            each.kill()
            each.wait()


def wait_for_file(path: Path) -> str:
    """Wait until a file is there and give what it says."""
    end = time.perf_counter() + DEADLINE
    while not path.exists():
        if time.perf_counter() > end:
            raise TimeoutError("the flood did not end")
        time.sleep(0.005)
    return path.read_text()


def timed(work: Callable[[], None]) -> float:
    """Say how many seconds something took."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
