"""Holding, stopping and starting processes on Windows. Unverified: no Windows machine has run it.

Same contract as `linux` and `posix`. A process is held by its handle and known by number and
creation time; a job object keeps the tree of a slot together. Asking it to stop is CTRL_BREAK,
which reaches only those that share our console. Other parts of uphold still need Unix.
"""

from __future__ import annotations

import ctypes
import os
import subprocess  # noqa: TID251 - host starts programs; only its quoting is used here
from contextlib import contextmanager, suppress
from ctypes import byref, c_uint32, c_uint64
from time import sleep
from typing import TYPE_CHECKING, Final

from uphold.core.specs import Limits
from uphold.core.statuses import Identity
from uphold.errors import HostFailure
from uphold.host.environments import NOT_EXECUTABLE
from uphold.host.processes.containment import Containment, Ending
from uphold.host.processes.kernel32 import (
    KILLED,
    Born,
    Kernel,
    Startup,
    not_started,
    refused,
    system_kernel,
)
from uphold.host.proctable import boot_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from uphold.host.processes.job_objects import Job
    from uphold.host.processes.spawning import Program

INT: Final = 2
TERM: Final = 15
KILL: Final = 9
"""Windows has no signals; these words of the contract are translated, others are refused."""
_ENDED_BY_BREAK: Final = 0xC000013A
_LOOK: Final = 0x0010_1000  # SYNCHRONIZE, PROCESS_QUERY_LIMITED_INFORMATION
_LOOK_AND_END: Final = _LOOK | 1  # PROCESS_TERMINATE
_BIRTH: Final = 0x4 | 0x200 | 0x400  # suspended, its own process group, wide environment
_USE_HANDLES: Final = 0x100
_INHERIT: Final = 1
_NOT_RESUMED: Final = 0xFFFFFFFF
_CTRL_BREAK: Final = 1
_STILL_RUNS: Final = (258, 0xFFFFFFFF)  # WAIT_TIMEOUT; WAIT_FAILED: not seen to have ended
_OVER_AND_THROUGH: Final = 1 | 8  # MOVEFILE_REPLACE_EXISTING, MOVEFILE_WRITE_THROUGH
_NO_SUCH_PROCESS: Final = 87
_NO_SUCH_FILE: Final = 2
_TARGET_MOVED_AWAY: Final = (1176, 1177)
_BUSY: Final = (5, 32, 33, 1175)
"""Somebody (a virus scanner, a reader) has the file open just now."""
_PAUSES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class Process:
    """One process, held by its handle: while that is open its number is nobody else's."""

    __slots__ = ("_handle", "_kernel", "child", "descriptor", "identity", "job")

    def __init__(
        self, identity: Identity, handle: int, kernel: Kernel, *, child: bool, job: Job | None
    ) -> None:
        self.identity = identity
        self.descriptor = -1
        """Nothing becomes readable when it ends: the watcher looks."""
        self.child = child
        self.job = job
        """What keeps its tree together; whoever finds a process again adds it."""
        self._handle: int | None = handle
        self._kernel = kernel

    def alive(self) -> bool:
        """Tell whether it still runs."""
        if self._handle is None:
            return False
        return self._kernel.WaitForSingleObject(self._handle, 0) in _STILL_RUNS

    def reap(self) -> Ending | None:
        """Learn how it ended, whoever started it; None while it lives."""
        if self.alive():
            return None
        code = c_uint32()
        if self._handle is None or not self._kernel.GetExitCodeProcess(self._handle, byref(code)):
            return Ending()
        number = {KILLED: KILL, _ENDED_BY_BREAK: TERM}.get(code.value)
        return Ending(code=code.value) if number is None else Ending(signal=number)

    def send(self, number: int) -> bool:
        """Ask it to stop (INT, TERM) or end it (KILL); False if that fails or means nothing here.

        Only a process group can be asked, so only what was started as the leader of one.
        """
        if not self.alive():
            return False
        if number == KILL:
            return bool(self._kernel.TerminateProcess(self._handle, KILLED))
        asked = number in (INT, TERM)
        return asked and bool(self._kernel.GenerateConsoleCtrlEvent(_CTRL_BREAK, self.identity.pid))

    def send_group(self, number: int) -> bool:
        """Ask its process group to stop while it lives, or end its job, also after its own end."""
        if number == KILL and self.job is not None:
            return self.job.kill()
        return self.send(number)

    def close(self) -> None:
        """Let go of it."""
        if self._handle is not None:
            self._kernel.CloseHandle(self._handle)
            self._handle = None


def start(program: Program, job: Job, nonce: str) -> Process:
    """Start a program inside a job, before a single instruction of it runs; else HostFailure."""
    kernel = job.kernel
    _refuse_what_is_not_there(program)
    startup, born = Startup(size=ctypes.sizeof(Startup), flags=_USE_HANDLES), Born()
    line = ctypes.create_unicode_buffer(subprocess.list2cmdline(program.argv))
    block = ctypes.create_unicode_buffer(environment_block(program.environment))
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        handles = [kernel.get_osfhandle(each) for each in (nothing, program.out, program.err)]
        startup.handles[:] = handles
        with _inherited(kernel, [*handles, job.handle]):
            started = kernel.CreateProcessW(
                *(program.path, line, None, None, True, _BIRTH),
                *(block, program.working_dir, byref(startup), byref(born)),
            )
            if not started:
                raise not_started(program.path, program.working_dir, kernel.GetLastError())
    finally:
        os.close(nothing)
    try:
        return _released(kernel, job, born, nonce)
    except BaseException:
        kernel.TerminateProcess(born.process, KILLED)
        kernel.CloseHandle(born.process)
        raise
    finally:
        kernel.CloseHandle(born.thread)


def environment_block(environment: Mapping[str, str]) -> str:
    """Write an environment as Windows takes it: sorted, each with a NUL, and one at the end."""
    ordered = sorted(environment.items(), key=lambda item: item[0].upper())
    return "".join(f"{name}={value}\0" for name, value in ordered) + "\0"


def hold_child(pid: int, nonce: str, kernel: Kernel | None = None) -> Process:
    """Hold a process just started by us; whoever started it has it open still."""
    kernel = kernel or system_kernel()
    held = _hold(kernel, pid, nonce, child=True)
    if held is None:
        raise refused(f"a handle to process {pid}", kernel.GetLastError())
    return held


def find(identity: Identity, kernel: Kernel | None = None) -> Process | None:
    """Hold exactly this process again; None if it is gone."""
    if identity.boot_id != boot_id():
        return None
    return hold_sighted(identity.pid, identity.start_ticks, identity.nonce, kernel)


def hold_sighted(
    pid: int, start_ticks: int, nonce: str, kernel: Kernel | None = None
) -> Process | None:
    """Hold a process that was seen a moment ago; None if it is gone or another has its number."""
    held = _hold(kernel or system_kernel(), pid, nonce, child=False)
    if held is not None and (held.identity.start_ticks != start_ticks or not held.alive()):
        held.close()
        return None
    return held


def replace_file(
    temp: str, target: str, kernel: Kernel | None = None, pause: Callable[[float], None] = sleep
) -> None:
    """Put a written file in the place of another, whose rights it takes over; or HostFailure.

    Should Windows have moved the old one away and no more, the new one is moved there.
    """
    kernel = kernel or system_kernel()
    for seconds in (*_PAUSES, None):
        if kernel.ReplaceFileW(target, temp, None, 0, None, None):
            return
        error = kernel.GetLastError()
        if error == _NO_SUCH_FILE or error in _TARGET_MOVED_AWAY:
            if kernel.MoveFileExW(temp, target, _OVER_AND_THROUGH):
                return
            error = kernel.GetLastError()
        if error not in _BUSY or seconds is None:
            raise refused(f"to replace {target} by {temp}", error)
        pause(seconds)


def become_reaper() -> bool:
    """Nobody inherits orphans here; the job has them."""
    return False


def is_reaper() -> bool:
    """Orphans never come to us here."""
    return False


def can_reap() -> bool:
    """Tell whether orphans could come to us: they cannot."""
    return False


def close_on_exec(first: int) -> bool:
    """Keep descriptors from this one on to ourselves; other handles are not touched."""
    for descriptor in range(first, 2048):
        with suppress(OSError):  # not open
            os.set_inheritable(descriptor, False)
    return True


def containment() -> Containment:
    """Say what should hold here. Nobody has seen it."""
    return Containment(
        level="A",
        means="job object (unverified: no Windows machine has run this)",
        sure_identity=True,
        exits_of_adopted=True,
        gap="a process that is started for it by another one (a service, the task scheduler)",
    )


def _hold(kernel: Kernel, pid: int, nonce: str, *, child: bool) -> Process | None:
    for rights in (_LOOK_AND_END, _LOOK):
        handle = kernel.OpenProcess(rights, False, pid)
        if handle:
            try:
                return _held(kernel, handle, pid, nonce, child=child)
            except BaseException:
                kernel.CloseHandle(handle)
                raise
    if kernel.GetLastError() == _NO_SUCH_PROCESS:
        return None
    # It is there and not to be looked at: to call it gone might start it a second time.
    raise refused(f"a handle to process {pid}", kernel.GetLastError())


def _held(kernel: Kernel, handle: int, pid: int, nonce: str, *, child: bool) -> Process:
    times = [c_uint64() for _ in range(4)]
    if not kernel.GetProcessTimes(handle, *map(byref, times)):
        raise refused(f"the creation time of process {pid}", kernel.GetLastError())
    ticks = times[0].value
    identity = Identity(pid=pid, start_ticks=ticks, boot_id=boot_id(), inode=0, nonce=nonce)
    return Process(identity, handle, kernel, child=child, job=None)


def _released(kernel: Kernel, job: Job, born: Born, nonce: str) -> Process:
    """Put what was born suspended into its job, and let it run."""
    if not kernel.AssignProcessToJobObject(job.handle, born.process):
        raise refused(f"to put process {born.pid} into its job", kernel.GetLastError())
    process = _held(kernel, born.process, born.pid, nonce, child=True)
    process.job = job
    if kernel.ResumeThread(born.thread) == _NOT_RESUMED:
        raise refused(f"to let process {born.pid} run", kernel.GetLastError())
    return process


@contextmanager
def _inherited(kernel: Kernel, handles: list[int | None]) -> Iterator[None]:
    """Let a child inherit these, for the length of one start: starts must not overlap."""
    try:
        for handle in handles:
            if not kernel.SetHandleInformation(handle, _INHERIT, _INHERIT):
                raise refused("to hand on a handle", kernel.GetLastError())
        yield
    finally:
        for handle in handles:
            kernel.SetHandleInformation(handle, _INHERIT, 0)


def _refuse_what_is_not_there(program: Program) -> None:
    asked = (program.account, program.umask, program.group, program.extra)
    if any(each is not None for each in asked) or program.caps or program.limits != Limits():
        raise HostFailure(
            f"'{program.path}' cannot have a user, a umask, limits or descriptors on Windows.",
            code="UPH_START_NOT_PERMITTED",
            remedy="Remove these keys from the worker.",
        )
    if program.path.lower().rstrip(". ").endswith((".bat", ".cmd")):
        # Its arguments would be read by cmd.exe, whose quoting is another.
        raise HostFailure(
            f"'{program.path}' is a batch file, which is no program.",
            code=NOT_EXECUTABLE,
            remedy="Name its interpreter: cmd.exe /c, and mind its quoting.",
        )
