"""A small Wing-Gong checker: can operations that overlapped have happened one after the other?

An operation took effect at some moment between its invocation and its return. A history is
linearizable when such moments can be chosen so that a sequential specification allows the order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What somebody did, and what came back."""

    invoked: float
    returned: float
    text: str
    """For people who look at a history that cannot be explained."""
    effect: Callable[[Any], Any]
    """The state after it, from the state before; None when that answer was impossible then."""
    looks: bool = False
    """It only looks: wherever it is possible, it changes nothing that others could notice."""
    after: int | None = None
    """The place in the history of an operation of the same caller that came before this one."""


def unexplained(history: Sequence[Operation], start: Hashable) -> str | None:
    """Find an order that explains a history: None; or tell how far the best attempt got."""
    order = sorted(range(len(history)), key=lambda number: history[number].invoked)
    everything = (1 << len(history)) - 1
    pending: list[tuple[int, Hashable, int]] = [(0, start, 0)]
    tried: set[tuple[int, Hashable]] = set()
    best, stuck = -1, (0, start, 0)
    while pending:
        done, state, low = pending.pop()
        if done == everything:
            return None
        while done >> order[low] & 1:
            low += 1
        if done.bit_count() > best:
            best, stuck = done.bit_count(), (done, state, low)
        steps = []
        for number in _next_ones(history, order, done, low):
            state_after = history[number].effect(state)
            if history[number].looks and state_after == state:
                # It fits here and changes nothing: no other place can be better.
                steps = [(done | 1 << number, state, low)]
                break
            if state_after is not None:
                steps.append((done | 1 << number, state_after, low))
        for step in steps:
            if step[:2] not in tried:
                tried.add(step[:2])
                pending.append(step)
    done, state, low = stuck
    ahead = [history[number].text for number in _next_ones(history, order, done, low)]
    return f"after {best} of {len(history)} operations, in {state}, none of {ahead} can be next"


def _next_ones(
    history: Sequence[Operation], order: Sequence[int], done: int, low: int
) -> Iterator[int]:
    """Name the operations that nobody else must come before."""
    first_return = float("inf")
    open_ones = []
    for number in order[low:]:
        if done >> number & 1:
            continue
        if history[number].invoked > first_return:
            break
        first_return = min(first_return, history[number].returned)
        open_ones.append(number)
    for number in open_ones:
        after = history[number].after
        if history[number].invoked <= first_return and (after is None or done >> after & 1):
            yield number
