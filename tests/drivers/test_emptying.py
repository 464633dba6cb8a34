from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import signal
import subprocess
import sys

import pytest

from drivers.conftest import alive, variables
from uphold.core.specs import StopRule
from uphold.drivers.emptying import PROOF, PROOF_BY_DESCENT
from uphold.host.processes.reaping import has_orphans
from uphold.testing.waiting import eventually

ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody").pw_uid

IGNORE_TERM = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
DAEMONISE = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {then}
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open({mark!r}, 'w').write(str(os.getpid()))
        signal.pause()
    os._exit(0)
os.wait()
while not os.path.exists({mark!r}) or not os.path.getsize({mark!r}): time.sleep(0.005)
"""
NEW_ENVIRONMENT = "os.execve(sys.executable, [sys.executable, '-ISc', {source!r}], {{}})"


@pytest.fixture(autouse=True, params=[False, True], ids=["orphans leave", "orphans come"])
def reaping(request):
    """With and without orphans coming to us: what is proved is the same, by other means."""
    let_orphans_come(request.param)
    yield request.param
    let_orphans_come(False)


def let_orphans_come(come):
    assert ctypes.CDLL(None).prctl(36, int(come), 0, 0, 0) == 0


def daemon(stage, then="pass"):
    """Give a program that leaves a process behind in a session of its own, and where to find it."""
    mark = stage.folder / "left-over"
    return DAEMONISE.format(mark=str(mark), then=then), lambda: int(mark.read_text())


async def stop(stage, slot="web"):
    await stage.driver.stop(slot, StopRule())
    await stage.told("Gone", slot)
    assert stage.kinds(slot)[-2:] == ["Exited", "Gone"]
    assert stage.marked() == []


@pytest.mark.accepts("P3", "P4", "S24")
def test_one_that_ignores_the_stop_signal_is_gone_after_a_kill(act):
    async def scene(stage):
        pid = await stage.start_python("web", IGNORE_TERM)
        await stage.driver.stop("web", StopRule())
        await stage.driver.start(stage.launch("other", "true"))
        await stage.told("Exited", "other")
        assert alive(pid)
        await stage.driver.kill("web")
        await stage.told("Gone", "web")
        assert stage.kinds("web") == ["Started", "Exited", "Gone"]
        assert stage.marked() == []

    act(scene)


@pytest.mark.accepts("P3", "S24")
@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_double_forked_processes_in_new_sessions_are_ended_too(act, verb):
    async def scene(stage):
        program, left_over = daemon(stage)
        pid = await stage.start_python("web", program)
        assert os.getsid(left_over()) != os.getsid(pid)
        if verb == "stop":
            await stage.driver.stop("web", StopRule())
        else:
            await stage.driver.kill("web")
        await stage.told("Gone", "web")
        assert stage.kinds("web") == ["Started", "Exited", "Gone"]
        assert stage.marked() == []

    act(scene)


@pytest.mark.accepts("P3")
def test_what_a_worker_leaves_behind_is_ended_before_it_can_start_again(act):
    async def scene(stage):
        program, left_over = daemon(stage)
        pid = await stage.start_python("web", program)
        os.kill(pid, signal.SIGKILL)
        exited = await stage.told("Exited", "web")
        assert exited.left_overs
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert stage.kinds("web") == ["Started", "Exited", "Gone", "Started"]
        assert not alive(left_over())

    act(scene)


@pytest.mark.accepts("P4")
def test_a_stopped_process_is_woken_to_be_ended(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        os.kill(pid, signal.SIGSTOP)
        await stop(stage)
        assert stage.seen("Exited", "web").exit.signal == signal.SIGTERM

    act(scene)


@pytest.mark.accepts("P3")
def test_one_that_closes_all_its_descriptors_is_still_ended(act):
    async def scene(stage):
        program, left_over = daemon(stage, then="os.closerange(0, 256)")
        await stage.start_python("web", f"{program}\nos.closerange(0, 256)")
        await stop(stage)
        assert not alive(left_over())

    act(scene)


@pytest.mark.accepts("P3")
def test_a_left_over_that_gave_the_lock_away_is_found_by_a_later_stop(act):
    """The free lock let the slot start again; only a full look may call it stopped."""

    async def scene(stage):
        program, left_over = daemon(stage, then="os.closerange(0, 256)")
        pid = await stage.start_python("web", program)
        os.kill(pid, signal.SIGKILL)
        assert not (await stage.told("Exited", "web")).left_overs
        await stage.driver.start(stage.launch("web", "sleep", "1000", generation=2))
        assert alive(left_over())
        await stop(stage)
        assert not alive(left_over())

    act(scene)


@pytest.mark.accepts("S27", "P3")
def test_one_that_hides_its_environment_is_found_by_its_session(act):
    async def scene(stage):
        source = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
        hidden = NEW_ENVIRONMENT.format(source=source)
        program = f"child = os.fork()\nif child == 0: os.closerange(3, 9); {hidden}\n"
        program += f"open({str(stage.folder / 'child')!r}, 'w').write(str(child))"
        await stage.start_python("web", program)
        child = int((stage.folder / "child").read_text())
        await eventually(lambda: variables(child) == [])
        await stop(stage)
        assert not alive(child)

    act(scene)


@pytest.mark.accepts("S27")
def test_one_that_keeps_nothing_but_the_lock_is_found_by_that(act):
    async def scene(stage):
        mark = stage.folder / "hidden"
        source = f"import os, signal; signal.signal(15, signal.SIG_IGN); open({str(mark)!r}, 'w').write(str(os.getpid())); signal.pause()"
        hidden = NEW_ENVIRONMENT.format(source=source)
        program = f"if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: os.set_inheritable(3, True); {hidden}\n  os._exit(0)\nos.wait()"
        pid = await stage.start_python("web", program)
        await eventually(lambda: mark.exists() and mark.read_text())
        child = int(mark.read_text())
        os.kill(pid, signal.SIGKILL)
        assert (await stage.told("Exited", "web")).left_overs
        await stage.told("Gone", "web")
        assert not alive(child)

    act(scene)


@pytest.mark.accepts("S27", "P3", "B-13")
def test_a_foreign_holder_of_the_lock_is_named_and_never_killed(act):
    """A worker may hand its lock to anybody; that must not make us end a stranger."""
    who = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if ROOT else []
    source = "import os, signal, sys\nif os.fork(): sys.exit()\nos.setsid()\nprint(os.getpid(), flush=True)\nsignal.pause()"

    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        pidfd = os.pidfd_open(pid)
        handed = steal(pidfd, 3)
        os.close(pidfd)
        let_orphans_come(False)  # what descends from us would be ours, and no stranger
        holder = subprocess.Popen(
            [*who, sys.executable, "-ISc", source], pass_fds=[handed], stdout=subprocess.PIPE
        )
        os.close(handed)
        stranger = int(holder.stdout.readline())
        holder.wait()
        holder.stdout.close()
        await stage.driver.stop("web", StopRule())
        if not ROOT:
            await stage.told("Gone", "web")  # same user: the worker could have ended it itself
            return
        failed = await stage.told("StopFailed", "web")
        assert failed.fault.code == "UPH_STOP_UNKILLABLE"
        assert f"pid {stranger} (python" in failed.fault.message
        assert alive(stranger)
        assert stage.seen("Gone", "web") is None
        os.kill(stranger, signal.SIGKILL)
        await stage.told("Gone", "web")
        assert stage.kinds("web") == ["Started", "Exited", "StopFailed", "Gone"]

    act(scene)


def steal(pidfd, number):
    """Take a copy of somebody's descriptor, as `pidfd_getfd` allows to root and debuggers."""
    import ctypes

    taken = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, number, 0)
    assert taken >= 0, os.strerror(ctypes.get_errno())
    return taken


def test_many_stops_share_few_looks_at_the_process_table(act):
    async def scene(stage):
        slots = [f"web.{number}" for number in range(2, 42)]
        await stage.driver.start_all([stage.launch(slot, "sleep", "1000") for slot in slots])
        for slot in slots:
            await stage.driver.stop(slot, StopRule())
        for slot in slots:
            await stage.told("Gone", slot)
        assert stage.marked() == []
        assert stage.driver.scanner.looks < len(slots) / 2

    act(scene)


@pytest.mark.accepts("P3")
def test_a_tree_that_must_have_come_to_us_is_proved_empty_without_a_scan(act, reaping):
    async def scene(stage):
        await stage.start("web", "sleep", "1000")
        # A server that another test of this process keeps running may be an orphan of its own.
        alone = not has_orphans(stage.driver.children.__contains__)
        await stop(stage)
        proof = stage.seen("Gone", "web").proof
        assert proof == (PROOF_BY_DESCENT if reaping and alone else PROOF)

    act(scene)


@pytest.mark.accepts("P3")
def test_one_that_was_adopted_is_looked_for_among_all_processes(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000")
        await stage.driver.start(launch)
        identity = (await stage.told("Started", "web")).identity
        await stage.next_supervisor()
        await stage.driver.adopt([stage.trace(launch, identity)])
        await stage.told("Adopted", "web")
        await stop(stage)
        assert stage.seen("Gone", "web").proof == PROOF

    act(scene)


@pytest.mark.accepts("P3")
def test_an_orphan_among_our_children_makes_the_proof_look_at_all_processes(act, reaping):
    async def scene(stage):
        left = await asyncio.create_subprocess_exec("sleep", "1000")  # nobody's main process
        await stage.start("web", "sleep", "1000")
        await stop(stage)
        assert stage.seen("Gone", "web").proof == PROOF
        left.kill()
        await left.wait()

    act(scene)
