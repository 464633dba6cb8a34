"""A prober without a network: answers as it is told to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from uphold.core.notices import MISSING, Beat, Refused
from uphold.core.vitals import Answer, Outcome

if TYPE_CHECKING:
    from uphold.core.specs import Probe
    from uphold.ports.probes import Subject


class FakeProber:
    """Satisfies `uphold.ports.probes.Prober`; `asked` keeps every question."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, str]] = []
        self.answers: dict[str, Answer] = defaultdict(lambda: Answer(Outcome.PASSED, "well"))
        self.beats: dict[str, Beat | Refused] = {}
        self.mistakes: dict[str, Exception] = {}
        """What is raised instead of an answer, by slot: no prober should, and some day one does."""
        self._hanging: dict[str, asyncio.Event] = {}
        self.open: dict[str, int] = defaultdict(int)
        """Questions under way, by slot."""

    def hang(self, slot: str) -> None:
        """Let questions to a slot hang until released."""
        self._hanging[slot] = asyncio.Event()

    def release(self, slot: str) -> None:
        """Let hanging questions be answered."""
        self._hanging.pop(slot).set()

    async def ask(self, probe: Probe, subject: Subject) -> Answer:
        """Answer as told."""
        self.asked.append((subject.slot, subject.generation, probe.way))
        self.open[subject.slot] += 1
        try:
            if subject.slot in self._hanging:
                await self._hanging[subject.slot].wait()
        finally:
            self.open[subject.slot] -= 1
        self._make_mistake(subject.slot)
        return self.answers[subject.slot]

    async def read_beat(self, path: str, subject: Subject) -> Beat | Refused:
        """Give the beat that was put there."""
        self._make_mistake(subject.slot)
        return self.beats.get(subject.slot, Refused(MISSING, f"there is no {path}"))

    def _make_mistake(self, slot: str) -> None:
        if slot in self.mistakes:
            raise self.mistakes[slot]
