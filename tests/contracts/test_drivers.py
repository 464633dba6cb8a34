from __future__ import annotations

import signal
import sys

import pytest

from uphold.core.specs import WorkerSpec
from uphold.drivers.process import ProcessDriver
from uphold.host.clock import MachineClock
from uphold.host.homes import Home
from uphold.host.processes import find
from uphold.host.processes.groups import Groups
from uphold.host.processes.hierarchies import find_hierarchies
from uphold.host.processes.slotlocks import read_record
from uphold.host.proctable import read_proc
from uphold.testing.contracts.drivers import DriverContract
from uphold.testing.drivers import FakeDriver, World
from uphold.testing.waiting import eventually

ENDER = """
import signal, sys, time
ends = {signal.SIGRTMIN + code: code for code in range(10)}
for number, code in ends.items():
    signal.signal(number, lambda number, _: sys.exit(ends[number]))
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
while True:
    time.sleep(0.02)
"""


class FakeBench:
    def __init__(self):
        self.world = World()
        self.driver = None

    def open(self):
        self.driver = FakeDriver(MachineClock(), self.world)
        return self.driver

    def spec(self, name, *, stubborn=False, hopeless=False):
        if stubborn:
            self.driver.ignore_stop(name)
        if hopeless:
            self.driver.fail_start(name, hopeless=True)
        return WorkerSpec(name=name, command=("worker",))

    async def settled(self, slot):
        pass

    async def end(self, slot, code):
        self.driver.end(slot, code)

    async def clean_up(self):
        self.world.alive.clear()


class ProcessBench:
    """Real processes: one Python program that ends with a code when told by a signal."""

    def __init__(self, folder, **terms):
        self.terms = terms
        self.home = Home(folder)
        for path in (self.home.slots, self.home.run, self.home.logs):
            path.mkdir()
        self.driver = None

    def open(self):
        self.driver = ProcessDriver(self.home, MachineClock())
        return self.driver

    def spec(self, name, *, stubborn=False, hopeless=False):
        program = "/there/is/no/such/program" if hopeless else sys.executable
        traits = ("stubborn",) if stubborn else ()
        return WorkerSpec(name=name, command=(program, "-ISc", ENDER, *traits), **self.terms)

    async def settled(self, slot):
        pid = read_record(self.home.slot_lock(slot)).pid
        await eventually(lambda: ignores(pid, signal.SIGUSR2))

    async def end(self, slot, code):
        await self.settled(slot)
        assert self.driver.signal(slot, str(signal.SIGRTMIN + code))

    async def clean_up(self):
        for path in self.home.slots.glob("*.lock"):
            record = read_record(path)
            process = find(record.identity) if record and record.identity else None
            if process is not None:
                process.send(signal.SIGKILL)
                await eventually(process.reap)
                process.close()
        groups = Groups(self.home)
        await eventually(lambda: not groups.inhabited())
        groups.close()


def ignores(pid, number):
    for line in read_proc(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"SigIgn:"):
            return int(line.split()[1], 16) >> (number - 1) & 1
    return False


@pytest.mark.accepts("M-29")
class TestFakeDriver(DriverContract):
    @pytest.fixture
    def bench(self):
        return FakeBench()


@pytest.mark.accepts("M-29")
class TestProcessDriver(DriverContract):
    @pytest.fixture
    def bench(self, tmp_path):
        return ProcessBench(tmp_path)


@pytest.mark.skipif(find_hierarchies().tree is None, reason="no control group can be written here")
class TestProcessDriverWithGroups(DriverContract):
    @pytest.fixture
    def bench(self, tmp_path):
        return ProcessBench(tmp_path, containment="group")
