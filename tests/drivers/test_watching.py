from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leaks import held
from uphold.core.specs import StopRule
from uphold.testing.waiting import eventually

ORPHANS = """
import asyncio, os, subprocess, sys, time
from pathlib import Path
from uphold.core.specs import WorkerSpec
from uphold.drivers.process import ProcessDriver
from uphold.host.clock import MachineClock
from uphold.host.homes import Home
from uphold.host.processes.birth import birth
from uphold.ports.drivers import Launch
from uphold.testing.waiting import eventually

def zombies():
    found = {}
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            found[int(pid)] = True
    return found

async def main(home):
    driver = ProcessDriver(Home(home), MachineClock())
    ours = subprocess.Popen(["sh", "-c", "exit 5"])
    claimed = {ours.pid}
    script = "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'exit 3' &) ; done; sleep 1000"
    spec = WorkerSpec(name="web", command=("/bin/sh", "-c", script))
    await driver.start(Launch(slot="web", generation=1, nonce="n" * 32, spec=spec))
    seen, limit = {}, time.monotonic() + 2.5
    oldest = 0.0
    while time.monotonic() < limit:
        now = time.monotonic()
        current = zombies().keys() - claimed
        seen = {pid: seen.get(pid, now) for pid in current}
        oldest = max([oldest, *(now - since for since in seen.values())])
        if current:
            print("stranger", flush=True)
        await asyncio.sleep(0.01)
    print("oldest", "young" if oldest < 1.0 else f"too old: {oldest}")
    print("left", sorted(zombies().keys() - claimed))
    print("ours", ours.wait())
    facts = []
    driver.subscribe(lambda fact: facts.append(type(fact).__name__))
    await driver.kill("web")
    await eventually(lambda: "Gone" in facts)
    await driver.close()

birth()
asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.accepts("P16")
def test_orphans_that_come_to_us_are_reaped_and_nobodys_exit_is_stolen(tmp_path):
    for name in ("slots", "run", "logs"):
        (tmp_path / name).mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert "stranger" in lines, f"no orphan ever came: {done}"
    assert lines[-3:] == ["oldest young", "left []", "ours 5"], done


@pytest.mark.accepts("B-72", "C-118")
def test_one_that_ends_at_once_is_told_as_started_and_exited(act):
    async def scene(stage):
        await stage.driver.start(stage.launch("web", "sh", "-c", "exit 9"))
        exited = await stage.told("Exited", "web")
        assert (exited.exit.code, exited.exit.signal, exited.left_overs) == (9, None, False)
        assert stage.kinds("web") == ["Started", "Exited"]

    act(scene)


def test_an_exit_by_signal_is_told_as_that(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        os.kill(pid, signal.SIGSEGV)
        exited = await stage.told("Exited", "web")
        assert (exited.exit.code, exited.exit.signal) == (None, signal.SIGSEGV)

    act(scene)


@pytest.mark.accepts("P16")
def test_our_own_children_leave_no_zombies(act):
    async def scene(stage):
        launches = [stage.launch(f"web.{number}", "true") for number in range(2, 32)]
        await stage.driver.start_all(launches)
        for launch in launches:
            await stage.told("Exited", launch.slot)
        for launch in launches:
            pid = stage.seen("Started", launch.slot).identity.pid
            assert not Path(f"/proc/{pid}").exists()

    act(scene)


def test_descriptors_return_to_what_they_were(act):
    async def scene(stage):
        await stage.start("warm", "true")
        await stage.told("Exited", "warm")
        stage.driver.remove("warm")
        before = held()
        for generation in range(1, 4):
            await stage.start("web", "sleep", "1000", generation=generation)
            await stage.driver.stop("web", StopRule())
            await eventually(lambda n=generation: stage.kinds("web").count("Gone") == n)
        stage.driver.remove("web")
        assert held() == before

    act(scene)


def test_a_closed_driver_tells_nothing_more_and_holds_nothing(act):
    async def scene(stage):
        before = held()
        pid = await stage.start("web", "sleep", "1000")
        await stage.driver.close()
        assert held() == before
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert stage.kinds("web") == ["Started"]

    act(scene)
