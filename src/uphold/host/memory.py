"""How memory is kept: by the C library in one heap, and no more of it than is used.

Starting a thousand workers at once takes memory that is not needed again. Without a word the
C library would keep it, and a further heap for every thread. Where it is not the GNU one,
nothing is said and nothing is lost. Python in turn need not search for cycles in what stays.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_HEAPS: Final = -8
_LEAST_MAPPED: Final = -3
_LARGE: Final = 64 * 1024
"""Buffers of this size have memory of their own, which goes back when they do."""


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
