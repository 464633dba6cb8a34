from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from drivers.conftest import alive
from uphold.core.specs import StopRule
from uphold.drivers import crews
from uphold.drivers.starting import SLICE, Slice
from uphold.host.clock import MachineClock
from uphold.host.processes.slotlocks import SlotLock, SlotRecord, is_held
from uphold.host.proctable import boot_id
from uphold.testing.clocks import FakeClock
from uphold.testing.waiting import eventually


@pytest.mark.accepts("P5")
def test_a_driver_without_memory_takes_in_what_runs_and_starts_nothing_beside_it(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        await stage.next_supervisor()
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        adopted = await stage.told("Adopted", "web")
        assert (adopted.generation, adopted.identity.pid) == (2, pid)
        assert stage.marked() == [pid]

    act(scene)


@pytest.mark.accepts("P5")
def test_a_free_lock_proves_nothing_while_the_recorded_process_lives(act):
    async def scene(stage):
        pid = await stage.start_python("web", "os.closerange(0, 256)")
        await stage.next_supervisor()
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert (await stage.told("Adopted", "web")).identity.pid == pid
        assert stage.marked() == [pid]

    act(scene)


@pytest.mark.accepts("P5")
def test_an_intent_without_a_fact_is_looked_into_before_a_start(act):
    async def scene(stage):
        pid = await stage.start_python("web", "os.closerange(0, 256)")
        launch = stage.launch("web", "sleep", "1000")
        SlotLock(stage.home.slot_lock("web"), -1).write(SlotRecord(1, launch.nonce, boot_id()))
        await stage.next_supervisor()
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert (await stage.told("Adopted", "web")).identity.pid == pid
        assert stage.driver.scanner.looks == 1
        assert stage.marked() == [pid]

    act(scene)


@pytest.mark.accepts("P5", "S27")
def test_a_slot_held_by_a_stranger_is_never_started_and_the_stranger_is_named(act):
    async def scene(stage):
        lock = SlotLock.take(stage.home.slot_lock("web"))
        holder = subprocess.Popen(["sleep", "1000"], pass_fds=[lock.descriptor])
        lock.close()
        deadline = MachineClock().now().mono + 0.3
        await stage.driver.start_all(
            [stage.launch("web", "sleep", "1000"), stage.launch("free", "sleep", "1000")], deadline
        )
        assert [type(fact).__name__ for fact in stage.facts] == ["Started", "StartFailed"]
        failed = stage.seen("StartFailed", "web")
        assert (failed.fault.code, failed.hopeless) == ("UPH_SLOT_HELD", False)
        assert f"pid {holder.pid} (sleep)" in failed.fault.message
        assert holder.poll() is None
        holder.kill()
        holder.wait()
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert stage.kinds("web") == ["StartFailed", "Started"]

    act(scene)


@pytest.mark.accepts("S27", "P5")
def test_a_lock_that_is_let_go_in_time_lets_the_slot_start(act):
    async def scene(stage):
        lock = SlotLock.take(stage.home.slot_lock("web"))
        holder = subprocess.Popen(["sleep", "0.2"], pass_fds=[lock.descriptor])
        lock.close()
        await stage.driver.start(stage.launch("web", "sleep", "1000"))
        holder.wait()
        assert stage.kinds("web") == ["Started"]

    act(scene)


def test_ordinary_restarts_take_no_look_at_all_processes(act):
    async def scene(stage):
        for generation in range(1, 6):
            await stage.driver.start(stage.launch("web", "true", generation=generation))
            await eventually(lambda n=generation: stage.kinds("web").count("Exited") == n)
        assert stage.kinds("web") == ["Started", "Exited"] * 5
        assert stage.driver.scanner.looks == 0

    act(scene)


@pytest.mark.accepts("S03", "S04")
def test_a_link_planted_as_a_lock_is_not_followed(act):
    async def scene(stage):
        target = stage.folder / "precious"
        target.write_text("precious")
        Path(stage.home.slot_lock("web")).symlink_to(target)
        await stage.driver.start(stage.launch("web", "sleep", "1000"))
        assert stage.kinds("web") == ["StartFailed"]
        assert target.read_text() == "precious"

    act(scene)


@pytest.mark.accepts("S03")
@pytest.mark.parametrize("planted", ["link", "file"])
def test_what_is_planted_as_output_is_not_written_to(act, planted):
    async def scene(stage):
        target = stage.folder / "precious"
        target.write_text("precious")
        fifo = Path(stage.home.fifo("web"))
        if planted == "link":
            fifo.symlink_to(target)
        else:
            fifo.write_text("precious")
        await stage.driver.start(stage.launch("web", "echo", "spoiled"))
        failed = stage.seen("StartFailed", "web")
        assert failed.fault.code == "UPH_START_NO_OUTPUT"
        assert target.read_text() == "precious"

    act(scene)


@pytest.mark.accepts("S04", "P5")
def test_a_removed_lock_file_does_not_let_a_second_run_in(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        os.unlink(stage.home.slot_lock("web"))
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert (await stage.told("Adopted", "web")).identity.pid == pid
        assert stage.marked() == [pid]
        assert alive(pid)

    act(scene)


@pytest.mark.accepts("P3", "P5")
@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_slots_that_are_ended_while_they_start_are_all_gone(act, ending):
    """Most launches are accepted but not begun when their end is asked for."""

    async def scene(stage):
        slots = [f"w{number}" for number in range(200)]
        starting = asyncio.create_task(
            stage.driver.start_all([stage.launch(each, "sleep", "1000") for each in slots])
        )
        await eventually(lambda: stage.facts)
        assert not starting.done()
        if ending == "stop":
            ends = [stage.driver.stop(each, StopRule(), generation=1) for each in slots]
        else:
            ends = [stage.driver.kill(each, generation=1) for each in slots]
        await asyncio.gather(starting, *ends)
        for slot in slots:
            assert (await stage.told("Gone", slot)).generation == 1
            assert stage.kinds(slot) in (["Gone"], ["Started", "Exited", "Gone"])
        assert stage.kinds(slots[-1]) == ["Gone"]
        await eventually(lambda: stage.marked() == [])
        assert not any(is_held(stage.home.slot_lock(slot)) for slot in slots)

    act(scene)


@pytest.mark.accepts("P3", "P5")
def test_a_start_that_waits_for_its_slot_is_withdrawn_by_a_stop(act):
    async def scene(stage):
        lock = SlotLock.take(stage.home.slot_lock("web"))
        starting = asyncio.create_task(stage.driver.start(stage.launch("web", "sleep", "1000")))
        await eventually(lambda: stage.driver.scanner.looks)
        lock.close()
        await stage.driver.stop("web", StopRule())
        await starting
        assert (await stage.told("Gone", "web")).generation == 1
        assert stage.kinds("web") == ["Gone"]
        assert stage.marked() == []
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert stage.kinds("web") == ["Gone", "Started"]

    act(scene)


@pytest.mark.accepts("P5")
def test_a_run_that_begins_while_its_slot_is_looked_into_stays_in_sight(act):
    async def scene(stage):
        before = stage.launch("web", "sleep", "1000")
        looking = asyncio.create_task(stage.driver.adopt([stage.trace(before)]))
        await asyncio.sleep(0)
        assert stage.facts == []
        pid = await stage.start("web", "sleep", "1000", generation=2)
        await looking
        assert stage.driver.state("web").info["pid"] == pid
        assert "Gone" not in stage.kinds("web")
        await stage.driver.stop("web", StopRule(), generation=2)
        await stage.told("Gone", "web")
        assert stage.marked() == []

    act(scene)


def test_refused_starts_keep_no_descriptor(act):
    """A recorded process that has ended, but is not yet let go, is held for a moment in each try."""

    async def scene(stage):
        await leave_a_zombie(stage)
        lock = SlotLock.take(stage.home.slot_lock("web"))
        base = held_processes()
        deadline = MachineClock().now().mono + 0.3
        launch = stage.launch("web", "sleep", "1000", generation=2)
        await stage.driver.start(launch, deadline)
        assert stage.kinds("web") == ["StartFailed"]
        assert held_processes() == base
        lock.close()

    act(scene)


def test_an_adoption_that_finds_another_process_keeps_only_that_one(act):
    async def scene(stage):
        ended = await leave_a_zombie(stage)
        pid = await stage.start("web", "sleep", "1000", generation=2)
        nonce = stage.seen("Started", "web").identity.nonce
        await stage.next_supervisor()
        SlotLock(stage.home.slot_lock("web"), -1).write(SlotRecord(2, nonce, boot_id()))
        base = held_processes()
        launch = stage.launch("web", "sleep", "1000", generation=1)
        await stage.driver.adopt([stage.trace(launch, ended)])
        assert (await stage.told("Adopted", "web")).identity.pid == pid
        assert held_processes() == base + 1

    act(scene)


async def leave_a_zombie(stage):
    """Let a recorded run end while no driver waits for it."""
    pid = await stage.start("web", "sleep", "1000")
    identity = stage.seen("Started", "web").identity
    await stage.next_supervisor()
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return identity


def held_processes():
    """Count our descriptors of processes."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum("pidfd" in link for link in links)


@pytest.mark.accepts("P16")
def test_in_a_rush_nobody_who_ends_at_once_is_taken_for_an_orphan(act, monkeypatch):
    """A busy loop hears of a start late, and the reaper must not be quicker."""
    monkeypatch.setattr(crews, "_AT_ONCE", 1)

    async def at_once(_slice):
        """All are handed to the crew in one turn."""

    monkeypatch.setattr(Slice, "share", at_once)

    async def scene(stage):
        slots = [f"w{number}" for number in range(30)]
        starting = asyncio.create_task(
            stage.driver.start_all([stage.launch(slot, "false") for slot in slots])
        )
        while not starting.done():
            time.sleep(0.1)  # the loop is held up, so that the last are told of after 3 s
            await asyncio.sleep(0)
        for slot in slots:
            assert (await stage.told("Exited", slot)).exit.code == 1
        assert not [fact for fact in stage.facts if type(fact).__name__ == "StartFailed"]

    act(scene)


def test_all_who_start_something_share_one_slice_of_each_turn():
    clock = FakeClock()

    async def scene():
        shared, turn, worked = Slice(clock), 0, []

        async def start(name, many):
            for _ in range(many):
                await shared.share()
                worked.append((turn, name))
                clock._mono += SLICE * 0.6

        tasks = [asyncio.create_task(start(name, 4)) for name in "abc"]
        while not all(task.done() for task in tasks):
            turn += 1
            await asyncio.sleep(0)
        per_turn = Counter(number for number, _ in worked)
        assert max(per_turn.values()) == 2
        assert [name for _, name in worked] == sorted(name for _, name in worked)

    asyncio.run(scene())
