"""What everybody may read: one frozen value per version of the world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from uphold.core.absorbing import Observed
from uphold.core.declaring import Declaration, Entry
from uphold.core.health import supervisor_health
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import Admin, Fault, Health, SlotStatus, State, SupervisorStatus
from uphold.core.vitals import Vital


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """One worker as people and programs see it: what is wanted, and what is."""

    name: str
    config: WorkerSpec
    enabled: bool
    quarantined: bool
    connected: bool
    connection_info: tuple[SlotStatus, ...]
    last_seen: float
    tool_count: int
    desired_version: int
    last_reconcile: float
    reconcile_count: int


class Workers(Mapping[str, WorkerRecord]):
    """The workers of a snapshot; a record is made when somebody looks at it."""

    __slots__ = ("_snapshot",)

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __getitem__(self, name: str) -> WorkerRecord:
        return self._snapshot.record(self._snapshot.declaration.workers[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._snapshot.declaration.workers)

    def __len__(self) -> int:
        return len(self._snapshot.declaration.workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that is wanted and known at one version. Never changes once obtained."""

    version: int = 0
    declaration: Declaration = field(default_factory=Declaration)
    observed: Observed = field(default_factory=Observed)
    vitals: Mapping[str, Vital] = field(default_factory=lambda: MappingProxyType({}))
    """The latest signs of life of slots that give any."""
    status: SupervisorStatus = SupervisorStatus.SPAWNING
    last_reconcile: float = 0.0
    reconcile_count: int = 0
    turned: int = 0
    """Version of the declaration that a whole turn has last gone by."""
    last_error: Fault | None = None

    @property
    def workers(self) -> Workers:
        """The workers by name."""
        return Workers(self)

    @property
    def health(self) -> Health:
        """How the whole does."""
        return supervisor_health(self.declaration, self.observed)

    @property
    def starting(self) -> bool:
        """Tell whether any start has been begun and not come to something."""
        return any(status.state is State.STARTING for status in self.observed.slots.values())

    def record(self, entry: Entry) -> WorkerRecord:
        """Put together what is wanted and what is known of one worker."""
        name = entry.spec.name
        statuses = tuple(self.observed.slots[slot] for slot in self.observed.of(name))
        return WorkerRecord(
            name=name,
            config=entry.spec,
            enabled=entry.admin is not Admin.DISABLED,
            quarantined=entry.admin is Admin.QUARANTINED,
            connected=any(status.state is State.RUNNING for status in statuses),
            connection_info=statuses,
            last_seen=max((status.proved_wall for status in statuses), default=0.0),
            tool_count=0,
            desired_version=entry.desired_version,
            last_reconcile=self.last_reconcile,
            reconcile_count=self.reconcile_count,
        )
