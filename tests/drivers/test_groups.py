"""Slots that asked for a control group of their own, with real processes in it."""

from __future__ import annotations

import os

import pytest

from drivers.conftest import alive
from uphold.core.specs import Limits, StopRule
from uphold.drivers.emptying import PROOF_BY_GROUP
from uphold.host.processes import quick_spawning
from uphold.host.processes.groups import NO_GROUP, Groups
from uphold.host.processes.hierarchies import Hierarchies, find_hierarchies
from uphold.testing.waiting import eventually

HERE = find_hierarchies()
OTHER_USER = {"user": "65534"}
ESCAPED = "import os\nif os.fork() == 0:\n    os.setsid()\n    os.closerange(3, 100)\n    os.execve('/bin/sleep', ['sleep', '1000'], {})\nos.close(3)"
"""A child that keeps no mark of its slot: no session, no lock, no environment."""
needs_tree = pytest.mark.skipif(HERE.tree is None, reason="no control group can be written here")
needs_cap = pytest.mark.skipif(not HERE.counts, reason="nothing counts processes here")


def group_of(stage, slot):
    return Groups(stage.home)._paths(slot)[0]


def members(stage, slot):
    try:
        with open(f"{group_of(stage, slot)}/cgroup.procs") as file:
            return [int(line) for line in file]
    except OSError:
        return []


@needs_tree
@pytest.mark.parametrize("slow", [{}, {"limits": Limits(nofile=64)}, OTHER_USER, {"umask": 0o27}])
def test_a_worker_that_asks_is_born_in_its_group_and_gone_with_it(act, slow):
    if "user" in slow and os.geteuid():
        pytest.skip("only root can start a program as another user")

    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000", containment="group", **slow)
        assert members(stage, "web") == [pid]
        await stage.driver.kill("web")
        gone = await stage.told("Gone", "web")
        assert gone.proof == PROOF_BY_GROUP
        assert not os.path.exists(group_of(stage, "web"))

    act(scene)


@needs_tree
@pytest.mark.accepts("S24", "P3")
def test_a_child_without_any_mark_ends_with_the_worker_that_left_it(act):
    async def scene(stage):
        main = await stage.start_python("web", ESCAPED, containment="group")
        (child,) = set(members(stage, "web")) - {main}
        await stage.driver.stop("web", StopRule())
        await stage.told("Gone", "web")
        assert not alive(child)

    act(scene)


@needs_tree
def test_left_overs_without_any_mark_are_ended_before_the_next_start(act):
    async def scene(stage):
        main = await stage.start_python("web", ESCAPED, containment="group")
        (child,) = set(members(stage, "web")) - {main}
        stage.driver.signal("web", "KILL")
        exited = await stage.told("Exited", "web")
        assert exited.left_overs
        await stage.told("Gone", "web")
        assert not alive(child)
        again = await stage.start("web", "sleep", "1000", generation=2, containment="group")
        assert members(stage, "web") == [again]

    act(scene)


@needs_tree
@pytest.mark.accepts("P2")
def test_the_next_supervisor_keeps_the_group_of_what_it_adopts(act):
    async def scene(stage):
        main = await stage.start_python("web", ESCAPED, containment="group")
        (child,) = set(members(stage, "web")) - {main}
        launch = stage.launch("web", "sleep", containment="group")
        identity = stage.seen("Started", "web").identity
        await stage.next_supervisor()
        await stage.driver.adopt([stage.trace(launch, identity)])
        await stage.told("Adopted", "web")
        await stage.driver.kill("web")
        assert (await stage.told("Gone", "web")).proof == PROOF_BY_GROUP
        assert not alive(main)
        assert not alive(child)

    act(scene)


@needs_tree
@pytest.mark.parametrize("remembered", [True, False])
def test_what_only_its_group_tells_of_is_found_by_the_next_supervisor(act, remembered):
    async def scene(stage):
        main = await stage.start_python("web", ESCAPED, containment="group")
        (child,) = set(members(stage, "web")) - {main}
        launch = stage.launch("web", "sleep", containment="group")
        identity = stage.seen("Started", "web").identity
        await stage.driver.close()
        os.kill(main, 9)
        os.waitpid(main, 0)
        stage.open()
        traces = [stage.trace(launch, identity)]
        if not remembered:
            os.unlink(stage.home.slot_lock("web"))
            traces = await stage.driver.find_strays(())
        assert [trace.slot for trace in traces] == ["web"]
        await stage.driver.adopt(traces)
        assert (await stage.told("Gone", "web")).proof == PROOF_BY_GROUP
        assert not alive(child)

    act(scene)


@needs_cap
@pytest.mark.accepts("P16", "S23")
def test_a_worker_never_becomes_more_processes_than_it_may(act):
    bomb = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "try:\n    while True:\n        os.fork()\n"
        "except BlockingIOError:\n    pass"
    )

    async def scene(stage):
        await stage.start_python("web", bomb, limits=Limits(processes=20))
        await eventually(lambda: len(stage.marked()) == 20)
        await stage.driver.kill("web")
        await stage.told("Gone", "web", within=60)
        assert stage.marked() == []

    act(scene)


def test_a_worker_whose_group_cannot_be_made_is_not_started(act, monkeypatch):
    monkeypatch.setattr("uphold.host.processes.groups.find_hierarchies", Hierarchies)

    async def scene(stage):
        await stage.driver.start(stage.launch("web", "sleep", "1000", containment="group"))
        failed = await stage.told("StartFailed", "web")
        assert failed.fault.code == NO_GROUP
        assert failed.hopeless
        await stage.start("plain", "sleep", "1000")

    act(scene)


@needs_tree
def test_entering_a_group_needs_no_fork_where_the_c_library_knows_groups(act, monkeypatch):
    if not quick_spawning.can_enter_groups():
        pytest.skip("this C library cannot start a program in a group")
    monkeypatch.setattr("uphold.host.processes.spawning._spawn_forked", None)

    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000", containment="group")
        assert members(stage, "web") == [pid]

    act(scene)
