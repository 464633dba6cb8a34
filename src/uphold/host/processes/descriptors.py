"""How many files this process may have open: as many as its slots need, and not many more.

A program begins with our limit, and has the one we were started with a moment later: no spawn can
set it. What it sees in that moment, and what its first children keep, is therefore never more than
we need ourselves. Where anything is allowed, a program that closes all descriptors up to its limit
would be at it for minutes.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import Final

_FOR_ITSELF: Final = 400
"""Files, sockets and clients of a supervisor, and what is open while some workers start."""
_FOR_EACH: Final = 3
"""For each slot: its process, and its output once or twice."""


def make_room(slots: int) -> None:
    """See to it that so many slots can be held, as far as the machine allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FOR_ITSELF + _FOR_EACH * slots
    if soft == resource.RLIM_INFINITY or wanted <= soft:
        return
    plenty = 1 << wanted.bit_length()  # so that growing by one more is not asked for each time
    allowed = plenty if hard == resource.RLIM_INFINITY else min(hard, plenty)
    with suppress(OSError, ValueError):  # some systems have a lower ceiling than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
