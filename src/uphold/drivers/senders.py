"""Who sent it? From the number of a process, as the kernel gave it, to the slot it belongs to.

Nobody is believed by what they say. A main process is known by its number, which is its own while
it is held; any other one must be of the session that a main process leads, or carry the nonce of
its run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.host.proctable import read_nonce, read_stat

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.statuses import Identity

_MOST_KNOWN: Final = 1024


class Sender(NamedTuple):
    """The run of a slot that a process belongs to."""

    slot: str
    generation: int
    introduced: bool
    """Its start has been told; before that nobody else knows of this run."""


class _Known:
    """One run, from just before its birth to its end."""

    __slots__ = ("child", "nonce", "pid", "sender")

    def __init__(self, sender: Sender, nonce: str, pid: int = 0, *, child: bool = False) -> None:
        self.sender = sender
        self.nonce = nonce
        self.pid = pid
        self.child = child
        """Its number is its own until we reap it."""


class Senders:
    """Knows all runs that may speak."""

    def __init__(self, lives: Callable[[str], bool]) -> None:
        """`lives` tells whether the main process of a slot, held by us, has not ended yet."""
        self._lives = lives
        self._by_slot: dict[str, _Known] = {}
        self._by_pid: dict[int, _Known] = {}
        self._by_nonce: dict[str, _Known] = {}
        self._seen: dict[tuple[int, int], str] = {}
        """Nonces read of processes that are no main process; start ticks tell them apart."""

    def expect(self, slot: str, generation: int, nonce: str) -> None:
        """Learn of a run that is about to be born: it may speak before it is told of."""
        self._forget(slot)
        known = _Known(Sender(slot, generation, introduced=False), nonce)
        self._by_slot[slot] = self._by_nonce[nonce] = known

    def introduce(self, slot: str, generation: int, identity: Identity, *, child: bool) -> None:
        """Learn the main process of a run: started (a child of ours) or adopted."""
        self._forget(slot)
        sender = Sender(slot, generation, introduced=True)
        known = _Known(sender, identity.nonce, identity.pid, child=child)
        self._by_slot[slot] = self._by_pid[identity.pid] = known
        if identity.nonce:
            self._by_nonce[identity.nonce] = known

    def dismiss(self, slot: str, generation: int) -> None:
        """Forget a run that has ended; a newer one of its slot stays."""
        known = self._by_slot.get(slot)
        if known is not None and known.sender.generation <= generation:
            self._forget(slot)

    def knows(self, slot: str) -> bool:
        """Tell whether a run of this slot may speak."""
        return slot in self._by_slot

    def find(self, pid: int) -> Sender | str:
        """Give the run a process belongs to, or a word for why it is not believed."""
        known = self._by_pid.get(pid)
        if known is not None and (known.child or self._lives(known.sender.slot)):
            return known.sender
        if pid <= 0:
            return "invisible"
        stat = read_stat(pid)
        if stat is None or known is not None:
            return "gone"
        leader = self._by_pid.get(stat.session)
        if leader is not None:
            # Sessions are only entered by birth, and while one has members its number is its own.
            return leader.sender
        known = self._by_nonce.get(self._nonce(pid, stat.start_ticks))
        return "foreign" if known is None else known.sender

    def belongs(self, pid: int, slot: str) -> bool:
        """Tell whether a process is of this slot, by the same proofs."""
        found = self.find(pid)
        return isinstance(found, Sender) and found.slot == slot

    def _nonce(self, pid: int, start_ticks: int) -> str:
        key = (pid, start_ticks)
        nonce = self._seen.get(key)
        if nonce is None:
            nonce = read_nonce(pid) or ""
            if len(self._seen) >= _MOST_KNOWN:
                self._seen.clear()
            self._seen[key] = nonce
        return nonce

    def _forget(self, slot: str) -> None:
        known = self._by_slot.pop(slot, None)
        if known is None:
            return
        if self._by_nonce.get(known.nonce) is known:
            del self._by_nonce[known.nonce]
        if self._by_pid.get(known.pid) is known:
            del self._by_pid[known.pid]
