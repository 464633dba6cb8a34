"""What is known: the three axes of a worker's state, and the status of one slot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from uphold.core.specs import EARLIEST, Instant, WorkerSpec


class State(StrEnum):
    """Where a slot stands."""

    STOPPED = "stopped"
    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    BACKOFF = "backoff"
    EXITED = "exited"
    FAILED = "failed"


class Health(StrEnum):
    """What is known about how well it does."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class Admin(StrEnum):
    """What people allow it to do."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    PAUSED = "paused"
    QUARANTINED = "quarantined"


class Condition(StrEnum):
    """The one-word summary of a worker for people who want only that (ruling 20)."""

    RUNNING = "running"
    STOPPED = "stopped"
    ERROR = "error"


class SupervisorStatus(StrEnum):
    """Where the supervisor itself stands."""

    SPAWNING = "spawning"
    ACTIVE = "active"
    PAUSED = "paused"
    FAILED = "failed"
    TERMINATED = "terminated"


UNKILLABLE: Final = "UPH_STOP_UNKILLABLE"
"""The code of a fault that says: something survived SIGKILL."""

DRIVER_FAILED: Final = "UPH_DRIVER_FAILED"
"""The code of a fault that says: what was asked of a driver was not carried out."""

ABORT_GRACE: Final = 10.0
"""The most seconds before SIGKILL for a slot that is aborted: that is no time to tidy up in."""

ALIVE: Final = frozenset({State.STARTING, State.RUNNING, State.STOPPING})
"""States in which a process of the slot may exist."""

RESTING: Final = frozenset(State) - ALIVE

TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    # From rest straight to running: found alive by a supervisor whose books had lost it.
    State.STOPPED: frozenset({State.WAITING, State.STARTING, State.RUNNING}),
    # To exited: what waits is another try, which the changed file no longer wants.
    State.WAITING: frozenset(
        {State.STOPPED, State.STARTING, State.STOPPING, State.EXITED, State.RUNNING}
    ),
    State.STARTING: frozenset(
        {State.RUNNING, State.STOPPING, State.BACKOFF, State.EXITED, State.STOPPED}
    ),
    State.RUNNING: frozenset({State.STOPPING, State.BACKOFF, State.EXITED}),
    # Back to running: a stop that a dying supervisor had begun is begun anew by the next one.
    State.STOPPING: frozenset({State.STOPPED, State.RUNNING, State.BACKOFF, State.EXITED}),
    # To stopping, although its main process has ended: until nothing of it is seen any more.
    # To exited: the file was changed, and its restart policy wants no other run any more.
    State.BACKOFF: frozenset(
        {
            State.STARTING,
            State.STOPPED,
            State.STOPPING,
            State.EXITED,
            State.FAILED,
            State.WAITING,
            State.RUNNING,
        }
    ),
    State.EXITED: frozenset(
        {State.STARTING, State.STOPPED, State.STOPPING, State.WAITING, State.RUNNING}
    ),
    State.FAILED: frozenset(
        {State.STARTING, State.STOPPED, State.STOPPING, State.WAITING, State.RUNNING}
    ),
}
"""The whole table (E-01). Whatever is not here is an error event, never a silent change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which process exactly: enough to tell it from any other that ever has this PID."""

    pid: int
    start_ticks: int
    boot_id: str
    inode: int
    """Inode of its pidfd; 0 where the kernel gives none that tells processes apart."""
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a main process ended. Neither code nor signal: nobody could see it."""

    code: int | None
    signal: int | None
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What went wrong last: a stable code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What probes and heartbeats say about a run, when they say more than that it is alive."""

    health: Health
    why: str
    code: str = ""
    """Not empty: it is to be ended for this, as a failure."""
    named: str = ""
    """The code that the worker itself gives its trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The next run of a scheduled slot, as decided; see `schedules`."""

    at: Instant
    """Decides for `every`; for `cron` what was expected when it was decided."""
    wall: float
    """Decides for `cron`; for `every` only printed."""
    rule: str
    """The schedule it was decided by."""
    text: str
    """When that is, for people."""
    owed: bool = False
    """A run was due while another went on; it follows as soon as that has ended."""
    skipped: int = 0
    """Runs that did not take place."""
    spans: tuple[tuple[float, float], ...] = ()
    """Stretches of the wall clock whose times of `cron` have had their turn; the present one last.

    Each ends with the last time that was served. They differ only where the clock was set.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotStatus:
    """What is known about one slot. Knows no handles and no sockets."""

    slot: str
    state: State = State.STOPPED
    since: Instant = EARLIEST
    """Monotonic time of the last change of state."""
    since_wall: float = 0.0
    generation: int = 0
    """Rises with every start; a report about an older one changes nothing."""
    nonce: str = ""
    identity: Identity | None = None
    terms: WorkerSpec | None = None
    """What it was started under; outlives the entry in the file."""
    seen: int = 0
    """Version of the declaration when the state last changed."""
    started_seen: int = 0
    """Version of the declaration it was last started under."""
    pardoned: int = 0
    """Version of the declaration when it was last reset while it was being aborted."""
    started_at: Instant = EARLIEST
    started_wall: float = 0.0
    proved_wall: float = 0.0
    """Last time its life was proved."""
    failures: int = 0
    """Failed runs since the last stable one; survives restarts of the supervisor."""
    restarts: int = 0
    """Automatic starts ever."""
    stop_asked: bool = False
    """Somebody wanted this end: it is a stop, not a failure."""
    killed: bool = False
    """SIGKILL has been sent during this stop."""
    hopeless: bool = False
    """The last start could never work (no such command, not executable): retrying is pointless."""
    exit: Exit | None = None
    error: Fault | None = None
    finding: Finding | None = None
    """Of this run; None: nobody has found anything."""
    due: Due | None = None
    """Its next run, if it is on a schedule."""
    why: str = ""
    """The reason given with the last change of state."""

    @property
    def aborting(self) -> bool:
        """Tell whether its run is being ended as a failure, and has not ended yet."""
        return self.state is State.STOPPING and not self.stop_asked and self.exit is None

    @property
    def grace(self) -> float:
        """Seconds from being asked to end until SIGKILL."""
        if self.terms is None:
            return 0.0
        grace = self.terms.stop.grace
        return grace if self.stop_asked else min(grace, ABORT_GRACE)
