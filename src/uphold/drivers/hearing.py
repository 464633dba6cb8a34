"""Hearing workers: from datagrams to notices of a slot, in order with the facts of its driver.

A notice comes after the start of its run and before its end. What is not believed is counted
by a word; nothing here decides what a notice means.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, Protocol

from uphold.core.events import Adopted, Exited, Gone, Started, StartFailed
from uphold.core.notices import Notice, Refused
from uphold.drivers.senders import Sender
from uphold.wire.notices import decode_notice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.core.events import SlotFact
    from uphold.drivers.senders import Senders

    Deliver = Callable[[str, int, Notice | Refused], None]

_MOST_EARLY: Final = 16
"""Notices of one run that are kept until its start has been told."""


class Source(Protocol):
    """Where datagrams come from."""

    def listen(self, hear: Callable[[bytes, int, int], None]) -> None:
        """Tell (data, pid, uid) of each from now on."""
        ...

    def drain(self) -> bool:
        """Tell those that wait."""
        ...


class Hearing:
    """Delivers (slot, generation, notice) of senders that are who they must be.

    Subscribe `hear` to the driver before anybody who must not see a notice of an ended run.
    """

    def __init__(self, source: Source, senders: Senders) -> None:
        self._source = source
        self._senders = senders
        self._deliver: Deliver | None = None
        self._early: dict[tuple[str, int], list[Notice | Refused]] = {}
        self._refused: Counter[str] = Counter()
        self.heard = 0
        """Notices that were believed and understood."""

    @property
    def refused(self) -> Mapping[str, int]:
        """How many messages were not believed or not understood, by a word for the reason."""
        return dict(self._refused)

    def begin(self, deliver: Deliver) -> None:
        """Deliver from now on, also what has waited; when everything that runs is adopted.

        What a verified worker says wrongly is delivered too, as Refused: it is counted here.
        """
        self._deliver = deliver
        self._source.listen(self._receive)

    def hear(self, fact: SlotFact) -> None:
        """Keep up with which runs there are."""
        match fact:
            case Started():
                self._introduce(fact, child=True)
            case Adopted():
                self._introduce(fact, child=False)
            case Exited() | Gone():
                # Its last words were sent before its end: they are read before that is told.
                if self._senders.knows(fact.slot):  # not again for Gone, right after Exited
                    self._source.drain()
                self._dismiss(fact.slot, fact.generation)
            case StartFailed():
                self._dismiss(fact.slot, fact.generation)
            case _:
                pass

    def _introduce(self, fact: Started | Adopted, *, child: bool) -> None:
        self._senders.introduce(fact.slot, fact.generation, fact.identity, child=child)
        early = self._early.pop((fact.slot, fact.generation), None)
        if early:
            loop = asyncio.get_running_loop()
            for notice in early:  # a moment later: others hear of the start only after us
                loop.call_soon(self._hand_over, fact.slot, fact.generation, notice)

    def _dismiss(self, slot: str, generation: int) -> None:
        self._senders.dismiss(slot, generation)
        self._early.pop((slot, generation), None)

    def _receive(self, data: bytes, pid: int, _uid: int) -> None:
        sender = self._senders.find(pid)
        if not isinstance(sender, Sender):
            self._refused[sender] += 1
            return
        notice = decode_notice(data)
        if isinstance(notice, Refused):
            self._refused[notice.reason] += 1
        elif notice.main_pid is not None and not self._senders.belongs(
            notice.main_pid, sender.slot
        ):
            notice = Refused("foreign-main", "MAINPID names a process of somebody else.")
            self._refused[notice.reason] += 1
        else:
            self.heard += 1
        if sender.introduced:
            self._hand_over(sender.slot, sender.generation, notice)
            return
        early = self._early.setdefault((sender.slot, sender.generation), [])
        if len(early) < _MOST_EARLY:
            early.append(notice)

    def _hand_over(self, slot: str, generation: int, notice: Notice | Refused) -> None:
        if self._deliver is not None:
            self._deliver(slot, generation, notice)
