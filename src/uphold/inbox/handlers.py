"""The closed table of what a flag can ask for: names, order of work, and parameters.

A row says nothing of what is done; that is the business of whoever takes the flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

FEWEST_COMMITS: Final = 1
MOST_COMMITS: Final = 10

Check = Callable[[object], str]
"""Looks at the value of one parameter: an empty text if it is right, else what it must be."""


class Urgency(IntEnum):
    """The classes of handlers, in the order in which they are worked through."""

    EMERGENCY = 0
    """Kept free: whatever is one day put here comes before everything else."""
    CODE = 1
    OPERATIONAL = 2
    DIAGNOSTICS = 3


class Handler(NamedTuple):
    """One thing that a flag can ask for."""

    name: str
    urgency: Urgency
    number: int
    """Its place among all others; smaller comes first."""
    aliases: tuple[str, ...] = ()
    params: Mapping[str, Check] = MappingProxyType({})
    """What it takes, all of it optional; anything else is refused."""


def _commits(value: object) -> str:
    # A bool is an int to Python, but nobody rolls back True commits.
    if type(value) is int and FEWEST_COMMITS <= value <= MOST_COMMITS:
        return ""
    return f"a whole number from {FEWEST_COMMITS} to {MOST_COMMITS}"


HANDLERS: Final = (
    Handler("update_code", Urgency.CODE, 10),
    Handler("update_code_deps", Urgency.CODE, 11),
    Handler("rollback_code", Urgency.CODE, 12, params=MappingProxyType({"commits_back": _commits})),
    Handler("pause_watcher", Urgency.OPERATIONAL, 20, aliases=("pause",)),
    Handler("resume_watcher", Urgency.OPERATIONAL, 21, aliases=("resume",)),
    Handler("restart_watcher", Urgency.OPERATIONAL, 22, aliases=("restart",)),
    Handler("diagnostics", Urgency.DIAGNOSTICS, 30),
    Handler("verify_db", Urgency.DIAGNOSTICS, 31),
)
"""What uphold itself knows; handlers of others are rows added to these."""


def find_handler(name: str, table: tuple[Handler, ...] = HANDLERS) -> Handler | None:
    """Find a handler by its name or another name of it."""
    for handler in table:
        if name == handler.name or name in handler.aliases:
            return handler
    return None


def split_action(text: str, table: tuple[Handler, ...] = HANDLERS) -> tuple[Handler, str] | None:
    """Split `update_code_deps_web` into the action and what follows; the longest action wins."""
    best: tuple[Handler, str] | None = None
    longest = 0
    for handler in table:
        for word in (handler.name, *handler.aliases):
            if len(word) > longest and (text == word or text.startswith(f"{word}_")):
                best, longest = (handler, text[len(word) + 1 :]), len(word)
    return best
