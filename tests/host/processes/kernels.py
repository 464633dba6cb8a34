"""A stand-in for kernel32: as much of Windows as the process host calls."""

# ruff: noqa: N802 - they are called by the names that Windows gave them

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

JOB = 0x700
RUNNING = 258


@dataclass
class FakeProcess:
    born: int
    code: int | None = None
    heeds_break: bool = True
    suspended: bool = False


@dataclass
class FakeKernel:
    """Processes by number; the handle of one is its number and 0x10000."""

    processes: dict[int, FakeProcess] = field(default_factory=dict)
    members: list[int] = field(default_factory=list)
    calls: list[tuple] = field(default_factory=list)
    failing: dict[str, list[int]] = field(default_factory=dict)
    """Errors with which the next calls of a function fail."""
    open: list[int] = field(default_factory=list)
    inherited: list[int] = field(default_factory=list)
    born_with: tuple = ()
    error: int = 0

    def fails(self, name: str, *arguments: object) -> bool:
        self.calls.append((name, *arguments))
        if self.failing.get(name):
            self.error = self.failing[name].pop(0)
            return True
        return False

    def GetLastError(self):
        return self.error

    def get_osfhandle(self, descriptor):
        return 0x900 + descriptor

    def SetHandleInformation(self, handle, mask, flags):
        if self.fails("SetHandleInformation", handle, flags):
            return 0
        if flags & mask:
            self.inherited.append(handle)
        elif handle in self.inherited:
            self.inherited.remove(handle)
        return 1

    def CreateJobObjectW(self, security, name):
        if self.fails("CreateJobObjectW", name):
            return None
        self.open.append(JOB)
        return JOB

    def AssignProcessToJobObject(self, job, handle):
        if self.fails("AssignProcessToJobObject", job, handle):
            return 0
        assert self.processes[handle - 0x10000].suspended, "nothing of it has run yet"
        self.members.append(handle - 0x10000)
        return 1

    def QueryInformationJobObject(self, job, kind, answer, size, returned):
        if self.fails("QueryInformationJobObject", job, kind, size):
            return 0
        living = [pid for pid in self.members if self.processes[pid].code is None]
        if 8 + 8 * len(living) > size:
            self.error = 234
            return 0
        ctypes.c_uint32.from_buffer(answer, 0).value = len(living)
        ctypes.c_uint32.from_buffer(answer, 4).value = len(living)
        (ctypes.c_size_t * len(living)).from_buffer(answer, 8)[:] = living
        return 1

    def TerminateJobObject(self, job, code):
        if self.fails("TerminateJobObject", job, code):
            return 0
        for pid in self.members:
            self.end(pid, code)
        return 1

    def CreateProcessW(
        self, path, line, of_process, of_thread, inherit, flags, block, folder, startup, born
    ):
        if self.fails("CreateProcessW", path, line.value, flags, folder):
            return 0
        self.processes[42] = FakeProcess(born=1000, suspended=True)
        self.born_with = (block[:], list(startup._obj.handles), list(self.inherited))
        born._obj.process, born._obj.thread, born._obj.pid = 42 + 0x10000, 0x800, 42
        self.open += [42 + 0x10000, 0x800]
        return 1

    def ResumeThread(self, thread):
        if self.fails("ResumeThread", thread):
            return 0xFFFFFFFF
        self.processes[42].suspended = False
        return 1

    def OpenProcess(self, rights, inherit, pid):
        if self.fails("OpenProcess", rights, pid):
            return None
        if pid not in self.processes:
            self.error = 87
            return None
        self.open.append(pid + 0x10000)
        return pid + 0x10000

    def GetProcessTimes(self, handle, created, *others):
        if self.fails("GetProcessTimes", handle):
            return 0
        created._obj.value = self.processes[handle - 0x10000].born
        return 1

    def WaitForSingleObject(self, handle, milliseconds):
        assert handle in self.open
        if self.fails("WaitForSingleObject", handle, milliseconds):
            return 0xFFFFFFFF
        return RUNNING if self.processes[handle - 0x10000].code is None else 0

    def GetExitCodeProcess(self, handle, code):
        if self.fails("GetExitCodeProcess", handle):
            return 0
        code._obj.value = self.processes[handle - 0x10000].code
        return 1

    def GenerateConsoleCtrlEvent(self, event, group):
        if self.fails("GenerateConsoleCtrlEvent", event, group):
            return 0
        if self.processes[group].heeds_break:
            self.end(group, 0xC000013A)
        return 1

    def TerminateProcess(self, handle, code):
        if self.fails("TerminateProcess", handle, code):
            return 0
        self.end(handle - 0x10000, code)
        return 1

    def CloseHandle(self, handle):
        self.open.remove(handle)
        return 1

    def ReplaceFileW(self, target, temp, backup, flags, exclude, reserved):
        return int(not self.fails("ReplaceFileW", target, temp))

    def MoveFileExW(self, temp, target, flags):
        return int(not self.fails("MoveFileExW", temp, target, flags))

    def end(self, pid: int, code: int) -> None:
        if self.processes[pid].code is None:
            self.processes[pid].code = code
