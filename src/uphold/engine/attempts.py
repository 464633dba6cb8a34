"""How often a slot may be started in a single pass: once by itself, once more for each order.

A pass ends whatever becomes of its workers, so a start that failed is told of and left to the
next pass. Nothing starts by itself before the orders that wait have been dealt with: an update
must not find that the old code was started a moment before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.core.names import is_companion, worker_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from uphold.core.actions import Start
    from uphold.core.declaring import Declaration


class Attempts:
    """The gate that every start of a pass goes through; closed at first."""

    def __init__(self) -> None:
        self._began = 0
        """Version of the declaration with which the pass began: later orders are of this pass."""
        self._open = False
        self._only: Collection[str] | None = None
        self._tried: dict[str, int] = {}
        """Version of the declaration at the last start of each slot."""

    @property
    def tried(self) -> Collection[str]:
        """The slots that were started in this pass, however that went."""
        return self._tried.keys()

    def begin(self, declaration: Declaration) -> None:
        """Note where the pass begins: what was ordered up to here is no order of this pass."""
        self._began = declaration.version

    def open(self, only: Collection[str] | None = None) -> None:
        """Let slots start by themselves from now on: all, or only those that are named."""
        self._open = True
        self._only = only

    def allow(self, start: Start, declaration: Declaration) -> bool:
        """Tell whether a start may go ahead; one that may is counted."""
        name = worker_of(start.slot)
        if is_companion(name):
            return False  # it serves a supervisor that stays
        last = self._tried.get(start.slot)
        override = declaration.workers[name].override
        since = self._began if last is None else last
        ordered = max(override.kick, override.nudge) > since
        if not ordered and (last is not None or not self._is_open(start.slot)):
            return False
        self._tried[start.slot] = declaration.version
        return True

    def _is_open(self, slot: str) -> bool:
        return self._open and (self._only is None or slot in self._only)
