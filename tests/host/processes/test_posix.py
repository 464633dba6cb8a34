"""The portable way, tried on this system: everything in it works on Linux too."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace

import pytest

from uphold.host.processes import posix
from uphold.testing.waiting import until


@pytest.fixture
def sleeper():
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    process = posix.hold_child(child.pid, "mine")
    yield process
    if child.poll() is None:
        child.kill()
        child.wait()


def test_a_child_is_held_until_it_ends(sleeper):
    assert sleeper.alive()
    assert sleeper.reap() is None
    assert sleeper.send(signal.SIGTERM)
    assert until(sleeper.reap) == (None, signal.SIGTERM)
    assert sleeper.reap() == (None, signal.SIGTERM)
    assert not sleeper.alive()
    assert not sleeper.send(signal.SIGTERM)
    assert not sleeper.send_group(signal.SIGTERM)


def test_an_exit_code_is_known_for_children():
    child = subprocess.Popen(["sh", "-c", "exit 7"])
    process = posix.hold_child(child.pid, "n")
    assert until(process.reap) == (7, None)
    child.returncode = 0


def test_an_exit_that_somebody_else_took_is_unknown():
    child = subprocess.Popen(["true"])
    process = posix.hold_child(child.pid, "n")
    child.wait()
    assert process.reap() == (None, None)


def test_the_same_process_is_found_again_and_no_other(sleeper):
    found = posix.find(sleeper.identity)
    assert found.identity == sleeper.identity
    assert not found.child
    assert found.alive()
    assert found.reap() is None
    assert posix.find(replace(sleeper.identity, start_ticks=1)) is None
    assert posix.find(replace(sleeper.identity, boot_id="other")) is None
    sighted = posix.hold_sighted(sleeper.identity.pid, sleeper.identity.start_ticks, "n")
    assert sighted.alive()
    assert posix.hold_sighted(sleeper.identity.pid, 1, "n") is None
    assert sleeper.send_group(signal.SIGKILL)
    until(lambda: not sleeper.alive())
    assert not found.alive()
    assert found.reap() == (None, None)
    found.close()


def test_descriptors_are_closed_at_exec(tmp_path):
    with open(tmp_path / "file", "w") as file:
        os.set_inheritable(file.fileno(), True)
        assert posix.close_on_exec(3)
        assert not os.get_inheritable(file.fileno())


def test_less_is_promised_than_on_linux():
    holds = posix.containment()
    assert holds.level == "C"
    assert not holds.sure_identity
    assert not posix.become_reaper()
