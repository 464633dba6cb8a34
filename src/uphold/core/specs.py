"""What people declare: the terms of one worker, whole and frozen.

Durations are seconds, sizes are bytes, paths are absolute. Reading files and naming
mistakes is the business of `uphold.config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

Instant = NewType("Instant", float)
"""A reading of the monotonic clock, in seconds. Wall time is only ever printed."""

EARLIEST = Instant(0.0)
NEVER = Instant(float("inf"))


class Kind(StrEnum):
    """What sort of thing a worker is."""

    PROCESS = "process"
    PYTHON = "python"
    MCP = "mcp"
    REMOTE = "remote"


class RestartPolicy(StrEnum):
    """When a worker that ended is started again without anybody asking."""

    NO = "no"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


class Need(StrEnum):
    """What a worker may wait for in another one."""

    STARTED = "started"
    HEALTHY = "healthy"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before the next automatic start."""

    first: float = 0.0
    base: float = 1.0
    max: float = 300.0
    jitter: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """How a worker is asked to end, and how long it may take before it is made to."""

    signal: str = "TERM"
    grace: float = 30.0
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits a worker is born with; None leaves what uphold itself was started with."""

    nofile: int | None = None
    nice: int | None = None
    processes: int | None = None
    """How many processes and threads it may be at a time; refused where none can count them."""
    memory: int | None = None
    """Bytes that all its processes may use; kept by a control group, or watched."""
    cpu: float | None = None
    """Processors it may keep busy; kept by a control group, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """How somebody is asked whether they are ready, or alive."""

    way: str
    """http, tcp, exec, log, notify or fd."""
    target: str = ""
    """The address for http and tcp, the pattern for log, the number for fd."""
    command: tuple[str, ...] = ()
    every: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3
    initial_delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """How a worker shows that it does not only exist but works."""

    file: str = ""
    """Where it writes its beats; without one they come through the notify socket."""
    stale_after: float = 300.0
    on_stale: str = "degrade"
    """What a missing beat leads to: `degrade`, or `restart`."""
    stall_after: float | None = None
    """How long its progress may stand still; None: as long as a beat may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Where a worker's output goes and how much of it is kept."""

    mode: str = "pump"
    max_size: int = 10_000_000
    keep: int = 5
    compress: bool = True
    split: bool = False
    overflow: str = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When a worker runs that does not run all the time: `every` so often, or by `cron`."""

    every: float | None = None
    """Seconds from one start to the next, on the monotonic clock."""
    cron: str | None = None
    """Five fields, as in a crontab: wall time in `timezone`."""
    timezone: str = "UTC"
    overlap: str = "skip"
    """What becomes of a run that is due while the last one still goes on: skip, queue, kill."""
    at_load: bool = False
    """Whether it also runs when it is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec:
    """The declared terms for one worker. Equal specs mean there is nothing to do."""

    name: str
    command: tuple[str, ...] = ()
    kind: Kind = Kind.PROCESS
    python: str | None = None
    """For kind `python`: the class that is hosted, as `package.module:Class`."""
    shell: bool = False
    working_dir: str = "/"
    user: str | None = None
    group: str | None = None
    umask: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    """Declared variables (env_file, then environment), sorted by name."""
    pass_environment: tuple[str, ...] = ()
    """Names (or `PREFIX_*`) handed on from the supervisor's own environment."""
    clear_environment: bool = False
    enabled: bool = True
    quarantined: bool = False
    autostart: bool = True
    replicas: int = 1
    team: str | None = None
    essential: bool = False
    restart: RestartPolicy = RestartPolicy.ALWAYS
    backoff: Backoff = Backoff()
    stable_after: float = 60.0
    max_restarts: int | None = 10
    """None: never given up (companions)."""
    success_exit_codes: tuple[int, ...] = (0,)
    stop: StopRule = StopRule()
    depends_on: tuple[tuple[str, Need], ...] = ()
    ready: Probe | None = None
    """Who says that it is up; None: its process is."""
    live: Probe | None = None
    heartbeat: Heartbeat | None = None
    limits: Limits = Limits()
    containment: str = "marks"
    """What keeps its processes together: `marks`, or a control `group` of its own."""
    logs: Logs = Logs()
    schedule: Schedule | None = None
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def remote(self) -> bool:
        """Tell whether it runs elsewhere, and is known by its heartbeats alone."""
        return self.kind is Kind.REMOTE

    @property
    def ready_way(self) -> str:
        """How it is found out that it is up; empty if its process is enough."""
        return "" if self.ready is None else self.ready.way


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSpec:
    """The declared terms of the supervisor itself."""

    name: str
    reconcile_every: float = 30.0
    heartbeat_every: float = 30.0
    on_exit: str = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """The shared database that gets a copy of the journal."""

    url: str
    """With its password: shown nowhere, handed to the recorder alone."""
    critical_tables: tuple[str, ...] = ("jobs_t", "workers_t", "audit_log_t", "events_t")
    """Tables whose rows `verify-db` counts."""
    spool: int = 256 * 2**20
    """Bytes of events that wait while the database is away; the audit waits without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSpec:
    """How much of the past the journal keeps. Times are seconds, sizes bytes."""

    events_for: float = 30 * 86400.0
    events_at_most: int = 100_000
    jobs_for: float = 90 * 86400.0
    audit_for: float = 730 * 86400.0
    max_size: int = 256 * 2**20
    """Size of the file above which older events go, and after them older jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where things lie on a share, relative to its top."""

    state: str = "00_STATE"
    logs: str = "05_LOGS"
    inbox: str = "Worker_Inbox"
    outbox: str = "Worker_Outbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderSpec:
    """Somebody whose signed flags are believed, for the handlers they may use."""

    name: str
    key: str
    """Shared with the sender; shown nowhere."""
    may: tuple[str, ...] | None = None
    """None: every handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxSpec:
    """A shared folder through which people without any other way in give orders."""

    share: str
    poll_every: float = 5.0
    require_signature: bool = False
    pattern: str = "supervisor_*.flag"
    layout: Layout = Layout()
    paths: tuple[str, ...] = (
        "00_STATE",
        "01_RAW",
        "02_WORK",
        "03_REFERENCE",
        "04_PUBLISH",
        "05_LOGS",
    )
    owners: tuple[str, ...] = ()
    """Whose files are obeyed besides root's and the supervisor's own; empty: anybody's."""
    senders: tuple[SenderSpec, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What an update must come to before it counts."""

    healthy_for: float = 30.0
    rollback: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploySpec:
    """The checkout that some workers run from, and how it is brought up to date."""

    repo: str
    remote: str = "origin"
    branch: str = "main"
    requirements: str = "requirements.txt"
    workers: tuple[str, ...] = ()
    gate: Gate = Gate()
    pip: str = "usual"
    """`strict` installs only what is pinned by its hash, and never builds anything."""
    python: str = "python3"
    """The interpreter whose packages are installed."""
    worker_log: str = "05_LOGS/watcher.log"
    """The log on the share whose end goes into diagnostics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One configuration file, read, resolved and found right."""

    supervisor: SupervisorSpec
    workers: tuple[WorkerSpec, ...]
    source: str = ""
    """The file it came from."""
    secrets: tuple[str, ...] = ()
    """Values that must never be shown; used by redaction only."""
    left_out: tuple[str, ...] = ()
    """Names in the file that are no workers now, as their `when` says so."""
    store: StoreSpec | None = None
    journal: JournalSpec = JournalSpec()
    inbox: InboxSpec | None = None
    deploy: DeploySpec | None = None
