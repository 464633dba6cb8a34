from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from drivers.conftest import alive, variables
from uphold.core.specs import StopRule
from uphold.core.statuses import Identity
from uphold.host.clock import boot_id
from uphold.host.processes import containment
from uphold.host.processes.slotlocks import SlotLock, SlotRecord, read_record
from uphold.testing.waiting import eventually

LEAVE_BEHIND = """
import asyncio, json, sys
from dataclasses import asdict
from uphold.core.specs import WorkerSpec
from uphold.drivers.process import ProcessDriver
from uphold.host.clock import MachineClock
from uphold.host.homes import Home
from uphold.ports.drivers import Launch

async def main(home, stage, slot, nonce, *command):
    driver = ProcessDriver(Home(home), MachineClock())
    driver.subscribe(lambda fact: print(json.dumps(asdict(fact.identity))))
    spec = WorkerSpec(name=slot, command=command, environment=(("STAGE", stage),))
    await driver.start(Launch(slot=slot, generation=1, nonce=nonce, spec=spec))

asyncio.run(main(*sys.argv[1:]))
"""


def left_behind(stage, launch):
    """Have a slot started by a supervisor of its own, which then ends without a word."""
    arguments = [stage.home.path, stage.folder, launch.slot, launch.nonce, *launch.spec.command]
    done = subprocess.run(
        [sys.executable, "-c", LEAVE_BEHIND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return Identity(**json.loads(done.stdout))


def forget_identity(stage, slot):
    """Leave in the slot's file what is there between the intent and the fact."""
    path = stage.home.slot_lock(slot)
    record = read_record(path)
    SlotLock(path, -1).write(SlotRecord(record.generation, record.nonce, record.boot_id))


def reuse(pid):
    """Start a stranger under a number that was somebody else's; only root can ask for one."""
    for _ in range(200):
        try:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        except PermissionError:
            return None
        stranger = subprocess.Popen(["sleep", "1000"])
        if stranger.pid == pid:
            return stranger
        stranger.kill()
        stranger.wait()
    raise AssertionError("the number was never given out again")


@pytest.mark.accepts("P6")
def test_what_answers_to_its_identity_is_adopted_without_a_look_at_all_processes(act):
    async def scene(stage):
        launches = [stage.launch(f"web.{number}", "sleep", "1000") for number in range(2, 22)]
        await stage.driver.start_all(launches)
        traces = [
            stage.trace(launch, stage.seen("Started", launch.slot).identity) for launch in launches
        ]
        await stage.next_supervisor()
        await stage.driver.adopt(traces)
        assert [type(fact).__name__ for fact in stage.facts] == ["Adopted"] * 20
        assert [fact.identity for fact in stage.facts] == [trace.identity for trace in traces]
        assert stage.driver.scanner.looks == 0

    act(scene)


@pytest.mark.accepts("P6")
def test_the_exit_of_an_adopted_process_is_noticed_and_exact(act):
    async def scene(stage):
        gate = stage.folder / "gate"
        os.mkfifo(gate)
        launch = stage.launch("web", "/bin/sh", "-c", f"read line < {gate}; exit 7")
        identity = left_behind(stage, launch)
        await stage.driver.adopt([stage.trace(launch, identity)])
        assert (await stage.told("Adopted", "web")).identity == identity
        descriptor = os.open(gate, os.O_RDWR)
        os.write(descriptor, b"\n")
        exited = await stage.told("Exited", "web")
        os.close(descriptor)
        expected = 7 if containment().exits_of_adopted else None
        # Process 1 may take its time to let go of it: then how it ended is told with its tree.
        how = (await stage.told("Gone", "web")).exit if exited.left_overs else exited.exit
        assert (how.code, how.signal) == (expected, None)

    act(scene)


@pytest.mark.accepts("P3", "P6")
def test_an_adopted_process_is_stopped_and_proved_gone(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000")
        identity = left_behind(stage, launch)
        await stage.driver.adopt([stage.trace(launch, identity)])
        await stage.driver.stop("web", StopRule())
        await stage.told("Gone", "web")
        assert stage.kinds("web") == ["Adopted", "Exited", "Gone"]
        assert stage.marked() == []

    act(scene)


@pytest.mark.accepts("P2")
def test_an_intent_alone_is_enough_to_find_the_run_by_its_nonce(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000")
        identity = left_behind(stage, launch)
        forget_identity(stage, "web")
        await stage.driver.adopt([stage.trace(launch)])
        assert (await stage.told("Adopted", "web")).identity == identity
        assert stage.driver.scanner.looks == 1

    act(scene)


@pytest.mark.accepts("P2", "P5")
def test_one_that_is_just_being_born_is_waited_for(act):
    """Between fork and exec the lock is held and the nonce is not to be seen yet."""

    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000")
        lock = SlotLock.take(stage.home.slot_lock("web"))
        lock.write(SlotRecord(1, launch.nonce, boot_id()))
        mark = f"STAGE={stage.folder}"
        born = subprocess.Popen(
            ["sh", "-c", f"read go; exec env UPHOLD_NONCE={launch.nonce} {mark} sleep 1000"],
            pass_fds=[lock.descriptor],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        lock.close()
        born.stdin.write(b"go\n")
        task = asyncio.create_task(stage.driver.adopt([stage.trace(launch)]))
        await eventually(lambda: stage.driver.scanner.looks >= 2)
        assert stage.facts == []
        born.stdin.close()
        await task
        assert stage.seen("Adopted", "web").identity.pid == born.pid
        born.returncode = 0

    act(scene)


@pytest.mark.accepts("P3")
def test_left_overs_of_a_main_process_that_is_gone_are_ended(act):
    async def scene(stage):
        launch = stage.launch("web", "/bin/sh", "-c", "setsid sleep 1000 & exec sleep 999")
        identity = left_behind(stage, launch)
        await eventually(lambda: len(stage.marked()) == 2)
        os.kill(identity.pid, signal.SIGKILL)
        await eventually(lambda: len(stage.marked()) == 1)
        await stage.driver.adopt([stage.trace(launch, identity)])
        gone = await stage.told("Gone", "web")
        assert stage.kinds("web") == ["Gone"]
        assert gone.exit is not None
        assert stage.marked() == []

    act(scene)


@pytest.mark.accepts("P7", "B-08", "D-10")
def test_a_number_that_means_another_process_now_is_left_alone(act):
    async def scene(stage):
        stranger = await stage.start("stranger", "sleep", "1000")
        found = stage.seen("Started", "stranger").identity
        launch = stage.launch("web", "sleep", "1000")
        others = [
            replace(found, inode=found.inode + 1, nonce=launch.nonce),
            replace(found, start_ticks=found.start_ticks + 1, nonce=launch.nonce),
            replace(found, boot_id="another boot", nonce=launch.nonce),
        ]
        await stage.next_supervisor()
        for generation, identity in enumerate(others, start=1):
            trace = replace(stage.trace(launch, identity), generation=generation)
            await stage.driver.adopt([trace])
            await stage.driver.stop("web", StopRule())
            await stage.driver.kill("web")
        assert stage.kinds("web") == ["Gone"] * 9
        assert alive(stranger)

    act(scene)


@pytest.mark.accepts("P7", "B-01", "B-08", "D-10")
def test_a_number_really_used_again_is_left_alone(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000")
        old = left_behind(stage, launch)
        os.kill(old.pid, signal.SIGKILL)
        await eventually(lambda: not os.path.exists(f"/proc/{old.pid}"))
        stranger = reuse(old.pid)
        await stage.driver.adopt([stage.trace(launch, old)])
        await stage.told("Gone", "web")
        await stage.driver.kill("web")
        if stranger is not None:
            assert stranger.poll() is None
            stranger.kill()
            stranger.wait()
        assert stage.kinds("web") == ["Gone", "Gone"]

    act(scene)


def test_after_a_restart_of_the_machine_nothing_is_looked_for(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000")
        lock = SlotLock.take(stage.home.slot_lock("web"))
        lock.write(SlotRecord(1, launch.nonce, "an-earlier-boot", 1, 2, 3))
        lock.close()
        identity = Identity(
            pid=1, start_ticks=2, boot_id="an-earlier-boot", inode=3, nonce=launch.nonce
        )
        await stage.driver.adopt([stage.trace(launch, identity)])
        gone = await stage.told("Gone", "web")
        assert "restarted" in gone.proof
        assert stage.driver.scanner.looks == 0

    act(scene)


@pytest.mark.accepts("P2", "P9")
def test_a_lost_journal_loses_no_process(act):
    async def scene(stage):
        kept = stage.launch("kept", "sleep", "1000")
        lost = stage.launch("lost", "sleep", "1000")
        ended = stage.launch("ended", "true")
        damaged = stage.launch("damaged", "sleep", "1000")
        identities = {each.slot: left_behind(stage, each) for each in (kept, lost, ended, damaged)}
        await eventually(lambda: not alive(identities["ended"].pid))
        Path(stage.home.slot_lock("damaged")).write_bytes(b"\0" * 256)
        await eventually(
            lambda: all(variables(identities[name].pid) for name in ("kept", "lost", "damaged"))
        )
        strays = await stage.driver.find_strays({"kept"})
        assert {stray.slot: stray.nonce for stray in strays} == {
            "lost": lost.nonce,
            "damaged": damaged.nonce,
        }
        await stage.driver.adopt(strays)
        for slot in ("lost", "damaged"):
            assert stage.seen("Adopted", slot).identity == identities[slot]

    act(scene)


def test_one_that_rewrote_its_environment_is_still_itself(act):
    """Programs that show a title write over the memory /proc/PID/environ shows."""

    async def scene(stage):
        program = (
            "import ctypes\n"
            "fields = open('/proc/self/stat').read().rpartition(')')[2].split()\n"
            "start, end = int(fields[47]), int(fields[48])\n"
            "signal.signal(signal.SIGUSR1, lambda *_: ctypes.memset(start, 0, end - start))"
        )
        pid = await stage.start_python("web", program)
        os.kill(pid, signal.SIGUSR1)
        await eventually(lambda: not variables(pid))
        launch = stage.launch("web", "sleep", "1000")
        identity = stage.seen("Started", "web").identity
        await stage.next_supervisor()
        await stage.driver.adopt([stage.trace(launch, identity)])
        assert stage.seen("Adopted", "web").identity == identity
        await stage.driver.stop("web", StopRule())
        await stage.told("Gone", "web")
        assert not alive(pid)

    act(scene)
