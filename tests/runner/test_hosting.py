"""Workers hosted by the real runner, from birth to end."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import suppress

import pytest

from runner.nurseries import Nursery

JOB = """
import asyncio, time
import uphold

class Job(uphold.Worker):
    done = 0
    async def setup(self): print("set up")
    async def run(self, stopping):
        while not await stopping.wait(0.01):
            self.done += 1
        print("asked to stop")
    def health(self): return uphold.Health.ok(f"did {self.done}", progress=self.done)
    async def teardown(self): print("torn down")
"""


def job(**parts: str) -> str:
    """Write the usual worker with some parts of it replaced."""
    lines = [line for line in JOB.splitlines() if not any(f"def {each}(" in line for each in parts)]
    if "run" in parts:
        lines = [line for line in lines if not line.startswith("        ")]
    return "\n".join([*lines, *(f"    {text}" for text in parts.values())]) + "\n"


@pytest.mark.accepts("D-14", "D-24")
def test_a_worker_is_set_up_runs_is_asked_to_stop_and_torn_down(nursery: Nursery):
    nursery.write(JOB)
    child = nursery.host(UPHOLD_HEALTH_EVERY="0.2")
    nursery.until(lambda: any(beat["progress"] for beat in nursery.beats), "progress")
    code, out, err = nursery.stop(child)
    assert (code, out.splitlines(), err) == (0, ["set up", "asked to stop", "torn down"], "")
    assert nursery.said[0] == "READY=1"
    assert nursery.said.count("READY=1") == nursery.said.count("STOPPING=1") == 1
    assert nursery.errors == []


@pytest.mark.accepts("D-16", "B-78")
def test_health_is_reported_again_and_again_with_rising_numbers(nursery: Nursery):
    nursery.write(JOB)
    nursery.host(UPHOLD_HEALTH_EVERY="0.2")
    nursery.until(lambda: len(nursery.beats) >= 4)
    numbers = [beat["seq"] for beat in nursery.beats]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert nursery.beats[-1]["progress"] >= nursery.beats[0]["progress"]
    assert nursery.beats[-1]["summary"].startswith("did ")
    assert "WATCHDOG=1" in nursery.said


@pytest.mark.accepts("D-24")
def test_a_worker_that_sleeps_for_an_hour_wakes_up_when_asked_to_stop(nursery: Nursery):
    nursery.write(job(run="async def run(self, stopping): print(await stopping.wait(3600))"))
    child = nursery.host()
    nursery.until_said("READY=1")
    code, out, _ = nursery.stop(child)
    assert (code, out.splitlines()[1:]) == (0, ["True", "torn down"])


@pytest.mark.accepts("D-24")
def test_stopping_can_be_awaited_by_many_and_asked(nursery: Nursery):
    run = (
        "async def run(self, stopping):\n"
        "        print(stopping(), stopping.is_set(), await stopping.wait(0))\n"
        "        uphold.beat(status='busy')\n"
        "        async def one(): return await stopping\n"
        "        print(await asyncio.gather(one(), one()), stopping(), uphold.stop_requested())\n"
    )
    nursery.write(job(run=run))
    child = nursery.host()
    nursery.until(lambda: any(beat["status"] == "busy" for beat in nursery.beats))
    _, out, _ = nursery.stop(child)
    assert out.splitlines()[1:3] == ["False False False", "[True, True] True True"]


@pytest.mark.accepts("D-24", "B-78")
def test_a_worker_that_blocks_runs_in_a_thread_its_heart_beats_and_it_wakes_up(nursery: Nursery):
    nursery.write(job(run="def run(self, stopping): print(stopping.wait(3600), stopping())"))
    child = nursery.host(UPHOLD_HEALTH_EVERY="0.2")
    nursery.until(lambda: len(nursery.beats) >= 3)
    code, out, _ = nursery.stop(child)
    assert (code, out.splitlines()[1:]) == (0, ["True True", "torn down"])


def test_a_second_request_to_stop_changes_nothing(nursery: Nursery):
    run = "async def run(self, stopping): await stopping; await asyncio.sleep(0.3); print('tidy')"
    nursery.write(job(run=run))
    child = nursery.host()
    nursery.until_said("READY=1")
    child.send_signal(signal.SIGINT)
    nursery.until_said("STOPPING=1")
    code, out, _ = nursery.stop(child)
    assert (code, "tidy" in out, nursery.said.count("STOPPING=1")) == (0, True, 1)


def test_a_worker_whose_work_is_done_ends_well(nursery: Nursery):
    nursery.write(job(run="async def run(self, stopping): print('done')"))
    code, out, _ = nursery.end(nursery.host())
    assert (code, out.splitlines()) == (0, ["set up", "done", "torn down"])


@pytest.mark.accepts("D-21", "D-22")
def test_a_run_that_raises_tells_what_and_where_and_is_torn_down(nursery: Nursery):
    nursery.write(job(run="async def run(self, stopping): raise KeyError('gone')"))
    code, out, err = nursery.end(nursery.host())
    line = (nursery.folder / "app.py").read_text().splitlines().index(
        "    async def run(self, stopping): raise KeyError('gone')"
    ) + 1
    message = f"run() of app:Job failed: KeyError: 'gone' (app.py:{line})"
    assert (code, "torn down" in out) == (1, True)
    assert nursery.errors == [{"code": "UPH_PYTHON_RUN", "message": message}]
    assert "Traceback" in err
    assert err.splitlines()[-1] == f"uphold: {message}. [UPH_PYTHON_RUN]"


@pytest.mark.accepts("D-21")
@pytest.mark.parametrize("word", ["async def", "def"])
def test_a_set_up_that_raises_says_why_and_is_never_ready(nursery: Nursery, word: str):
    nursery.write(job(setup=f"{word} setup(self): open('/nowhere/x')"))
    code, out, _ = nursery.end(nursery.host())
    [error] = nursery.errors
    assert (code, out) == (78, "")
    assert error["code"] == "UPH_PYTHON_SETUP"
    assert "FileNotFoundError" in error["message"]
    assert "(app.py:" in error["message"]
    assert "READY=1" not in nursery.said


def test_a_constructor_that_raises_is_a_failed_set_up(nursery: Nursery):
    nursery.write(job(init="def __init__(self, port): pass"))
    code, _, _ = nursery.end(nursery.host())
    [error] = nursery.errors
    assert (code, error["code"]) == (78, "UPH_PYTHON_SETUP")
    assert "app:Job cannot be constructed: TypeError" in error["message"]


def test_a_teardown_that_raises_is_told(nursery: Nursery):
    nursery.write(job(run="def run(self, stopping): pass", teardown="def teardown(self): 1 / 0"))
    code, _, _ = nursery.end(nursery.host())
    assert (code, [error["code"] for error in nursery.errors]) == (1, ["UPH_PYTHON_TEARDOWN"])


def test_the_first_of_several_mistakes_is_named_with_its_place(nursery: Nursery):
    run = (
        "async def run(self, stopping):\n"
        "        async def bad(): raise ValueError('inside')\n"
        "        async with asyncio.TaskGroup() as group: group.create_task(bad())\n"
    )
    nursery.write(job(run=run))
    assert nursery.end(nursery.host())[0] == 1
    assert "ValueError: inside (app.py:" in nursery.errors[0]["message"]


def test_stopped_while_it_is_set_up_it_ends_and_was_never_ready(nursery: Nursery):
    nursery.write(job(setup="async def setup(self): uphold.beat(); await asyncio.sleep(3600)"))
    child = nursery.host()
    nursery.until(lambda: nursery.beats)
    code, out, _ = nursery.stop(child)
    assert (code, out, "READY=1" in nursery.said) == (0, "", False)


def test_stopped_while_a_blocking_set_up_goes_on_it_is_torn_down_and_never_runs(nursery: Nursery):
    setup = "def setup(self): uphold.beat(); print(uphold.stop_requested(3600))"
    nursery.write(job(setup=setup))
    child = nursery.host()
    nursery.until(lambda: nursery.beats)
    code, out, _ = nursery.stop(child)
    assert (code, out.splitlines(), "READY=1" in nursery.said) == (0, ["True", "torn down"], False)


@pytest.mark.accepts("D-22")
def test_a_health_that_fails_is_bad_health_until_it_answers_again(nursery: Nursery):
    health = (
        "def health(self):\n"
        "        import os\n"
        "        if not os.path.exists('mended'): raise OSError('no disk')\n"
        "        return uphold.Health()\n"
    )
    nursery.write(job(health=health))
    child = nursery.host(UPHOLD_HEALTH_EVERY="0.2")
    nursery.until(lambda: len(nursery.beats) >= 3)
    first = nursery.beats[0]
    assert first["status"] == "error"
    assert first["error"].startswith("health() failed: OSError: no disk (app.py:")
    (nursery.folder / "mended").touch()
    nursery.until(lambda: nursery.beats[-1]["error"] is None)
    assert nursery.beats[-1]["status"] == "healthy"
    code, _, err = nursery.stop(child)
    assert (code, err.count("no disk")) == (0, 1)


def test_what_is_no_health_is_bad_health(nursery: Nursery):
    nursery.write(job(health="def health(self): return {'status': 'ok'}"))
    nursery.host()
    nursery.until(lambda: nursery.beats)
    assert nursery.beats[0]["error"] == "health() gave dict, not an uphold.Health"


def test_the_progress_of_a_beat_stays_where_health_names_none(nursery: Nursery):
    run = "async def run(self, stopping): uphold.beat(7, 'busy'); await stopping"
    nursery.write(job(run=run, health="def health(self): return uphold.Health()"))
    nursery.host(UPHOLD_HEALTH_EVERY="0.1")
    nursery.until(lambda: [beat["status"] for beat in nursery.beats].count("healthy") >= 2)
    assert nursery.beats[-1]["progress"] == 7
    assert {"busy", "healthy"} == {beat["status"] for beat in nursery.beats}


def test_a_plain_def_that_gives_a_coroutine_is_named(nursery: Nursery):
    nursery.write(job(run="def run(self, stopping): return asyncio.sleep(0)"))
    assert nursery.end(nursery.host())[0] == 1
    assert "declare it with 'async def'" in nursery.errors[0]["message"]


def test_the_exit_code_of_a_worker_that_exits_by_itself_is_its_own(nursery: Nursery):
    nursery.write(job(run="async def run(self, stopping): raise SystemExit(7)"))
    assert nursery.end(nursery.host())[0] == 7


def test_the_watchdog_is_petted_twice_in_its_time(nursery: Nursery):
    nursery.write(JOB)
    nursery.host(WATCHDOG_USEC="100000")
    nursery.until(lambda: nursery.said.count("WATCHDOG=1") >= 3)


def test_health_goes_to_the_heartbeat_file_too(nursery: Nursery):
    nursery.write(JOB)
    path = nursery.folder / "beat.json"
    child = nursery.host(UPHOLD_BEAT_FILE=str(path), UPHOLD_HEALTH_EVERY="0.2")
    nursery.until(lambda: path.exists() and json.loads(path.read_text())["progress"])
    told = json.loads(path.read_text())
    assert (told["pid"], told["status"], told["error"]) == (child.pid, "healthy", None)


def test_without_a_supervisor_a_worker_runs_all_the_same(nursery: Nursery):
    nursery.write(job(run="async def run(self, stopping): uphold.beat(1); print('done')"))
    code, out, err = nursery.end(nursery.host(NOTIFY_SOCKET=""))
    assert (code, out.splitlines()[1], err, nursery.said) == (0, "done", "", [])


def test_a_worker_that_is_aborted_says_where_it_was(nursery: Nursery):
    run = "def run(self, stopping):\n        uphold.beat()\n        time.sleep(3600)  # stuck\n"
    nursery.write(job(run=run))
    child = nursery.host()
    nursery.until(lambda: len(nursery.beats) >= 2)
    child.send_signal(signal.SIGABRT)
    code, _, err = nursery.end(child)
    assert code == -signal.SIGABRT
    assert "app.py" in err


def test_what_a_busy_supervisor_could_not_take_is_said_again(nursery: Nursery):
    """The kernel keeps ten messages or so; a rush of starts is more than that."""
    nursery.write(JOB)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        address = f"@uphold-busy-{os.getpid()}"
        ear.bind("\0" + address[1:])
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as others:
            others.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    others.sendto(b"STATUS=others", "\0" + address[1:])
        child = nursery.host(NOTIFY_SOCKET=address, UPHOLD_BEAT_FILE="beat.json")
        nursery.until((nursery.folder / "beat.json").exists, "it is up, and could not say so")
        ear.settimeout(60)
        said = b""
        while b"UPHOLD_BEAT" not in said:
            said += ear.recv(1 << 16) + b";"
        assert nursery.stop(child)[0] == 0
    assert b";READY=1;" in said
