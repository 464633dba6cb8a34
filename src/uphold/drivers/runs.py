"""What the process driver knows about one slot while it, or something of it, lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uphold.core.specs import WorkerSpec
    from uphold.core.statuses import Exit, Identity
    from uphold.host.processes import Process
    from uphold.host.processes.groups import Group

_REMEMBERED: Final = 16
"""Earlier runs whose end was proved by a free lock only; a verified stop looks for them too."""


class Run:
    """One run of a slot: its main process, and how far its end has come."""

    __slots__ = (
        "adopted",
        "descended",
        "emptying",
        "ended_at",
        "exit",
        "exit_told",
        "forced",
        "generation",
        "group",
        "helper",
        "main",
        "nonces",
        "process",
        "proof",
        "slot",
        "spec",
        "stopping",
    )

    def __init__(  # noqa: PLR0913 - what a run is
        self,
        slot: str,
        generation: int,
        spec: WorkerSpec,
        *,
        nonces: tuple[str, ...],
        process: Process | None = None,
        adopted: bool = False,
    ) -> None:
        self.slot = slot
        self.generation = generation
        self.spec = spec
        self.nonces = nonces[:_REMEMBERED]
        """Its own first, then those of earlier runs that no full look has cleared."""
        self.process = process
        """The main process while it is held."""
        self.main: Identity | None = None if process is None else process.identity
        """Whom the session belongs to, as long as that is fresh knowledge."""
        self.adopted = adopted
        self.group: Group | None = None
        """The control group that all of it is in, if it asked for one."""
        self.descended = False
        """Everything that can carry its nonces was started by us or descends from that."""
        self.ended_at = 0.0
        """Instant of the monotonic clock at which its main process had been reaped."""
        self.stopping = False
        """Somebody asked for its end: it counts as ended only when verified empty."""
        self.forced = False
        """Its time is over: SIGKILL to everything, and nobody is waited for."""
        self.helper: Process | None = None
        """Its stop command while that runs: a process of the slot, which may tidy up."""
        self.exit: Exit | None = None
        self.exit_told = False
        self.emptying = False
        """Somebody ends what is left of the slot, and reports when nothing is."""
        self.proof = ""
        """How it was last known that nothing is left of it."""

    @property
    def over(self) -> bool:
        """Tell whether nothing of it is held or being ended."""
        return self.process is None and not self.emptying
