"""One stage for the tests of the process driver: real processes, all ended afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from uphold.core.specs import WorkerSpec
from uphold.drivers.process import ProcessDriver
from uphold.host.clock import MachineClock
from uphold.host.homes import Home
from uphold.host.processes import close_on_exec, find
from uphold.host.processes.groups import Groups
from uphold.ports.drivers import Launch, Trace
from uphold.testing.waiting import eventually, until


class Stage:
    def __init__(self, folder):
        self.folder = folder
        self.home = Home(folder / "home")
        for path in (self.home.path, self.home.slots, self.home.run, self.home.logs):
            path.mkdir(exist_ok=True)
        self.facts = []
        self.born = set()
        self.driver = None
        self.open()

    def open(self, **options):
        self.facts.clear()
        self.driver = ProcessDriver(self.home, MachineClock(), **options)
        self.driver.subscribe(self.facts.append)
        self.driver.subscribe(self.remember)

    def remember(self, fact):
        if hasattr(fact, "identity"):
            self.born.add(fact.identity)

    async def next_supervisor(self, **options):
        await self.driver.close()
        self.open(**options)

    def launch(self, slot, *command, generation=1, **terms):
        mark = (*terms.pop("environment", ()), ("STAGE", str(self.folder)))
        name = slot.partition(".")[0]
        spec = WorkerSpec(name=name, command=command, environment=mark, **terms)
        nonce = sha256(f"{self.folder} {slot} {generation}".encode()).hexdigest()[:32]
        return Launch(slot=slot, generation=generation, nonce=nonce, spec=spec)

    async def start(self, slot, *command, **terms):
        """Start a slot and give its process number once it runs its own program."""
        launch = self.launch(slot, *command, **terms)
        await self.driver.start(launch)
        started = await self.told("Started", slot)
        pid = started.identity.pid
        await eventually(lambda: not alive(pid) or variables(pid))
        return pid

    async def start_python(self, slot, program, **terms):
        """Start a Python program that makes a file `ready` in its folder; wait for that."""
        ready = self.folder / f"{slot}.ready"
        ready.unlink(missing_ok=True)
        source = f"import os, sys, signal, time\n{program}\nopen({str(ready)!r}, 'w')\nwhile True: time.sleep(0.02)"
        pid = await self.start(slot, sys.executable, "-ISc", source, **terms)
        await eventually(lambda: ready.exists() or not alive(pid), what=f"{slot} ready")
        return pid

    def seen(self, kind, slot):
        for fact in reversed(self.facts):
            if type(fact).__name__ == kind and fact.slot == slot:
                return fact
        return None

    async def told(self, kind, slot, within=20.0):
        return await eventually(
            lambda: self.seen(kind, slot), within, f"{kind} of {slot} in {self.facts}"
        )

    def kinds(self, slot):
        return [type(fact).__name__ for fact in self.facts if fact.slot == slot]

    def trace(self, launch, identity=None):
        return Trace(
            slot=launch.slot,
            generation=launch.generation,
            nonce=launch.nonce,
            identity=identity,
            spec=launch.spec,
        )

    def marked(self):
        """Name every living process that was born on this stage."""
        mark = f"STAGE={self.folder}".encode()
        return [pid for pid in numbers() if mark in variables(pid) and alive(pid)]

    def clean_up(self):
        """End everything: what was told, as it may not show its environment yet, then all marked."""
        for process in filter(None, map(find, self.born)):
            process.send(signal.SIGKILL)
            until(lambda process=process: not process.alive())
            process.reap()
            process.close()
        while found := self.marked():
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        groups = Groups(self.home)
        for slot in groups.inhabited():
            groups.left(slot).kill()
        until(lambda: not groups.inhabited())
        groups.close()


def numbers():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def variables(pid):
    try:
        return [each for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") if each]
    except OSError:
        return []


def status(pid):
    """Read /proc/PID/status as a mapping."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def alive(pid):
    try:
        return status(pid)["State"][0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def act(tmp_path):
    """Run a scene on a stage; nothing born on it outlives it."""
    tmp_path.chmod(0o755)
    close_on_exec(
        3
    )  # as a supervisor does at birth: whoever runs the tests may have left some open
    stage = Stage(tmp_path)

    def run(scene):
        async def play():
            try:
                await scene(stage)
            finally:
                await stage.driver.close()

        asyncio.run(play())

    yield run
    stage.clean_up()
