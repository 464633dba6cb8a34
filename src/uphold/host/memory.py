"""How memory is kept: by the C library in one heap, and no more of it than is used.

Also whether what others have mapped here can be written to, asked in a way that kills nobody.

Starting a thousand workers at once takes memory that is not needed again. Without a word the
C library would keep it, and a further heap for every thread. Where it is not the GNU one,
nothing is said and nothing is lost. Python in turn need not search for cycles in what stays.
"""

from __future__ import annotations

import ctypes
import errno
import gc
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEAPS: Final = -8
_LEAST_MAPPED: Final = -3
_LARGE: Final = 64 * 1024
"""Buffers of this size have memory of their own, which goes back when they do."""
_POPULATE_WRITE: Final = 23  # MADV_POPULATE_WRITE, since Linux 5.14


def shared_maps(path: str) -> tuple[tuple[int, int], ...]:
    """Find where this file is mapped to be changed by all who share it: addresses and sizes."""
    found = []
    with open("/proc/self/maps") as lines:  # noqa: PTH123 - some hundred lines, now and then
        for line in lines:
            if line.endswith(f" {path}\n") and line.split()[1] == "rw-s":
                first, _, last = line.partition(" ")[0].partition("-")
                found.append((int(first, 16), int(last, 16) - int(first, 16)))
    return tuple(found)


def can_be_changed(maps: Iterable[tuple[int, int]]) -> bool:
    """Tell whether a change in these would not end in SIGBUS; True where that cannot be asked."""
    libc = ctypes.CDLL(None, use_errno=True)
    for address, size in maps:
        answer = libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _POPULATE_WRITE)
        if answer and ctypes.get_errno() != errno.EINVAL:
            return False
    return True


def use_one_heap() -> None:
    """Have all threads share a heap; to be said before there are any."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_HEAPS, 1)
        mallopt(_LEAST_MAPPED, _LARGE)


def settle_down() -> None:
    """Give back what starting took, and search what is left for cycles this once, never again.

    A thousand workers are many small things that stay. To search them again and again while all
    of them are being ended would be a tenth of that work.
    """
    gc.collect()
    gc.freeze()
    give_back()


def give_back() -> None:
    """Return what is free to the kernel; takes about a millisecond."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
