from __future__ import annotations

import os
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from uphold.core.specs import Limits, WorkerSpec
from uphold.errors import HostFailure
from uphold.host.processes import close_on_exec
from uphold.host.processes.spawning import HOPELESS, Program, account_of, spawn
from uphold.testing.waiting import until


def program(path, out, **changes):
    fields = {
        "path": path,
        "argv": (path,),
        "environment": {},
        "working_dir": "/",
        "out": out,
        "err": out,
        "lock": None,
        "umask": None,
        "account": None,
        "limits": Limits(),
    }
    return Program(**(fields | changes))


@contextmanager
def output(tmp_path):
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("limits", [Limits(), Limits(nice=0)])
def test_a_program_that_needs_no_lock_gets_none(tmp_path, limits):
    close_on_exec(3)
    with output(tmp_path) as out:
        pid = spawn(program("/bin/sleep", out, argv=("sleep", "1000"), limits=limits))
    until(lambda: os.listdir(f"/proc/{pid}/fd") == ["0", "1", "2"])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_our_own_user_is_nobody_else():
    assert account_of(WorkerSpec(name="web")) is None
    own = WorkerSpec(name="web", user=str(os.geteuid()), group=str(os.getegid()))
    assert account_of(own) is None


def test_a_group_alone_keeps_the_user_and_drops_other_groups():
    spec = WorkerSpec(name="web", group="daemon")
    if os.geteuid():
        with pytest.raises(HostFailure, match="only root") as caught:
            account_of(spec)
        assert caught.value.code in HOPELESS
    else:
        account = account_of(spec)
        assert (account.uid, account.groups, account.name) == (0, (), "")
        assert account.gid != 0


def test_limits_that_cannot_be_set_are_said_to_be_that(tmp_path):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    ceiling = int(Path("/proc/sys/fs/nr_open").read_text())
    beyond = Limits(nofile=max(ceiling, hard) + 1)
    with output(tmp_path) as out, pytest.raises(HostFailure, match="could not be set") as caught:
        spawn(program("/bin/true", out, limits=beyond))
    assert caught.value.code in HOPELESS


def test_too_long_a_command_fails_without_being_hopeless(tmp_path):
    with (
        output(tmp_path) as out,
        pytest.raises(HostFailure, match="could not be started") as caught,
    ):
        spawn(program("/bin/true", out, argv=("true", "x" * 5_000_000)))
    assert caught.value.code == "UPH_START_FAILED"
    assert caught.value.code not in HOPELESS
