"""One look into an inbox: which flags are ours now, which are refused, which are left alone.

A flag is read where it lies to see whom it is for, and once more after it was claimed: what counts
is what it says then. Doing what it asks, receipts and the memory of what was done before are the
business of whoever receives.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.errors import HostFailure
from uphold.inbox.flags import (
    NO_ADDRESSEE,
    NOT_ALLOWED,
    PATIENCE,
    UNREADABLE,
    Flag,
    Incomplete,
    NotOurs,
    Rejected,
    named_worker,
    place_of,
    read_flag,
)
from uphold.inbox.shares import Odd, claim_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uphold.core.events import Moment
    from uphold.inbox.flags import Reading, Rules
    from uphold.inbox.shares import Content, Entry, Inbox

AT_ONCE: Final = 20
"""Flags that are dealt with in one request: a slow share must manage as many in its time."""
_MOST_WATCHED: Final = 1_000
"""Unfinished files whose growth is remembered."""


class Claimed(NamedTuple):
    """A flag that is ours: nobody else will act on it."""

    flag: Flag
    claimed: str
    """Its name in `processing/`."""


class Refused(NamedTuple):
    """A flag that is ours to refuse; it lies in `processing/` until that is done."""

    rejected: Rejected
    claimed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What one look has found."""

    claimed: tuple[Claimed, ...] = ()
    """In the order in which they are worked through."""
    refused: tuple[Refused, ...] = ()
    unfinished: int = 0
    """Files that are perhaps being written."""
    others: int = 0
    """Flags for somebody else."""
    more: bool = False
    missing: bool = False
    """There is no inbox."""
    failure: HostFailure | None = None
    """The first thing that could not be done."""


class Receiver:
    """Looks into one inbox again and again."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._watched: dict[str, tuple[float, int, float]] = {}
        """Of unfinished files: time and size, and the instant since when they are so."""

    async def poll(self, rules: Rules, now: Moment) -> Poll:
        """Claim what is ours; HostFailure if the share cannot be reached.

        If that happens in the middle, what was claimed before is given nevertheless; what may
        have been claimed without our knowing is found by `interrupted`, once the share is back.
        """
        listing = await self._inbox.flags()
        found: list[_Outcome] = []
        for first in range(0, len(listing.entries), AT_ONCE):
            few = listing.entries[first : first + AT_ONCE]
            found += await self._take(few, rules, now)
        if not listing.more:
            names = {each.name for each in listing.entries}
            self._watched = {key: seen for key, seen in self._watched.items() if key in names}
        return _poll(found, more=listing.more, missing=listing.missing)

    async def interrupted(self, owner: str, rules: Rules, now: Moment) -> Poll:
        """Read again what this owner claimed and did not finish."""
        found: list[_Outcome] = []
        for entry in await self._inbox.names("processing"):
            claim = claim_of(entry.name)
            if claim is None or claim[0] != owner:
                continue
            content = await self._inbox.reread(entry.name)
            if content is not None:
                found.append(_settled(_rereading(claim[1], content, rules, now.wall), entry.name))
        return _poll(found)

    async def _take(self, entries: Sequence[Entry], rules: Rules, now: Moment) -> list[_Outcome]:
        """Read a few flags where they lie, claim those that are ours, and read these again."""
        found: list[_Outcome] = []
        wanted: list[tuple[str, Content | Odd, Reading]] = []
        for entry, peeked in zip(entries, await self._peek(entries), strict=True):
            if peeked is None or isinstance(peeked, HostFailure):
                found.append(peeked)
                continue
            first = _reading(entry.name, peeked, rules, now.wall)
            if isinstance(first, NotOurs) or (
                isinstance(first, Incomplete) and self._is_young(entry, now)
            ):
                found.append(first)
            else:
                wanted.append((entry.name, peeked, first))
        claims = await self._claim([name for name, _, _ in wanted])
        for (name, peeked, first), content in zip(wanted, claims, strict=True):
            if content is None or isinstance(content, HostFailure):
                found.append(content)
                continue
            # The same bytes mean the same; most flags need not be read twice.
            same = replace(content, claimed="") == peeked
            second = first if same else _reading(name, content, rules, now.wall)
            found.append(await self._settle(second, content.claimed, name))
        return found

    async def _peek(self, entries: Sequence[Entry]) -> list[Content | Odd | HostFailure | None]:
        """Read flags where they lie; the small ones came with the listing."""

        async def peek(entry: Entry) -> Content | Odd | HostFailure | None:
            try:
                return await self._inbox.peek(entry.name)
            except HostFailure as cause:
                return cause

        large = [entry for entry in entries if entry.content is None]
        read = iter(await asyncio.gather(*map(peek, large)))
        return [next(read) if each.content is None else each.content for each in entries]

    async def _claim(self, names: Sequence[str]) -> Sequence[Content | Odd | HostFailure | None]:
        try:
            return await self._inbox.claim_each(names)
        except HostFailure as cause:
            return [cause] * len(names)

    async def _settle(self, reading: Reading, claimed: str, name: str) -> _Outcome:
        try:
            if isinstance(reading, NotOurs) and await self._inbox.give_back(claimed, name):
                return reading
        except HostFailure as cause:
            return cause
        return _settled(reading, claimed)

    def _is_young(self, entry: Entry, now: Moment) -> bool:
        """Tell whether an unfinished file may still be written to."""
        if now.wall - entry.modified >= PATIENCE:
            return False
        known = self._watched.get(entry.name)
        if known is None or known[:2] != (entry.modified, entry.size):
            if len(self._watched) < _MOST_WATCHED:
                self._watched[entry.name] = (entry.modified, entry.size, now.mono)
            return True
        # The clock of the share may be wrong; that nothing happens for 30 s is seen without it.
        return now.mono - known[2] < PATIENCE


_Outcome = Claimed | Refused | Incomplete | NotOurs | HostFailure | None


def _reading(name: str, content: Content | Odd, rules: Rules, now: float) -> Reading:
    if isinstance(content, Odd):
        worker = named_worker(name, rules)
        if worker is not None and worker not in rules.workers:
            return NotOurs(file=name, worker_id=worker)
        return Rejected(file=name, reason=f"the file is {content.what}.", code=UNREADABLE)
    reading = read_flag(name, content.raw, rules=rules, now=now, modified=content.modified)
    if content.stranger and isinstance(reading, Flag):
        return reading.refused(
            f"the file belongs to {content.stranger}, who is not among inbox.owners.", NOT_ALLOWED
        )
    return reading


def _rereading(name: str, content: Content | Odd, rules: Rules, now: float) -> Reading:
    """Read what was claimed once: a worker that is gone is no reason to forget which task it is."""
    reading = _reading(name, content, rules, now)
    if not isinstance(reading, NotOurs):
        return reading
    text = f"it is for '{reading.worker_id}', whose flags are not obeyed here now."
    known = replace(rules, workers=rules.workers | {reading.worker_id})
    again = _reading(name, content, known, now)
    return again.refused(text, NO_ADDRESSEE) if isinstance(again, Flag) else again


def _settled(reading: Reading, claimed: str) -> Claimed | Refused:
    """Decide about a flag that is ours: there is no more waiting, and nobody else's turn."""
    match reading:
        case Flag():
            return Claimed(reading, claimed)
        case Rejected():
            return Refused(reading, claimed)
        case Incomplete():
            return Refused(reading.given_up(), claimed)
        case NotOurs():
            text = f"it was changed after it was claimed, and is for '{reading.worker_id}' now."
            return Refused(Rejected(file=reading.file, reason=text, code=UNREADABLE), claimed)


def _poll(found: Sequence[_Outcome], *, more: bool = False, missing: bool = False) -> Poll:
    claimed = [each for each in found if isinstance(each, Claimed)]
    return Poll(
        claimed=tuple(sorted(claimed, key=lambda each: place_of(each.flag))),
        refused=tuple(each for each in found if isinstance(each, Refused)),
        unfinished=sum(isinstance(each, Incomplete) for each in found),
        others=sum(isinstance(each, NotOurs) for each in found),
        more=more,
        missing=missing,
        failure=next((each for each in found if isinstance(each, HostFailure)), None),
    )
