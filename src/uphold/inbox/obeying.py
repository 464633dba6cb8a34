"""Obeying flags: each that is ours is carried out, answered and gone, or refused with a reason.

Who carries an order out is handed in. Whatever happens, there is a receipt; one that could not be
left keeps its flag in `processing/`, and is left at the next look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uphold.errors import HostFailure
from uphold.inbox.flags import Flag, Rejected, Rules
from uphold.inbox.reaching import FAILED
from uphold.inbox.receipts import receipt_content, receipt_name
from uphold.inbox.receiving import Receiver

if TYPE_CHECKING:
    from uphold.inbox.receiving import Poll
    from uphold.inbox.shares import Inbox, Share
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
    """What is needed from whoever runs the supervisor."""

    rules: Callable[[], Rules]
    carry: Callable[[Flag], Awaitable[Answer]]
    """Carries an order out; never raises."""
    known: Callable[[str], Awaitable[Answer | None]]
    """Finds what a task came to that was taken before; its `details` say so."""
    tell: Callable[[str, str, Mapping[str, Any]], Awaitable[None]]
    """Puts an event on record: its type, the task it is about, and more."""
    refused: Callable[[Rejected], Awaitable[None]] | None = None
    """Hears of flags that are refused: somebody may wait for one."""


class Obedience:
    """Works through one inbox, look by look."""

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
        self._receiver = Receiver(inbox)
        self._share = share
        self._owner = owner
        self._supervisor_id = supervisor_id
        self._dealings = dealings
        self._clock = clock
        self._log = log
        self._owes = True
        """Something may lie in `processing/` that has no receipt yet."""
        self._answered: set[str] = set()
        """Claims whose refusal was told, and which could not be moved away yet."""
        self.more = False
        """The last look has left some for the next one."""

    async def look(self, ending: Callable[[], bool] = lambda: False) -> list[Deed]:
        """Deal with the flags that are there now; HostFailure if the share cannot be reached.

        Once `ending` is true none is begun any more: what was claimed waits for the next look.
        """
        rules, now = self._dealings.rules(), self._clock.now()
        deeds: list[Deed] = []
        stuck: HostFailure | None = None
        if self._owes:
            left = await self._receiver.interrupted(self._owner, rules, now)
            stuck = await self._work_through(left, deeds, ending)
        self._owes, self.more = True, False
        if ending():
            return deeds
        poll = await self._receiver.poll(rules, now)
        self.more = poll.more
        stuck = await self._work_through(poll, deeds, ending) or poll.failure or stuck
        if stuck is not None:
            raise stuck
        self._owes = poll.missing or ending()
        return deeds

    async def _work_through(
        self, poll: Poll, deeds: list[Deed], ending: Callable[[], bool]
    ) -> HostFailure | None:
        """Deal with each in turn; what cannot be put away is told and holds up nobody else."""
        # Orders first: whoever floods an inbox with nonsense must not keep the others waiting.
        for order in poll.claimed:
            if ending():
                return None
            deeds.append(await self._carry_out(order.flag, order.claimed))
        stuck: HostFailure | None = None
        for each in poll.refused:
            try:
                deeds.append(await self._refuse(each.rejected, each.claimed))
            except HostFailure as cause:
                if cause.code != FAILED:
                    raise  # the share is away: the rest would only fail the same way
                stuck = stuck or cause
        return stuck

    async def _carry_out(self, flag: Flag, claimed: str) -> Deed:
        answer = await self._dealings.known(flag.task_id)
        if answer is None:
            self._say(flag, "INFO", "flag.claimed", f"{flag.handler}: begun ({flag.file})")
            await self._dealings.tell("flag.claimed", flag.task_id, _about(flag))
            answer = await self._dealings.carry(flag)
        level = "INFO" if answer.success else "ERROR"
        outcome = "done" if answer.success else f"failed: {answer.error}"
        self._say(flag, level, "flag.done", f"{flag.handler}: {outcome}")
        await self._answer(flag, answer, claimed)
        await self._inbox.finish(claimed)
        return Deed(
            handler=flag.handler,
            label=flag.label,
            task_id=flag.task_id,
            worker_id=flag.worker_id,
            success=answer.success,
            error=answer.error,
        )

    async def _refuse(self, rejected: Rejected, claimed: str) -> Deed:
        if claimed not in self._answered:
            await self._say_why(rejected, claimed)
            self._answered.add(claimed)
        now = self._clock.now().wall
        await self._inbox.reject(rejected.file, rejected.reason, now=now, claimed=claimed)
        self._answered.discard(claimed)
        return Deed(
            handler=rejected.handler,
            label=rejected.label,
            task_id=rejected.task_id,
            worker_id=rejected.worker_id,
            success=False,
            error=rejected.reason,
        )

    async def _say_why(self, rejected: Rejected, claimed: str) -> None:
        """Tell everybody who may want to know that a flag is refused, once."""
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
        if self._dealings.refused is not None:
            await self._dealings.refused(rejected)
        answer = Answer(success=False, error=rejected.reason, details=details)
        await self._answer(rejected, answer, claimed)

    async def _answer(self, flag: Flag | Rejected, answer: Answer, claimed: str) -> None:
        """Leave the receipt; one that cannot be left keeps its flag in `processing/`."""
        now = self._clock.now().wall
        token = claimed.split(".")[1]  # no two claims share it, whatever the files are called
        name = receipt_name(flag.handler, flag.task_id, now, token=token)
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
        # That a refusal survives a power cut is not worth a wait for the disk with each of a flood.
        await self._share.put("outbox", name, content, durable=isinstance(flag, Flag))

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
