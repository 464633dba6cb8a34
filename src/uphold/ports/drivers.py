"""Drivers: whoever makes one kind of worker happen.

A driver reports facts; it never retries, decides or stores. All facts go to the
listeners, in the order in which they became known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from uphold.core.specs import StopRule, WorkerSpec
from uphold.core.statuses import Identity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from uphold.core.events import SlotFact

    Listener = Callable[[SlotFact], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start that has been recorded as begun."""

    slot: str
    generation: int
    nonce: str
    spec: WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What the books say about the last run of a slot, for finding it again."""

    slot: str
    generation: int
    nonce: str
    identity: Identity | None
    """None: the intent was recorded, the fact was not."""
    spec: WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a driver sees of a slot right now."""

    slot: str
    generation: int
    connected: bool
    """Its main process (or connection) is alive."""
    info: Mapping[str, object]


class Operations(Protocol):
    """What can be asked of a driver. Outcomes arrive as facts, not as results."""

    def add(self, spec: WorkerSpec) -> None:
        """Learn about a worker. Called again with changed terms that need no restart."""
        ...

    def remove(self, name: str) -> None:
        """Forget a worker that has no live slot. Unknown names are fine."""
        ...

    async def start_all(self, launches: Sequence[Launch], deadline: float | None = None) -> None:
        """Start these slots; each yields Started or StartFailed, whatever happens to the others.

        A stop or kill that comes before a slot has begun withdraws it; Gone answers both.
        """
        ...

    async def start(self, launch: Launch, deadline: float | None = None) -> None:
        """Start one slot."""
        ...

    async def stop(self, slot: str, how: StopRule, *, generation: int = 0) -> None:
        """Ask a slot to end; Exited and Gone follow when true. No process: Gone at once.

        `generation` is the run that is asked about: no answer is about an older one.
        """
        ...

    async def kill(self, slot: str, *, generation: int = 0) -> None:
        """End the whole tree; Gone follows, or StopFailed if something survives.

        `generation` is the run that is asked about: no answer is about an older one.
        """
        ...

    def signal(self, slot: str, signal: str) -> bool:
        """Send a signal to the main process; False if there is none."""
        ...

    async def adopt(self, traces: Sequence[Trace]) -> None:
        """Find these again: each yields Adopted, or Gone (with the exit if it can be known)."""
        ...


class Observation(Protocol):
    """What can be learned from a driver."""

    def state(self, slot: str) -> Sighting:
        """Look at one slot; KeyError for one it never heard of."""
        ...

    def states(self) -> Mapping[str, Sighting]:
        """Look at all slots."""
        ...

    def subscribe(self, listener: Listener) -> None:
        """Send every fact to this listener from now on."""
        ...

    def unsubscribe(self, listener: Listener) -> None:
        """Send it no more."""
        ...

    async def close(self) -> None:
        """Let go of everything held; workers live on."""
        ...


class Driver(Operations, Observation, Protocol):
    """Makes one kind of worker happen."""
