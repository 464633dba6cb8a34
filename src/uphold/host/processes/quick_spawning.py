"""`posix_spawn` of the C library, called directly.

Python's own holds the interpreter until the new program runs, and cannot choose its folder. Here
the child changes into its folder by itself, and other threads go on meanwhile if that is wished.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SET_SIGNALS_TO_DEFAULT: Final = 0x04
_SET_SIGNAL_MASK: Final = 0x08
_SET_SESSION: Final = 0x80
_SET_GROUP: Final = 0x100
_FLAGS: Final = _SET_SIGNALS_TO_DEFAULT | _SET_SIGNAL_MASK | _SET_SESSION
_ROOM: Final = 512
"""More bytes than glibc and musl need for attributes, file actions or a set of signals."""
_DEFAULTED: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class _Library(NamedTuple):
    patient: ctypes.CDLL
    """Lets the interpreter go while it works."""
    quick: ctypes.PyDLL
    """Keeps it: no waiting to get it back."""
    attributes: Any
    """A session of its own, no signal blocked or ignored; the same for every program."""


def is_available() -> bool:
    """Tell whether the C library here can start a program in a folder."""
    return _library() is not None


def can_enter_groups() -> bool:
    """Tell whether a program can be born in a control group (glibc 2.39 and later)."""
    library = _library()
    return library is not None and hasattr(library.quick, "posix_spawnattr_setcgroup_np")


def spawn_quickly(  # noqa: PLR0913 - what a program is started with
    path: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    folder: str,
    descriptors: Mapping[int, int],
    alone: bool,
    group: int | None = None,
) -> int:
    """Start a program in a session of its own and give its number; OSError if that fails.

    `descriptors` says which of ours becomes which of its own; 0 is nothing to read. `alone` says
    that nobody else of this process has anything to do meanwhile. `group` is the folder of the
    control group it is born in.
    """
    library = _library()
    assert library is not None, "is_available() comes first"
    call = library.quick if alone else library.patient
    actions = ctypes.create_string_buffer(_ROOM)
    build = library.quick
    build.posix_spawn_file_actions_init(actions)
    try:
        build.posix_spawn_file_actions_addchdir_np(actions, os.fsencode(folder))
        build.posix_spawn_file_actions_addopen(actions, 0, b"/dev/null", os.O_RDONLY, 0)
        for target, source in descriptors.items():
            build.posix_spawn_file_actions_adddup2(actions, source, target)
        pid = ctypes.c_int()
        pairs = [os.fsencode(f"{name}={value}") for name, value in environment.items()]
        failure = call.posix_spawn(
            ctypes.byref(pid),
            os.fsencode(path),
            actions,
            library.attributes if group is None else _entering(library, group),
            _strings([os.fsencode(word) for word in argv]),
            _strings(pairs),
        )
    finally:
        build.posix_spawn_file_actions_destroy(actions)
    if failure:
        where = path if os.access(folder, os.X_OK) and os.path.isdir(folder) else folder  # noqa: PTH112
        raise OSError(failure, os.strerror(failure), where)
    return pid.value


@cache
def _library() -> _Library | None:
    if sys.platform != "linux":
        return None
    quick = ctypes.PyDLL(None)
    if not hasattr(quick, "posix_spawn_file_actions_addchdir_np"):
        return None
    signals, nothing, attributes = (ctypes.create_string_buffer(_ROOM) for _ in range(3))
    quick.sigemptyset(signals)
    quick.sigemptyset(nothing)
    for number in _DEFAULTED:
        quick.sigaddset(signals, int(number))
    quick.posix_spawnattr_init(attributes)
    quick.posix_spawnattr_setsigdefault(attributes, signals)
    quick.posix_spawnattr_setsigmask(attributes, nothing)
    quick.posix_spawnattr_setflags(attributes, ctypes.c_short(_FLAGS))
    return _Library(ctypes.CDLL(None), quick, attributes)


def _entering(library: _Library, group: int) -> Any:
    """Copy the attributes, which are plain memory, for a program with a group of its own."""
    attributes = ctypes.create_string_buffer(library.attributes.raw, _ROOM)
    library.quick.posix_spawnattr_setcgroup_np(attributes, group)
    library.quick.posix_spawnattr_setflags(attributes, ctypes.c_short(_FLAGS | _SET_GROUP))
    return attributes


def _strings(words: list[bytes]) -> Any:
    if any(b"\0" in word for word in words):
        raise ValueError("embedded null byte")
    return (ctypes.c_char_p * (len(words) + 1))(*words, None)
