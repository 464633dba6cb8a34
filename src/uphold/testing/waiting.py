"""Waiting for what must become true, with a deadline instead of a sleep."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from uphold.host.clock import MachineClock

if TYPE_CHECKING:
    from collections.abc import Callable

Value = TypeVar("Value")


def until(look: Callable[[], Value], within: float = 20.0, what: str = "it") -> Value:
    """Look until something true is seen, and give that; AssertionError if it never is."""
    clock = MachineClock()
    limit = clock.now().mono + within
    while not (seen := look()):
        assert clock.now().mono < limit, f"{what} did not become true within {within} s"
        time.sleep(0.005)
    return seen


async def eventually(look: Callable[[], Value], within: float = 20.0, what: str = "it") -> Value:
    """Do the same while the loop goes on."""
    clock = MachineClock()
    limit = clock.now().mono + within
    while not (seen := look()):
        assert clock.now().mono < limit, f"{what} did not become true within {within} s"
        await clock.sleep(0.005)
    return seen
