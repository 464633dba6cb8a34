"""The process host for Windows, against a stand-in for kernel32. No Windows machine has run it."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from host.processes.kernels import JOB, FakeKernel, FakeProcess
from uphold.core.specs import Limits
from uphold.errors import HostFailure
from uphold.host import processes
from uphold.host.processes import job_objects, kernel32, linux, posix, windows
from uphold.host.processes.job_objects import Job, job_name
from uphold.host.processes.spawning import Program

BUSY = 32


@pytest.fixture
def kernel():
    return FakeKernel()


@pytest.fixture
def job(kernel):
    return Job(job_name("C:\\orion", "web"), kernel)


def program(**changes) -> Program:
    plain = Program(
        path="C:\\bin\\web.exe",
        argv=("web", "--name", "a b"),
        environment={"b": "2", "A": "1"},
        working_dir="C:\\orion",
        out=5,
        err=6,
        lock=None,
        umask=None,
        account=None,
        limits=Limits(),
    )
    return plain._replace(**changes)


def names(kernel: FakeKernel) -> list[str]:
    return [call[0] for call in kernel.calls]


def test_it_has_everything_the_other_hosts_have():
    for name in processes.__all__:
        ours, theirs = getattr(windows, name), getattr(posix, name)
        if inspect.isfunction(ours):
            wanted = list(inspect.signature(theirs).parameters)
            assert list(inspect.signature(ours).parameters)[: len(wanted)] == wanted
            assert list(inspect.signature(getattr(linux, name)).parameters) == wanted
    methods = {name for name in vars(posix.Process) if not name.startswith("_")}
    assert methods <= {name for name in vars(windows.Process) if not name.startswith("_")}


def test_a_program_is_in_its_job_before_it_runs(kernel, job):
    process = windows.start(program(), job, "n")
    assert [name for name in names(kernel) if name != "SetHandleInformation"] == [
        "CreateJobObjectW",
        "CreateProcessW",
        "AssignProcessToJobObject",
        "GetProcessTimes",
        "ResumeThread",
    ]
    assert process.child
    assert process.alive()
    assert process.reap() is None
    assert (process.identity.pid, process.identity.start_ticks) == (42, 1000)
    assert not kernel.processes[42].suspended
    process.close()
    process.close()
    assert kernel.open == [JOB]
    assert not process.alive()


def test_it_is_born_in_a_group_of_its_own_with_what_it_is_meant_to_have(kernel, job):
    windows.start(program(), job, "n")
    call = next(call for call in kernel.calls if call[0] == "CreateProcessW")
    assert call[1:] == ("C:\\bin\\web.exe", 'web --name "a b"', 0x604, "C:\\orion")
    block, handles, inherited = kernel.born_with
    assert block == "A=1\0b=2\0\0\0"
    assert handles[1:] == [0x905, 0x906]
    assert inherited == [*handles, JOB], "a handle of the job keeps its name alive"
    assert kernel.inherited == [], "for the length of the start only"


def test_one_that_cannot_be_put_into_its_job_never_runs(kernel, job):
    for function in ("AssignProcessToJobObject", "GetProcessTimes", "ResumeThread"):
        kernel.failing[function] = [5]
        with pytest.raises(HostFailure, match="error 5"):
            windows.start(program(), job, "n")
        assert kernel.processes[42].code == kernel32.KILLED
        assert kernel.open == [JOB]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (2, "UPH_START_NOT_FOUND"),
        (5, "UPH_START_NOT_EXECUTABLE"),
        (193, "UPH_START_NOT_EXECUTABLE"),
        (267, "UPH_START_NO_DIRECTORY"),
        (31, "UPH_START_FAILED"),
    ],
)
def test_a_failed_start_says_why(kernel, job, error, code):
    kernel.failing["CreateProcessW"] = [error]
    with pytest.raises(HostFailure, match=r"web\.exe.*error") as failure:
        windows.start(program(), job, "n")
    assert failure.value.code == code
    assert kernel.inherited == []


@pytest.mark.parametrize(
    "changes",
    [{"umask": 0o22}, {"limits": Limits(nice=5)}, {"path": "C:\\RUN.BAT"}, {"caps": (7,)}],
)
def test_what_is_not_there_is_refused_and_not_ignored(kernel, job, changes):
    with pytest.raises(HostFailure):
        windows.start(program(**changes), job, "n")
    assert "CreateProcessW" not in names(kernel)


def test_a_stop_asks_by_control_break(kernel, job):
    process = windows.start(program(), job, "n")
    assert process.send(windows.TERM)
    assert kernel.calls[-1] == ("GenerateConsoleCtrlEvent", 1, 42)
    assert process.reap() == (None, windows.TERM)
    assert not process.send(windows.TERM)
    assert job.is_empty()


def test_who_does_not_heed_it_is_ended_with_the_whole_job(kernel, job):
    process = windows.start(program(), job, "n")
    kernel.processes[42].heeds_break = False
    kernel.processes[43] = FakeProcess(born=1001)
    kernel.members.append(43)
    assert process.send_group(windows.TERM)
    assert process.alive()
    assert job.members() == [42, 43]
    assert process.send_group(windows.KILL)
    assert kernel.calls[-1] == ("TerminateJobObject", JOB, kernel32.KILLED)
    assert process.reap() == (None, windows.KILL)
    assert job.is_empty()


def test_without_a_shared_console_nobody_is_asked_and_that_is_said(kernel, job):
    process = windows.start(program(), job, "n")
    kernel.failing["GenerateConsoleCtrlEvent"] = [6]
    assert not process.send(windows.TERM)
    assert not process.send(1), "there is no such thing as SIGHUP"
    assert kernel.calls[-1][0] == "WaitForSingleObject", "and nothing else is sent in its stead"
    assert process.send(windows.KILL)
    assert kernel.calls[-1] == ("TerminateProcess", 42 + 0x10000, kernel32.KILLED)


def test_what_its_main_process_left_behind_is_ended_through_the_job(kernel, job):
    process = windows.start(program(), job, "n")
    kernel.processes[43] = FakeProcess(born=1001)
    kernel.members.append(43)
    kernel.end(42, 0)
    assert process.reap() == (0, None)
    assert not job.is_empty()
    assert process.send_group(windows.KILL)
    assert job.is_empty()


def test_a_job_is_empty_only_if_its_list_says_so(kernel, job):
    assert job.is_empty()
    kernel.failing["QueryInformationJobObject"] = [5]
    assert not job.is_empty(), "what cannot be looked at counts as alive"
    for pid in range(1, 1001):
        kernel.processes[pid] = FakeProcess(born=pid)
        kernel.members.append(pid)
    assert job.members() == list(range(1, 1001)), "the list grows as it must"
    job.close()
    job.close()
    assert kernel.open == []


def test_a_job_that_cannot_be_had_is_a_failure(kernel):
    kernel.failing["CreateJobObjectW"] = [6]
    with pytest.raises(HostFailure, match="job object"):
        Job("name", kernel)


def test_the_job_of_a_slot_has_the_same_name_for_every_supervisor_of_the_home():
    assert job_name("C:\\Orion", "web") == job_name("c:\\orion", "web")
    assert job_name("C:\\Orion", "web") != job_name("C:\\Orion", "web.2")
    assert job_name("C:\\Orion", "web").count("\\") == 1, "what follows the name space has none"


def test_only_the_very_same_process_is_found_again(kernel):
    kernel.processes[42] = FakeProcess(born=1000)
    held = windows.hold_child(42, "n", kernel)
    found = windows.find(held.identity, kernel)
    assert found.identity == held.identity
    assert not found.child
    assert windows.find(replace(held.identity, start_ticks=999), kernel) is None
    assert windows.find(replace(held.identity, boot_id="other"), kernel) is None
    assert windows.find(replace(held.identity, pid=43), kernel) is None
    kernel.processes[42].code = 7
    assert windows.find(held.identity, kernel) is None
    assert found.reap() == (7, None), "a handle tells how a stranger ended"
    assert len(kernel.open) == 2, "what was not the one is let go of"
    with pytest.raises(HostFailure, match="process 43"):
        windows.hold_child(43, "n", kernel)


def test_one_that_may_not_be_looked_at_is_not_called_gone(kernel):
    kernel.processes[42] = FakeProcess(born=1000)
    kernel.failing["OpenProcess"] = [5]
    assert windows.hold_sighted(42, 1000, "n", kernel).alive(), "fewer rights are enough to look"
    kernel.failing["OpenProcess"] = [5, 5]
    with pytest.raises(HostFailure, match="error 5"):
        windows.hold_sighted(42, 1000, "n", kernel)
    kernel.failing["GetProcessTimes"] = [5]
    with pytest.raises(HostFailure, match="creation time"):
        windows.hold_sighted(42, 1000, "n", kernel)
    assert len(kernel.open) == 1


def test_an_end_that_cannot_be_seen_is_unknown(kernel):
    kernel.processes[42] = FakeProcess(born=1000)
    held = windows.hold_child(42, "n", kernel)
    kernel.failing["WaitForSingleObject"] = [6]
    assert held.alive(), "not seen to have ended"
    kernel.processes[42].code = 259
    assert held.reap() == (259, None), "which Windows also uses to say that one still runs"
    kernel.failing["GetExitCodeProcess"] = [6]
    assert held.reap() == (None, None)


def test_a_file_takes_the_place_of_another(kernel):
    windows.replace_file("new", "old", kernel)
    assert kernel.calls == [("ReplaceFileW", "old", "new")]


@pytest.mark.parametrize("error", [2, 1176, 1177])
def test_where_there_is_none_or_it_was_moved_away_the_new_one_is_moved_there(kernel, error):
    kernel.failing["ReplaceFileW"] = [error]
    windows.replace_file("new", "old", kernel)
    assert kernel.calls == [("ReplaceFileW", "old", "new"), ("MoveFileExW", "new", "old", 9)]


def test_a_file_somebody_has_open_is_tried_again_for_a_while(kernel):
    pauses: list[float] = []
    kernel.failing["ReplaceFileW"] = [BUSY, 5]
    windows.replace_file("new", "old", kernel, pauses.append)
    assert len(pauses) == 2
    kernel.failing["ReplaceFileW"] = [BUSY] * 100
    with pytest.raises(HostFailure, match="to replace old by new: error 32"):
        windows.replace_file("new", "old", kernel, pauses.append)
    assert len(pauses) < 20
    kernel.failing["ReplaceFileW"] = [112]
    kernel.calls.clear()
    with pytest.raises(HostFailure, match="error 112"):
        windows.replace_file("new", "old", kernel, pauses.append)
    assert names(kernel) == ["ReplaceFileW"], "a full disk is not waited for"


def test_descriptors_are_kept_from_children(tmp_path):
    with open(tmp_path / "file", "w") as file:
        os.set_inheritable(file.fileno(), True)
        assert windows.close_on_exec(file.fileno())
        assert not os.get_inheritable(file.fileno())


def test_it_says_that_nobody_has_tried_it():
    assert "unverified" in windows.containment().means
    assert all(
        "Unverified" in (module.__doc__ or "") for module in (windows, job_objects, kernel32)
    )
    assert not any((windows.become_reaper(), windows.is_reaper(), windows.can_reap()))


def test_every_function_that_is_called_is_declared_and_stood_in_for():
    """Undeclared, ctypes would cut a handle to 32 bits."""
    called = set()
    for module in (windows, job_objects):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if ast.unparse(node.func.value) in ("kernel", "self.kernel", "self._kernel"):
                    called.add(node.func.attr)
    assert called - {"GetLastError", "get_osfhandle"} == set(kernel32.PROTOTYPES)
    assert all(hasattr(FakeKernel, name) for name in called)


def test_structures_are_as_wide_as_on_windows():
    sizes = [kernel32.ctypes.sizeof(kind) for kind in (kernel32.Startup, kernel32.Born)]
    assert sizes == ([104, 24] if sys.maxsize > 2**32 else [68, 16])


def test_there_is_no_kernel32_here_and_a_supervisor_does_not_look_for_it():
    with pytest.raises(HostFailure, match="not Windows"):
        kernel32.system_kernel()
    code = "import json, sys, uphold.drivers.process; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    loaded = set(json.loads(ran.stdout))
    ours = {f"uphold.host.processes.{name}" for name in ("windows", "job_objects", "kernel32")}
    assert not loaded & ours
