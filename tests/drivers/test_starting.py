from __future__ import annotations

import os
import subprocess

import pytest

from drivers.conftest import alive
from uphold.host.clock import MachineClock
from uphold.host.processes.slotlocks import SlotLock, SlotRecord
from uphold.host.proctable import boot_id
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
        stage.home.slot_lock("web").symlink_to(target)
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
        fifo = stage.home.fifo("web")
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
