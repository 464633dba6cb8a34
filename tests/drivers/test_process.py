from __future__ import annotations

import asyncio
import os
import signal

import pytest

from drivers.conftest import alive, variables
from uphold.core.specs import StopRule
from uphold.drivers.process import signal_number
from uphold.errors import HostFailure
from uphold.testing.waiting import eventually


@pytest.mark.parametrize("name", ["TERM", "SIGTERM", "15"])
def test_a_signal_has_a_name_or_a_number(name):
    assert signal_number(name) == signal.SIGTERM


@pytest.mark.parametrize("name", ["", "NONE", "term ", "0", "99", "-9"])
def test_an_unknown_signal_is_refused_with_a_sentence(name):
    with pytest.raises(HostFailure, match="there is no signal") as caught:
        signal_number(name)
    assert caught.value.code == "UPH_SIGNAL_UNKNOWN"


@pytest.mark.accepts("P4")
def test_the_stop_signal_reaches_the_whole_group_once(act):
    """Shells forward nothing; and a second signal would make some programs quit in haste."""

    async def scene(stage):
        count, born = stage.folder / "count", stage.folder / "born"
        program = (
            f"signal.signal(signal.SIGUSR1, lambda *_: open({str(count)!r}, 'a').write('x'))\n"
            f"if os.fork() == 0:\n    open({str(born)!r}, 'w').close()"
        )
        await stage.start_python("web", program)
        # A fork throws away signals that arrive before it is complete: wait for the child itself.
        await eventually(born.exists)
        await eventually(lambda: len(stage.marked()) == 2)
        await stage.driver.stop("web", StopRule(signal="USR1"))
        await eventually(lambda: count.exists() and count.read_text() == "xx")
        assert stage.kinds("web") == ["Started"]

    act(scene)


def test_the_stop_command_comes_first_and_runs_as_the_worker(act):
    async def scene(stage):
        said = stage.folder / "said"
        command = ("sh", "-c", f"pwd > {said}; env >> {said}; kill -USR1 $UPHOLD_MAIN_PID")
        program = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.signal(signal.SIGUSR1, lambda *_: sys.exit(4))"
        pid = await stage.start_python("web", program, working_dir=str(stage.folder))
        environment = variables(pid)
        await stage.driver.stop("web", StopRule(command=command, grace=10.0))
        await stage.told("Gone", "web")
        assert stage.seen("Exited", "web").exit.code == 4
        lines = said.read_bytes().splitlines()
        assert lines[0] == os.fsencode(stage.folder)
        assert set(environment) <= set(lines)

    act(scene)


def test_a_stop_command_that_does_not_help_is_followed_by_the_signal(act):
    async def scene(stage):
        for generation, command in enumerate([("true",), ("no-such-command",), ("sleep", "999")]):
            complaints = []
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context, heard=complaints: heard.append(context["message"])
            )
            await stage.start("web", "sleep", "1000", generation=generation)
            await stage.driver.stop("web", StopRule(command=command, grace=0.2))
            await eventually(lambda n=generation: stage.kinds("web").count("Gone") == n + 1)
            assert stage.seen("Exited", "web").exit.signal == signal.SIGTERM
            assert stage.marked() == []
            assert bool(complaints) == (command == ("no-such-command",))

    act(scene)


@pytest.mark.accepts("P3")
def test_nothing_is_stopped_while_its_stop_command_tidies_up(act):
    async def scene(stage):
        go, tidied = stage.folder / "go", stage.folder / "tidied"
        tidy = f"until [ -e {go} ]; do sleep 0.02; done; touch {tidied}"
        command = ("sh", "-c", f"kill $UPHOLD_MAIN_PID; {tidy}")
        await stage.start("web", "sleep", "1000")
        await stage.driver.stop("web", StopRule(command=command, grace=60.0))
        await stage.told("Exited", "web")
        await stage.driver.start(stage.launch("other", "sleep", "1000"))
        assert stage.kinds("web") == ["Started", "Exited"], "the command is a process of the slot"
        assert not tidied.exists()
        go.touch()
        await stage.told("Gone", "web")
        assert tidied.exists(), "it had its time"

    act(scene)


@pytest.mark.accepts("P3", "P4")
def test_a_stop_command_that_goes_on_is_ended_with_everything_else(act):
    async def scene(stage):
        command = ("sh", "-c", "kill $UPHOLD_MAIN_PID; sleep 1000; true")
        pid = await stage.start("web", "sleep", "1000")
        await stage.driver.stop("web", StopRule(command=command, grace=600.0))
        await eventually(lambda: not alive(pid))
        await stage.driver.kill("web")
        await stage.told("Gone", "web")
        assert stage.marked() == []

    act(scene)


def test_no_stop_command_begins_for_one_that_has_ended_by_itself(act):
    async def scene(stage):
        said = stage.folder / "said"
        pid = await stage.start("web", "sleep", "1000")
        await stage.driver.stop("web", StopRule(command=("touch", str(said))))
        os.kill(pid, signal.SIGKILL)  # before the command's turn comes
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        await stage.told("Gone", "web")
        assert not said.exists()

    act(scene)


def test_looking_tells_the_truth_before_any_fact_does(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        assert stage.driver.states()["web"].info["pid"] == pid
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert stage.kinds("web") == ["Started"]
        assert not stage.driver.states()["web"].connected
        await stage.told("Exited", "web")

    act(scene)


def test_a_removed_worker_with_a_live_slot_stays_in_sight(act):
    async def scene(stage):
        pid = await stage.start("web", "sleep", "1000")
        stage.driver.remove("web")
        assert stage.driver.state("web").connected
        await stage.driver.stop("web", StopRule())
        await stage.told("Gone", "web")
        assert not alive(pid)

    act(scene)


@pytest.mark.accepts("P5")
def test_duplicated_commands_at_the_same_time_leave_one_run(act):
    async def scene(stage):
        starts = [stage.launch("web", "sleep", "1000", generation=n) for n in range(1, 6)]
        await asyncio.gather(*(stage.driver.start(launch) for launch in starts))
        assert stage.kinds("web") == ["Started"] + ["Adopted"] * 4
        pid = stage.seen("Started", "web").identity.pid
        await eventually(lambda: stage.marked() == [pid])
        await asyncio.gather(*(stage.driver.stop("web", StopRule()) for _ in range(3)))
        await asyncio.gather(*(stage.driver.kill("web") for _ in range(3)))
        await stage.told("Gone", "web")
        assert stage.kinds("web")[-2:] == ["Exited", "Gone"]
        assert stage.marked() == []

    act(scene)


def test_a_run_goes_on_when_its_worker_names_another_main_process(act):
    async def scene(stage):
        child = stage.folder / "child"
        program = (
            f"if pid := os.fork():\n    open({str(child)!r}, 'w').write(f'{{pid}} ')\n"
            "else:\n    time.sleep(600)"
        )
        await stage.start_python("web", program)
        await eventually(lambda: child.exists() and child.read_text().endswith(" "))
        await eventually(lambda: len(stage.marked()) == 2)
        stage.driver.follow_main("web", 1, int(child.read_text()))
        followed = await stage.told("Adopted", "web")
        assert (followed.identity.pid, followed.named) == (int(child.read_text()), True)

    act(scene)
