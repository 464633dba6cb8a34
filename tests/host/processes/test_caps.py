"""Limits of control groups, in files of both versions; with real groups where some can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from uphold.core.specs import Limits, WorkerSpec
from uphold.host.processes.caps import (
    caps_memory,
    controllers_of,
    is_firm,
    lift_others,
    oom_kills,
    write_cap,
)


@pytest.fixture
def second(tmp_path):
    """A folder as the second version makes it; played with plain files."""
    for name in ("pids.max", "memory.max", "memory.swap.max", "memory.oom.group", "cpu.max"):
        (tmp_path / name).write_text("")
    return tmp_path


def test_only_declared_limits_need_a_controller():
    assert controllers_of(Limits(nofile=64, nice=5)) == ()
    everything = Limits(processes=7, memory=10**9, cpu=0.5)
    assert controllers_of(everything) == ("pids", "memory", "cpu")


def test_a_start_waits_for_no_limit_that_can_be_done_without():
    plain, grouped = WorkerSpec(name="web"), WorkerSpec(name="web", containment="group")
    assert is_firm(plain, "pids")
    assert not is_firm(plain, "memory")
    assert not is_firm(plain, "cpu")
    assert is_firm(grouped, "memory")


def test_limits_of_the_second_version(second):
    limits = Limits(processes=7, memory=500_000_000, cpu=1.5)
    for controller in controllers_of(limits):
        write_cap(controller, str(second), limits)
    written = {path.name: path.read_text() for path in second.iterdir()}
    assert written == {
        "pids.max": "7",
        "memory.max": "500000000",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
    }
    assert caps_memory(str(second))


def test_what_an_earlier_start_asked_for_is_lifted(second):
    lift_others(str(second), ["pids"])
    assert (second / "memory.max").read_text() == "max"
    assert (second / "pids.max").read_text() == ""
    assert not caps_memory(str(second))
    assert not caps_memory(str(second / "nowhere"))


def test_limits_of_the_first_version(tmp_path):
    names = ("memory.limit_in_bytes", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    for name in names:
        (tmp_path / name).write_text("")
    limits = Limits(memory=2**20, cpu=0.001)
    write_cap("memory", str(tmp_path), limits)
    write_cap("cpu", str(tmp_path), limits)
    assert [(tmp_path / name).read_text() for name in names] == ["1048576", "1000", "100000"]


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("memory.events", "low 0\noom 2\noom_kill 2\noom_group_kill 1\n", 2),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1),
        ("memory.oom_control", "oom_kill_disable 0\n", 0),
        ("memory.events", "oom_kill many\n", 0),
        ("nothing", "", 0),
    ],
)
def test_ends_for_want_of_memory_are_counted(tmp_path, name, text, count):
    (tmp_path / name).write_text(text)
    assert oom_kills(str(tmp_path)) == count


def test_a_limit_that_cannot_be_written_is_no_secret(tmp_path):
    with pytest.raises(OSError, match=r"pids\.max"):
        write_cap("pids", str(Path(tmp_path)), Limits(processes=3))
