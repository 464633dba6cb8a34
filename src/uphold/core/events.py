"""Facts: what has happened, in the past tense, frozen, without live objects.

Slot facts carry what `absorb` needs. Everything else that people may want to query is a
`Note`. Both become the same envelope on the wire: `TYPE` is the public name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import Due, Exit, Fault, Health, Identity, State

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One reading of both clocks: `mono` decides, `wall` is printed."""

    mono: Instant
    wall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBegun:
    """A start is about to touch the world (intent before effect)."""

    TYPE: ClassVar[str] = "worker.starting"
    slot: str
    generation: int
    nonce: str
    terms: WorkerSpec
    seen: int
    automatic: bool
    """True when no person asked: it counts as a restart."""
    why: str
    due: Due | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The program runs."""

    TYPE: ClassVar[str] = "worker.connected"
    slot: str
    generation: int
    identity: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFailed:
    """The program could not be started. `hopeless`: trying again cannot help."""

    TYPE: ClassVar[str] = "worker.start_failed"
    slot: str
    generation: int
    fault: Fault
    hopeless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A process started by an earlier supervisor was found alive and is watched again."""

    TYPE: ClassVar[str] = "worker.adopted"
    slot: str
    generation: int
    identity: Identity
    named: bool = False
    """Its run went on under our eyes: the worker itself names another process as its main one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The main process is gone. `left_overs`: something of its slot still holds the lock."""

    TYPE: ClassVar[str] = "worker.exited"
    slot: str
    generation: int
    exit: Exit
    left_overs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBegun:
    """A stop is about to be asked for."""

    TYPE: ClassVar[str] = "worker.stopping"
    slot: str
    generation: int
    why: str
    due: Due | None = None
    """The run that follows as soon as this one has ended."""
    forgives: bool = True
    """Its earlier failures no longer count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillBegun:
    """The grace is over; SIGKILL is about to be sent to the whole tree."""

    TYPE: ClassVar[str] = "worker.killing"
    slot: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Nothing of the slot exists any more. `proof` names how that is known."""

    TYPE: ClassVar[str] = "worker.disconnected"
    slot: str
    generation: int
    proof: str
    exit: Exit | None = None
    """The exit, when it is only learned together with the end of the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFailed:
    """Something of the slot survived SIGKILL; no replacement is started."""

    TYPE: ClassVar[str] = "worker.stop_failed"
    slot: str
    generation: int
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBegun:
    """It is wanted, and something else must come first."""

    TYPE: ClassVar[str] = "worker.waiting"
    slot: str
    why: str
    afresh: bool = False
    """Its earlier failures no longer count."""
    due: Due | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """It failed too often; only a person, a policy or a changed spec starts it again."""

    TYPE: ClassVar[str] = "worker.failed"
    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rested:
    """It is no longer wanted and had no process."""

    TYPE: ClassVar[str] = "worker.rested"
    slot: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The slot is no longer declared and nothing of it is left; its row goes."""

    TYPE: ClassVar[str] = "worker.forgotten"
    slot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pardoned:
    """A person cleared its failures."""

    TYPE: ClassVar[str] = "worker.reset"
    slot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Amended:
    """Its terms changed in a way that needs no restart; it goes on under the new ones.

    One in back-off, which they want no more, has come to its end.
    """

    TYPE: ClassVar[str] = "worker.amended"
    slot: str
    terms: WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """It says, or has shown, that it is up."""

    TYPE: ClassVar[str] = "worker.ready"
    slot: str
    generation: int
    why: str = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sickened:
    """It is alive and does not do well; it goes on."""

    TYPE: ClassVar[str] = "worker.degraded"
    slot: str
    generation: int
    health: Health
    why: str
    code: str = ""
    """What the worker itself calls its trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemned:
    """It does so badly that it is to be ended, as a failure."""

    TYPE: ClassVar[str] = "worker.unhealthy"
    slot: str
    generation: int
    code: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """It does well again."""

    TYPE: ClassVar[str] = "worker.recovered"
    slot: str
    generation: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """It asks for more time to end."""

    TYPE: ClassVar[str] = "worker.extended"
    slot: str
    generation: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortBegun:
    """SIGABRT is about to be sent: it is ended as a failure, with a trace if it can."""

    TYPE: ClassVar[str] = "worker.aborting"
    slot: str
    generation: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Appointed:
    """The next run of a scheduled slot was decided."""

    TYPE: ClassVar[str] = "worker.scheduled"
    slot: str
    due: Due
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A run that was due did not take place."""

    TYPE: ClassVar[str] = "worker.skipped"
    slot: str
    due: Due
    """The next one."""
    why: str


SlotFact = (
    StartBegun
    | Started
    | StartFailed
    | Adopted
    | Exited
    | StopBegun
    | KillBegun
    | Gone
    | StopFailed
    | WaitBegun
    | GaveUp
    | Rested
    | Forgotten
    | Pardoned
    | Amended
    | Ready
    | Sickened
    | Condemned
    | Recovered
    | AbortBegun
    | Extended
    | Appointed
    | Skipped
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """A slot went from one state to another."""

    TYPE: ClassVar[str] = "worker.state_changed"
    slot: str
    before: State
    after: State
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Any other fact that people may want to query: orders, configuration, the supervisor."""

    type: str
    entity_type: str
    entity_id: str
    payload: Mapping[str, object] = field(default_factory=dict)
    severity: str = "info"


Event = SlotFact | StateChanged | Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event with its place in history: what journal, bus and streams carry."""

    seq: int
    id: str
    at: float
    event: Event
    cause: str | None = None
    """The order it follows from, if any."""
