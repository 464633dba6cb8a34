"""Control groups with real processes, where the machine lets us make some."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from uphold.core.specs import Limits, WorkerSpec
from uphold.errors import HostFailure
from uphold.host.homes import Home
from uphold.host.processes.groups import NO_GROUP, SLOT_HELD, Group, Groups, asks
from uphold.host.processes.hierarchies import Hierarchies, find_hierarchies
from uphold.testing.waiting import until

HERE = find_hierarchies()
GROUPED = WorkerSpec(name="web", containment="group")
CAPPED = WorkerSpec(name="web", limits=Limits(processes=7))
needs_tree = pytest.mark.skipif(HERE.tree is None, reason="no control group can be written here")
needs_cap = pytest.mark.skipif(not HERE.counts, reason="nothing counts processes here")


@pytest.fixture
def groups(tmp_path):
    made = Groups(Home(tmp_path))
    yield made
    until(lambda: (made.close(), not left_behind(made))[1], what="all groups removed")


def left_behind(groups):
    return [base for base in groups._bases().values() if os.path.exists(base)]


def enter(group, *command, **options):
    """Start a program in a group: a shell enters it and becomes the program."""
    doors = [f"{folder}/cgroup.procs" for folder in (group.tree, *group.caps.values()) if folder]
    script = "".join(f"echo 0 > '{door}' && " for door in doors) + 'exec "$@"'
    words = command or ("sleep", "1000")
    return subprocess.Popen(["/bin/sh", "-c", script, "sh", *words], **options)


def test_only_those_who_ask_get_a_group(groups):
    assert not asks(WorkerSpec(name="web"))
    assert groups.begin("web.1", WorkerSpec(name="web")) is None
    assert asks(GROUPED)
    assert asks(CAPPED)


@needs_tree
def test_everything_in_a_group_ends_together_and_the_kernel_says_so(groups):
    group = groups.begin("web.1", GROUPED)
    assert group.is_empty()
    assert group.proves
    main = enter(group, "sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & exec sleep 1000")
    until(lambda: len(group.members()) == 3)
    assert not group.is_empty()
    assert not group.remove()

    async def end():
        waiting = asyncio.create_task(group.emptied(60))
        await asyncio.sleep(0)
        group.kill()
        await waiting

    asyncio.run(end())
    assert group.is_empty()
    assert group.members() == []
    assert main.wait(60) == -signal.SIGKILL
    assert group.remove()
    assert not os.path.exists(group.tree)


@needs_tree
def test_a_group_that_is_gone_is_empty_and_cannot_be_ended_twice(groups):
    group = groups.begin("web.1", GROUPED)
    assert group.remove()
    assert group.remove()
    group.kill()
    assert group.is_empty()
    asyncio.run(group.emptied(60))


@needs_tree
def test_waiting_for_an_end_that_does_not_come_is_over_in_time(groups):
    group = groups.begin("web.1", GROUPED)
    main = enter(group)
    until(lambda: not group.is_empty())
    asyncio.run(group.emptied(0.05))
    assert not group.is_empty()
    group.kill()
    main.wait(60)


@needs_tree
def test_groups_that_a_worker_made_in_its_own_are_ended_and_removed_with_it(groups):
    group = groups.begin("web.1", GROUPED)
    inner = Group(f"{group.tree}/deep", None)
    os.mkdir(inner.tree)
    main = enter(inner)
    until(lambda: group.members() == [main.pid])
    assert not group.is_empty()
    group.kill()
    main.wait(60)
    until(group.is_empty)
    assert group.remove()


@needs_tree
def test_nothing_is_started_beside_what_lives_in_the_group(groups):
    group = groups.begin("web.1", GROUPED)
    main = enter(group)
    until(lambda: not group.is_empty())
    with pytest.raises(HostFailure, match="lived on in its group") as caught:
        groups.begin("web.1", GROUPED)
    assert caught.value.code == SLOT_HELD
    assert main.wait(60) == -signal.SIGKILL
    until(group.is_empty)
    assert groups.begin("web.1", GROUPED) is not None


@needs_tree
def test_the_next_supervisor_finds_the_groups_of_its_home_and_no_others(groups, tmp_path):
    group = groups.begin("web.1", GROUPED)
    groups.begin("idle.1", GROUPED)
    main = enter(group)
    until(lambda: not group.is_empty())
    groups.close()
    later = Groups(Home(tmp_path))
    assert later.inhabited() == ["web.1"]
    assert later.left("web.1").tree == group.tree
    assert later.left("idle.1") is None
    assert later.around("web.1", GROUPED, main.pid).tree == group.tree
    assert later.around("web.1", WorkerSpec(name="web"), main.pid).tree == group.tree
    assert later.around("other.1", GROUPED, main.pid) is None
    assert later.around("web.1", GROUPED, os.getpid()).tree == group.tree
    assert later.around("idle.1", GROUPED, os.getpid()) is None
    (tmp_path / "other").mkdir()
    assert Groups(Home(tmp_path / "other")).around("web.1", GROUPED, main.pid) is None
    later.left("web.1").kill()
    main.wait(60)


@needs_cap
def test_a_cap_holds_whatever_the_worker_forks(groups):
    group = groups.begin("web.1", CAPPED)
    program = (
        "import os, time\nmade = 0\n"
        "try:\n    while os.fork():\n        made += 1\n    time.sleep(1000)\n"
        "except BlockingIOError:\n    print(made, flush=True)\n    time.sleep(1000)\n"
    )
    command = (sys.executable, "-ISc", program)
    main = enter(group, *command, stdout=subprocess.PIPE, text=True)
    assert main.stdout.readline() == "6\n"
    counting = Group(group.caps.get("pids", group.tree))
    for pid in counting.members():
        os.kill(pid, signal.SIGKILL)
    main.wait(60)
    main.stdout.close()
    until(lambda: not counting.members())


@needs_cap
def test_a_cap_is_what_the_last_start_asked_for(groups):
    group = groups.begin("web.1", CAPPED)
    limit = Path(group.caps.get("pids", group.tree)) / "pids.max"
    assert limit.read_text() == "7\n"
    groups.begin("web.1", WorkerSpec(name="web", limits=Limits(processes=9)))
    assert limit.read_text() == "9\n"


@pytest.mark.skipif(HERE.memory is None, reason="no hierarchy of the first version limits memory")
def test_memory_and_processors_are_limited_in_hierarchies_of_the_first_version(groups):
    spec = WorkerSpec(name="web", limits=Limits(memory=20_480_000, cpu=0.5))
    group = groups.begin("web.1", spec)
    assert Path(f"{group.memory}/memory.limit_in_bytes").read_text() == "20480000\n"
    if "cpu" in group.caps:
        assert Path(f"{group.caps['cpu']}/cpu.cfs_quota_us").read_text() == "50000\n"
    again = groups.begin("web.1", WorkerSpec(name="web", limits=Limits(memory=40_960_000)))
    assert Path(f"{again.memory}/memory.limit_in_bytes").read_text() == "40960000\n"
    assert not again.ran_out_of_memory()
    assert group.remove()


def test_what_can_be_done_without_is_no_reason_not_to_start(tmp_path):
    spec = WorkerSpec(name="web", limits=Limits(memory=10**9, cpu=1.0))
    assert asks(spec)
    told = []

    class Log:
        def write(self, *words, worker):
            told.append((worker, words[2]))

    without = Groups(Home(tmp_path), Hierarchies(), Log())
    assert without.begin("web.1", spec) is None
    assert without.begin("web.1", spec) is None
    assert [worker for worker, _ in told] == ["web.1", "web.1"]
    assert "so it is watched" in told[0][1]
    assert "without limits.cpu" in told[1][1]
    own = tmp_path / "own"
    own.mkdir()
    (own / "cgroup.controllers").write_text("memory")
    groups = Groups(Home(tmp_path), Hierarchies(tree=str(own)))
    group = groups._wanted("web.1", spec)
    assert group.limited == ("memory",)
    folder = Path(group.tree)
    folder.mkdir(parents=True)
    (folder / "cgroup.events").write_text("populated 0\n")
    # As where processes of ours live in the group above: the kernel hands no memory down.
    group = groups.begin("web.1", spec)
    assert (group.limited, group.memory, group.tree) == ((), None, str(folder))


@pytest.mark.parametrize(
    ("spec", "nowhere", "word"),
    [
        (
            WorkerSpec(name="web", containment="group", limits=Limits(memory=10**9)),
            Hierarchies(tree="/proc"),
            "limits.memory",
        ),
        (GROUPED, Hierarchies(pids="/proc"), "containment"),
        (CAPPED, Hierarchies(), "limits.processes"),
        (GROUPED, Hierarchies(tree="/proc"), "could be made"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(tmp_path, spec, nowhere, word):
    with pytest.raises(HostFailure, match=word) as caught:
        Groups(Home(tmp_path), nowhere).begin("web.1", spec)
    assert caught.value.code == NO_GROUP
    assert caught.value.remedy


def test_a_group_of_the_second_version_counts_where_the_first_does_not(tmp_path):
    """The controller is asked for from above before anything is below; played with plain files."""
    home = Home(tmp_path / "home")
    home.path.mkdir()
    own = tmp_path / "own"
    own.mkdir()
    (own / "cgroup.controllers").write_text("pids")
    (own / "cgroup.subtree_control").write_text("")
    groups = Groups(home, Hierarchies(tree=str(own)))
    group = groups._wanted("web.1", CAPPED)
    assert group.caps == {}
    folder = Path(group.tree)
    folder.mkdir(parents=True)
    asked = folder.parent / "cgroup.subtree_control"
    asked.write_text("")
    (folder / "cgroup.kill").write_text("")
    (folder / "cgroup.events").write_text("populated 0\n")
    (folder / "pids.max").write_text("")
    assert groups.begin("web.1", CAPPED).tree == group.tree
    assert (own / "cgroup.subtree_control").read_text() == "+pids"
    assert asked.read_text() == "+pids"
    assert (folder / "pids.max").read_text() == "7"


def test_without_any_hierarchy_there_is_nothing_to_find_or_remove(tmp_path):
    groups = Groups(Home(tmp_path), Hierarchies())
    assert groups.left("web.1") is None
    assert groups.inhabited() == []
    groups.close()
    only_capped = Group(None, None)
    assert not only_capped.proves
    assert only_capped.is_empty()
    only_capped.kill()
    assert only_capped.doors() == (None, ())


DELEGATED = """
import json, os, sys
from uphold.core.specs import Limits, WorkerSpec
from uphold.host.homes import Home
from uphold.host.processes.groups import Groups
from uphold.host.processes.spawning import Program, spawn
from uphold.testing.waiting import until
with open(sys.argv[1] + "/cgroup.procs", "w") as door:
    door.write("0")
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
groups = Groups(Home("/tmp"))
group = groups.begin("web.1", WorkerSpec(name="web", containment="group"))
tree, _ = group.doors()
nothing = os.open("/dev/null", os.O_WRONLY)
program = Program("/bin/sleep", ("sleep", "1000"), {}, "/", nothing, nothing, None, None, None, Limits(), tree)
pid = spawn(program)
members = group.members()
group.kill()
os.waitpid(pid, 0)
until(group.is_empty)
removed = group.remove()
groups.close()
print(json.dumps({"inside": group.tree.startswith(sys.argv[1]), "members": members == [pid], "removed": removed}))
"""


@needs_tree
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can delegate a group")
def test_a_delegated_group_is_enough_without_root():
    own = Path(f"{HERE.tree}/uphold-delegated-{os.getpid()}")
    own.mkdir()
    try:
        for path in (own, own / "cgroup.procs", own / "cgroup.subtree_control"):
            os.chown(path, 65534, 65534)
        command = [sys.executable, "-c", DELEGATED, str(own)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == ""
        assert json.loads(done.stdout) == {"inside": True, "members": True, "removed": True}
    finally:
        until(lambda: Group(str(own), None).remove())
