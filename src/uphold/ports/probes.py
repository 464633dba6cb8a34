"""Probers: whoever asks a worker how it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uphold.core.notices import Beat, Refused
    from uphold.core.specs import Probe, WorkerSpec
    from uphold.core.vitals import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Which run is asked about."""

    slot: str
    generation: int
    nonce: str
    spec: WorkerSpec


class Prober(Protocol):
    """Asks one question at a time. What it cannot find out is an answer too, never an exception."""

    async def ask(self, probe: Probe, subject: Subject) -> Answer:
        """Ask; the answer comes within the probe's timeout, whatever the other side does."""
        ...

    async def read_beat(self, path: str, subject: Subject) -> Beat | Refused:
        """Read a file of beats."""
        ...
