"""The next thing to do to the world. Small on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from uphold.core.specs import NEVER, Instant, WorkerSpec
from uphold.core.statuses import Due


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start one slot under these terms."""

    slot: str
    spec: WorkerSpec
    why: str
    automatic: bool = False
    due: Due | None = None
    """The run after this one, if it is on a schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Ask one slot to end."""

    slot: str
    why: str
    due: Due | None = None
    """The run that follows as soon as this one has ended."""
    forgives: bool = True
    """Its failures no longer count; they do if only the supervisor ends (P8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """End one slot as a failure, with a signal that leaves a trace."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End the whole tree of one slot now."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Note that a wanted slot waits for something."""

    slot: str
    why: str
    afresh: bool = False
    """Somebody wants it in spite of its failures: they are forgiven while it waits."""
    due: Due | None = None
    """Its next run, if that is what it waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Stop trying."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Note that a slot without a process is no longer wanted."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Drop a slot that is neither declared nor alive."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pardon:
    """Clear the failures of a slot that somebody reset."""

    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amend:
    """Let a slot go on under terms that need no restart, or rest under terms that want none."""

    slot: str
    spec: WorkerSpec
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Appoint:
    """Note when a slot that runs or has failed is to run next."""

    slot: str
    why: str
    due: Due


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Note that a run does not take place, and when the next one does."""

    slot: str
    why: str
    due: Due


Action = (
    Start | Stop | Abort | Kill | Wait | GiveUp | Rest | Forget | Pardon | Amend | Appoint | Skip
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now, and when to look again if nothing happens."""

    at: Instant
    actions: tuple[Action, ...] = ()
    wakes: tuple[tuple[str, Instant], ...] = ()
    """For each worker that waits for time to pass: when."""

    @property
    def wake_at(self) -> Instant:
        """When to look again at the latest."""
        return min((at for _, at in self.wakes), default=NEVER)
