"""The functions of Windows that `windows` calls, by ctypes. Unverified, as all of that.

Nothing is loaded before somebody asks for it, so that this can be imported everywhere.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_int, c_uint16, c_uint32, c_uint64, c_void_p, c_wchar_p
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from uphold.errors import HostFailure
from uphold.host.environments import NOT_EXECUTABLE, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CODES: Final = {
    2: NOT_FOUND,
    3: NOT_FOUND,
    5: NOT_EXECUTABLE,
    8: "UPH_START_NO_RESOURCES",
    193: NOT_EXECUTABLE,
    267: "UPH_START_NO_DIRECTORY",
    1455: "UPH_START_NO_RESOURCES",
}
"""What the errors of CreateProcess mean in our words."""
KILLED: Final = 0xE0000009
"""The exit code of what we ended: an error of an application's own (NTSTATUS), number 9."""


class Kernel(Protocol):
    """The library kernel32, or what stands in for it: its functions, by their own names.

    Besides, `get_osfhandle` of the C library, and a `GetLastError` that can be relied on.
    """

    def __getattr__(self, name: str, /) -> Callable[..., Any]: ...


class Startup(ctypes.Structure):
    """STARTUPINFOW: what a new process begins with."""

    _fields_ = (
        ("size", c_uint32),
        ("names", c_void_p * 3),
        ("window", c_uint32 * 7),
        ("flags", c_uint32),
        ("show", c_uint16 * 2),
        ("reserved", c_void_p),
        ("handles", c_void_p * 3),
    )


class Born(ctypes.Structure):
    """PROCESS_INFORMATION: what was created."""

    _fields_ = (("process", c_void_p), ("thread", c_void_p), ("pid", c_uint32), ("tid", c_uint32))


_HANDLES: Final = (c_void_p, c_void_p)
PROTOTYPES: Final[Mapping[str, tuple[Any, ...]]] = {
    "AssignProcessToJobObject": (c_int, *_HANDLES),
    "CloseHandle": (c_int, c_void_p),
    "CreateJobObjectW": (c_void_p, c_void_p, c_wchar_p),
    "CreateProcessW": (
        *(c_int, c_wchar_p, c_wchar_p, *_HANDLES, c_int, c_uint32, c_wchar_p, c_wchar_p),
        *(POINTER(Startup), POINTER(Born)),
    ),
    "GenerateConsoleCtrlEvent": (c_int, c_uint32, c_uint32),
    "GetExitCodeProcess": (c_int, c_void_p, POINTER(c_uint32)),
    "GetProcessTimes": (c_int, c_void_p, *[POINTER(c_uint64)] * 4),
    "MoveFileExW": (c_int, c_wchar_p, c_wchar_p, c_uint32),
    "OpenProcess": (c_void_p, c_uint32, c_int, c_uint32),
    "QueryInformationJobObject": (c_int, c_void_p, c_int, c_void_p, c_uint32, c_void_p),
    "ReplaceFileW": (c_int, c_wchar_p, c_wchar_p, c_wchar_p, c_uint32, *_HANDLES),
    "ResumeThread": (c_uint32, c_void_p),
    "SetHandleInformation": (c_int, c_void_p, c_uint32, c_uint32),
    "TerminateJobObject": (c_int, c_void_p, c_uint32),
    "TerminateProcess": (c_int, c_void_p, c_uint32),
    "WaitForSingleObject": (c_uint32, c_void_p, c_uint32),
}
"""What each function gives and takes; unsaid, ctypes would cut handles to 32 bits."""


@cache
def system_kernel() -> Kernel:
    """Load the library of this machine; HostFailure where there is none."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists there only

        library: Any = ctypes.WinDLL("kernel32", use_last_error=True)
        for name, (result, *arguments) in PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        library.GetLastError, library.get_osfhandle = ctypes.get_last_error, msvcrt.get_osfhandle
        kernel: Kernel = library
        return kernel
    raise HostFailure("this is not Windows: there is no kernel32 to load.")


def refused(what: str, error: int, code: str | None = None) -> HostFailure:
    """Say what Windows would not do, and the number it gave as the reason."""
    return HostFailure(f"Windows refused {what}: error {error} (net helpmsg {error}).", code=code)


def not_started(path: str, folder: str, error: int) -> HostFailure:
    """Say that a program was not started, with the code its reason has everywhere."""
    code = _CODES.get(error, "UPH_START_FAILED")
    return refused(f"to start '{path}' in the folder {folder}", error, code)
