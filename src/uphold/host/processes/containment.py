"""How surely the processes of a slot are found and ended on this machine, in words for people."""

from __future__ import annotations

from typing import NamedTuple


class Containment(NamedTuple):
    """What holds here."""

    level: str
    """A: the kernel keeps the tree together; B: it is found by marks; C: by its session only."""
    means: str
    sure_identity: bool
    """A process number that is used again can never be mistaken."""
    exits_of_adopted: bool
    """The exit status of a process somebody else started can be read."""
    gap: str
    """What could escape."""


class Ending(NamedTuple):
    """How a process ended; neither: nobody could see it."""

    code: int | None = None
    signal: int | None = None
