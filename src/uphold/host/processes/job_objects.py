"""One job object for each slot on Windows: its processes are kept together. Unverified.

What a control group is on Linux (`groups`): whatever is born in it is listed there, ends with
it, and nothing leaves it.
"""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_uint32
from hashlib import sha256
from typing import Final

from uphold.host.processes.kernel32 import KILLED, Kernel, refused, system_kernel

_PROCESS_IDS: Final = 3  # JobObjectBasicProcessIdList
_MORE: Final = 234
_MOST_IDS: Final = 1 << 20


class Job:
    """The job object of one slot: whatever is born in it stays in it, and ends with it.

    It does not end with its last handle: workers outlive their supervisor. A name lasts while
    somebody has a handle, so each worker inherits one.
    """

    __slots__ = ("handle", "kernel")

    def __init__(self, name: str, kernel: Kernel | None = None) -> None:
        self.kernel = kernel or system_kernel()
        self.handle: int | None = self.kernel.CreateJobObjectW(None, name)
        """Of a new job, or of the one that has this name."""
        if not self.handle:
            raise refused(f"the job object {name}", self.kernel.GetLastError())

    def kill(self) -> bool:
        """End everything in it."""
        return bool(self.kernel.TerminateJobObject(self.handle, KILLED))

    def members(self) -> list[int] | None:
        """List the processes in it; None if that cannot be seen."""
        room = 64
        while room <= _MOST_IDS:
            # Two counts of 32 bits (assigned, listed), then numbers as wide as a pointer.
            answer = ctypes.create_string_buffer(8 + room * ctypes.sizeof(c_size_t))
            size = ctypes.sizeof(answer)
            if self.kernel.QueryInformationJobObject(self.handle, _PROCESS_IDS, answer, size, None):
                listed = c_uint32.from_buffer(answer, 4).value
                return list((c_size_t * listed).from_buffer(answer, 8))
            if self.kernel.GetLastError() != _MORE:
                return None
            room *= 4
        return None

    def is_empty(self) -> bool:
        """Tell whether nothing lives in it; what cannot be looked at counts as alive."""
        return self.members() == []

    def close(self) -> None:
        """Let go of it; what runs in it goes on."""
        if self.handle:
            self.kernel.CloseHandle(self.handle)
            self.handle = None


def job_name(home: str, slot: str) -> str:
    """Name the job of a slot: the same for every supervisor of a home, in every session."""
    return f"Global\\uphold-{sha256(home.casefold().encode()).hexdigest()[:16]}-{slot}"
