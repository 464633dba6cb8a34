"""Taking flags from an inbox: each is claimed, carried out, answered and gone, or refused.

Who carries an order out is handed in. A flag is looked at without touching it first (it may be
somebody else's), then claimed, and what the claimed file says is what counts. Whatever happens,
there is a receipt.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uphold.inbox.flags import (
    PATIENCE,
    UNREADABLE,
    Flag,
    Incomplete,
    NotOurs,
    Reading,
    Rejected,
    Rules,
    in_order,
    read_flag,
)
from uphold.inbox.receipts import receipt_content, receipt_name
from uphold.inbox.shares import Content, Inbox, Odd, Share, claim_of

if TYPE_CHECKING:
    from uphold.inbox.shares import Entry
    from uphold.ports.clocks import Clock
    from uphold.ports.logs import Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an order came to, for its receipt."""

    success: bool
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One flag that was dealt with: for the heartbeat, the log and the exit code of a pass."""

    handler: str | None
    label: str | None
    task_id: str | None
    worker_id: str | None
    success: bool
    error: str | None = None

    def shown(self) -> dict[str, Any]:
        """Give it as a heartbeat shows it."""
        return {
            "handler": self.handler,
            "label": self.label,
            "task_id": self.task_id,
            "success": self.success,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealings:
    """What a receiver needs from whoever runs the supervisor."""

    rules: Callable[[], Rules]
    carry: Callable[[Flag], Awaitable[Answer]]
    """Carries an order out; never raises."""
    known: Callable[[str], Awaitable[Answer | None]]
    """Finds what a task came to that was taken before; its `details` say so."""
    tell: Callable[[str, str, Mapping[str, Any]], Awaitable[None]]
    """Puts an event on record: its type, the task it is about, and more."""


class Receiver:
    """Works through one inbox."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        inbox: Inbox,
        share: Share,
        owner: str,
        supervisor_id: str,
        dealings: Dealings,
        clock: Clock,
        log: Log,
    ) -> None:
        self._inbox = inbox
        self._share = share
        self._owner = owner
        self._supervisor_id = supervisor_id
        self._dealings = dealings
        self._clock = clock
        self._log = log
        self._owes = True
        """Something may lie in `processing/` that has no receipt yet."""

    async def poll(self) -> list[Deed]:
        """Deal with the flags that are there now; HostFailure if the share cannot be reached."""
        listing = await self._inbox.flags()
        if listing.missing:
            return []
        owes, self._owes = self._owes, True
        deeds = await self._recover() if owes else []
        deeds += await self._work_through(listing.entries)
        self._owes = False
        return deeds

    async def _work_through(self, entries: Sequence[Entry]) -> list[Deed]:
        flags: list[Flag] = []
        deeds: list[Deed] = []
        for entry in entries:
            reading = await self._look(entry)
            if isinstance(reading, Flag):
                flags.append(reading)
            elif isinstance(reading, Rejected):
                deeds.append(await self._refuse(reading))
        for flag in in_order(flags):
            deed = await self._take(flag)
            if deed is not None:
                deeds.append(deed)
        return deeds

    async def _recover(self) -> list[Deed]:
        """Finish or fail what was claimed and never answered, by us or by the one before us."""
        deeds: list[Deed] = []
        for entry in await self._inbox.names("processing"):
            claim = claim_of(entry.name)
            if claim is None or claim[0] != self._owner:
                continue
            found = await self._inbox.reread(entry.name)
            if found is None:
                continue
            reading = self._read(claim[1], found)
            if isinstance(reading, NotOurs):
                await self._inbox.give_back(entry.name, claim[1])
            elif isinstance(reading, Flag):
                deeds.append(await self._carry_out(reading, entry.name))
            else:
                deeds.append(await self._refuse(_final(reading), claimed=entry.name))
        return deeds

    async def _look(self, entry: Entry) -> Reading | None:
        """Read a flag without touching it; None if it is gone, or may still be written."""
        found = await self._inbox.peek(entry.name)
        if found is None:
            return None
        reading = self._read(entry.name, found)
        if isinstance(reading, Incomplete):
            age = self._clock.now().wall - found.modified
            return reading.given_up() if age >= PATIENCE else None
        return None if isinstance(reading, NotOurs) else reading

    def _read(self, name: str, found: Content | Odd) -> Reading:
        if isinstance(found, Odd):
            return Rejected(file=name, reason=f"it is {found.what}.", code=UNREADABLE)
        return read_flag(
            name,
            found.raw,
            rules=self._dealings.rules(),
            now=self._clock.now().wall,
            modified=found.modified,
        )

    async def _take(self, seen: Flag) -> Deed | None:
        """Claim a flag and do what the claimed file says, which is what counts."""
        found = await self._inbox.claim(seen.file)
        if found is None:
            return None  # somebody else was faster, or it was taken back
        reading = self._read(seen.file, found)
        if isinstance(reading, NotOurs | Incomplete):
            await self._inbox.give_back(found.claimed, seen.file)
            return None
        if isinstance(reading, Rejected):
            return await self._refuse(reading, claimed=found.claimed)
        return await self._carry_out(reading, found.claimed)

    async def _carry_out(self, flag: Flag, claimed: str) -> Deed:
        answer = await self._dealings.known(flag.task_id)
        if answer is None:
            self._say(flag, "INFO", "flag.claimed", f"{flag.handler}: begun ({flag.file})")
            await self._dealings.tell("flag.claimed", flag.task_id, _about(flag))
            answer = await self._dealings.carry(flag)
        level = "INFO" if answer.success else "ERROR"
        outcome = "done" if answer.success else f"failed: {answer.error}"
        self._say(flag, level, "flag.done", f"{flag.handler}: {outcome}")
        await self._answer(flag, answer)
        await self._inbox.finish(claimed)
        return Deed(
            handler=flag.handler,
            label=flag.label,
            task_id=flag.task_id,
            worker_id=flag.worker_id,
            success=answer.success,
            error=answer.error,
        )

    async def _refuse(self, rejected: Rejected, *, claimed: str = "") -> Deed:
        now = self._clock.now().wall
        self._log.write(
            "WARNING",
            "flag.rejected",
            f"the flag {rejected.file} is refused: {rejected.reason}",
            worker=rejected.worker_id,
            task_id=rejected.task_id,
            label=rejected.label,
        )
        details = {"file": rejected.file, "code": rejected.code, "reason": rejected.reason}
        await self._dealings.tell("flag.rejected", rejected.task_id or rejected.file, details)
        place = await self._inbox.reject(rejected.file, rejected.reason, now=now, claimed=claimed)
        answer = Answer(success=False, error=rejected.reason, details={**details, "moved": place})
        await self._answer(rejected, answer)
        return Deed(
            handler=rejected.handler,
            label=rejected.label,
            task_id=rejected.task_id,
            worker_id=rejected.worker_id,
            success=False,
            error=rejected.reason,
        )

    async def _answer(self, flag: Flag | Rejected, answer: Answer) -> None:
        """Leave the receipt; one that cannot be left keeps its flag in `processing/`."""
        now = self._clock.now().wall
        name = receipt_name(flag.handler, flag.task_id, now, token=flag.file[-20:-5])
        content = receipt_content(
            wall=now,
            supervisor_id=self._supervisor_id,
            worker_id=flag.worker_id,
            task_id=flag.task_id,
            job_id=answer.job_id,
            handler=flag.handler,
            label=flag.label,
            success=answer.success,
            error=answer.error,
            details=answer.details,
            log_path=self._share.path("logs", "supervisor.log"),
        )
        await self._share.put("outbox", name, content)

    def _say(self, flag: Flag, level: str, event: str, text: str) -> None:
        self._log.write(
            level, event, text, worker=flag.worker_id, task_id=flag.task_id, label=flag.label
        )


def _about(flag: Flag) -> dict[str, Any]:
    return {
        "handler": flag.handler,
        "worker": flag.worker_id,
        "label": flag.label,
        "file": flag.file,
        "sender": flag.sender,
    }


def _final(reading: Rejected | Incomplete) -> Rejected:
    return reading if isinstance(reading, Rejected) else reading.given_up()
