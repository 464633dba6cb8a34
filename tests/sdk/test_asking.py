"""Scripts that are asked to end."""

from __future__ import annotations

import signal
import threading

import pytest

import uphold
from runner.nurseries import Nursery

SCRIPT = """
import uphold
print(uphold.stop_requested())
uphold.ready()
while not uphold.stop_requested(3600):
    pass
print("tidy", uphold.stop_requested())
"""


@pytest.mark.accepts("D-24")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_script_that_sleeps_wakes_up_and_ends_by_itself(nursery: Nursery, number):
    nursery.write(SCRIPT)
    child = nursery.start("app.py")
    nursery.until_said("READY=1")
    child.send_signal(number)
    code, out, err = nursery.end(child)
    assert (code, out.splitlines(), err) == (0, ["False", "tidy True"], "")
    assert nursery.said == ["READY=1", "STOPPING=1"]


def test_it_must_be_asked_for_in_the_main_thread_first(nursery: Nursery):
    nursery.write(
        "import threading, uphold\nthreading.Thread(target=uphold.stop_requested).start()\n"
    )
    _, _, err = nursery.end(nursery.start("app.py"))
    assert "RuntimeError: stop_requested() must be called in the main thread first" in err


def test_every_thread_that_sleeps_is_woken():
    stopping = uphold.BlockingStopping()
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(stopping.wait())) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert not stopping.wait(0)
    assert not stopping()
    stopping.set()
    stopping.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 5
    assert stopping.is_set()
    assert stopping.wait(1e300)
