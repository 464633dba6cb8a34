"""Workers that use more memory than they may, with real processes."""

from __future__ import annotations

import pytest

from uphold.core.specs import Limits, StopRule
from uphold.drivers import weighing
from uphold.drivers.weighing import TOO_MUCH_MEMORY
from uphold.host.processes.hierarchies import Hierarchies, find_hierarchies

NOBODY = find_hierarchies().memory is None
GREEDY = "hoard = bytearray(b'x') * {}"
CHILD = "if os.fork() == 0:\n    hoard = bytearray(b'x') * {}\n    time.sleep(1000)"
MEGABYTE = 1_000_000


@pytest.fixture
def watched(monkeypatch):
    """No control group can be written; looks come often."""
    monkeypatch.setattr("uphold.host.processes.groups.find_hierarchies", Hierarchies)
    monkeypatch.setattr(weighing, "EVERY", 0.05)


def greedy(megabytes, program=GREEDY):
    return program.format(megabytes * MEGABYTE)


@pytest.mark.usefixtures("watched")
@pytest.mark.accepts("E-42")
@pytest.mark.parametrize("program", [GREEDY, CHILD])
def test_who_uses_too_much_is_condemned_with_used_and_allowed(act, program):
    async def scene(stage):
        limits = Limits(memory=40 * MEGABYTE)
        await stage.start_python("web", greedy(60, program), limits=limits)
        told = await stage.told("Condemned", "web", within=60)
        assert told.code == TOO_MUCH_MEMORY
        assert "limits.memory allows 40 MB" in told.why
        await stage.driver.stop("web", StopRule(signal="ABRT"))
        await stage.told("Gone", "web", within=60)
        assert stage.kinds("web").count("Condemned") == 1

    act(scene)


@pytest.mark.usefixtures("watched")
def test_who_keeps_to_its_limit_and_who_has_none_are_left_alone(act):
    async def scene(stage):
        await stage.start_python("free", greedy(60))
        limits = Limits(memory=40 * MEGABYTE)
        await stage.start_python("heavy", greedy(60), limits=limits)
        await stage.start_python("light", "", limits=limits)
        await stage.told("Condemned", "heavy", within=60)
        looks = stage.driver.scanner.looks
        await stage.start_python("later", greedy(60), limits=limits)
        await stage.told("Condemned", "later", within=60)
        assert stage.driver.scanner.looks > looks
        assert "Condemned" not in stage.kinds("light")
        assert "Condemned" not in stage.kinds("free")

    act(scene)


@pytest.mark.usefixtures("watched")
def test_nobody_looks_where_no_limit_is_declared(act):
    async def scene(stage):
        await stage.start_python("free", greedy(1))
        assert stage.driver._watch._scale._task is None
        assert stage.driver.scanner.looks == 0

    act(scene)


@pytest.mark.skipif(NOBODY, reason="no control group of the first version limits memory here")
@pytest.mark.accepts("E-42")
def test_the_kernel_ends_who_is_in_a_group_and_that_is_told(act):
    async def scene(stage):
        limits = Limits(memory=30 * MEGABYTE)
        await stage.start("web", "sleep", "1000", limits=limits)
        assert stage.seen("Condemned", "web") is None
        await stage.start_python("hog", greedy(200), limits=limits)
        told = await stage.told("Condemned", "hog", within=60)
        assert told.code == TOO_MUCH_MEMORY
        assert "more than the 30 MB of memory" in told.why
        exited = await stage.told("Exited", "hog", within=60)
        assert exited.exit.signal == 9
        kinds = stage.kinds("hog")
        assert kinds.index("Condemned") < kinds.index("Exited")

    act(scene)


@pytest.mark.skipif(NOBODY, reason="no control group of the first version limits memory here")
def test_a_child_ended_for_want_of_memory_ends_the_worker(act, monkeypatch):
    monkeypatch.setattr(weighing, "EVERY", 0.05)

    async def scene(stage):
        limits = Limits(memory=30 * MEGABYTE)
        await stage.start_python("web", greedy(200, CHILD), limits=limits)
        told = await stage.told("Condemned", "web", within=60)
        assert told.code == TOO_MUCH_MEMORY

    act(scene)


@pytest.mark.skipif(NOBODY, reason="no control group of the first version limits memory here")
def test_a_group_is_known_again_by_the_next_supervisor(act):
    async def scene(stage):
        launch = stage.launch("web", "sleep", "1000", limits=Limits(memory=30 * MEGABYTE, cpu=0.5))
        await stage.driver.start(launch)
        identity = (await stage.told("Started", "web")).identity
        await stage.next_supervisor()
        await stage.driver.adopt([stage.trace(launch, identity)])
        group = stage.driver._watch.runs["web"].group
        assert group.memory is not None
        assert not group.ran_out_of_memory()

    act(scene)
