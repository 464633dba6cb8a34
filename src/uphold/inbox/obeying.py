"""Obeying flags: each that is ours is carried out, answered and gone, or refused with a reason.

Who carries an order out is handed in. Whatever happens, there is a receipt; one that could not be
left keeps its flag in `processing/`, and is left at the next look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from uphold.errors import HostFailure
from uphold.inbox.flags import Flag, Rejected, Rules
from uphold.inbox.reaching import FAILED
from uphold.inbox.receipts import receipt_content, receipt_name
from uphold.inbox.receiving import AT_ONCE, Receiver
from uphold.inbox.shares import Dismissal, kept_name

if TYPE_CHECKING:
    from uphold.inbox.receiving import Poll, Refused
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
    tell: Callable[[str, Sequence[tuple[str, Mapping[str, Any]]]], Awaitable[None]]
    """Puts events on record, together: their type, and of each the task it is about and more."""
    refused: Callable[[Rejected], Awaitable[None]] | None = None
    """Hears of flags that are refused: somebody may wait for one."""


@dataclass(slots=True, kw_only=True)
class _Told:
    """A refusal that is on record, and whose flag is not moved away yet."""

    rejected: Rejected
    dismissal: Dismissal
    """Always asked for with the same names: the last time may have done it, or half of it."""
    heard: bool = False
    """Whoever may wait for the flag has heard of it."""


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
        self._answered: dict[str, _Told] = {}
        """By claim."""
        self._log_path = share.path("logs", "supervisor.log")
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
            await self._count_gone(left, deeds)
            left = replace(left, refused=await self._never_begun(left.refused, deeds))
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

    async def _count_gone(self, left: Poll, deeds: list[Deed]) -> None:
        """Count refused flags that were moved away though nobody said so, as a share was slow."""
        there = {claimed for _, claimed in (*left.claimed, *left.refused)}
        for claimed in self._answered.keys() - there:
            if await self._inbox.reread(claimed) is None:  # there may be more than were listed
                told = await self._heard(claimed)
                del self._answered[claimed]
                deeds.append(_deed(told.rejected, told.rejected.reason))

    async def _never_begun(
        self, refused: Sequence[Refused], deeds: list[Deed]
    ) -> tuple[Refused, ...]:
        """Answer those that were carried out before they were interrupted; give the others.

        What has been done was right then, whatever the rules of today say of it.
        """
        others: list[Refused] = []
        for each in refused:
            task = each.rejected.task_id
            told = task is None or each.claimed in self._answered
            answer = None if told else await self._dealings.known(str(task))
            if answer is None:
                others.append(each)
            else:
                deeds.append(await self._put_away(each.rejected, answer, each.claimed))
        return tuple(others)

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
        for first in range(0, len(poll.refused), AT_ONCE):
            few = poll.refused[first : first + AT_ONCE]
            stuck = await self._refuse(few, deeds) or stuck
        return stuck

    async def _carry_out(self, flag: Flag, claimed: str) -> Deed:
        answer = await self._dealings.known(flag.task_id)
        if answer is None:
            self._say(flag, "INFO", "flag.claimed", f"{flag.handler}: begun ({flag.file})")
            await self._dealings.tell("flag.claimed", ((flag.task_id, _about(flag)),))
            answer = await self._dealings.carry(flag)
        return await self._put_away(flag, answer, claimed)

    async def _put_away(self, flag: Flag | Rejected, answer: Answer, claimed: str) -> Deed:
        """Leave the receipt of what was carried out, now or before."""
        level = "INFO" if answer.success else "ERROR"
        outcome = "done" if answer.success else f"failed: {answer.error}"
        self._say(flag, level, "flag.done", f"{flag.handler or flag.file}: {outcome}")
        # One that cannot be left keeps its flag in `processing/`.
        await self._share.put("outbox", *self._receipt(flag, answer, claimed))
        await self._inbox.finish(claimed)
        return _deed(flag, answer.error, success=answer.success)

    async def _refuse(self, few: Sequence[Refused], deeds: list[Deed]) -> HostFailure | None:
        """Refuse some flags at once; give what is wrong with one that could not be put away."""
        await self._say_why([each for each in few if each.claimed not in self._answered])
        wanted = [(await self._heard(each.claimed)).dismissal for each in few]
        failures = await self._inbox.dismiss_each(wanted)
        stuck: HostFailure | None = None
        for each, failure in zip(few, failures, strict=True):
            if failure is not None:
                stuck = stuck or failure
                continue
            del self._answered[each.claimed]
            deeds.append(_deed(each.rejected, each.rejected.reason))
        if stuck is not None and stuck.code != FAILED:
            raise stuck  # the share is away: the rest would only fail the same way
        return stuck

    async def _say_why(self, few: Sequence[Refused]) -> None:
        """Put on record that flags are refused, once."""
        told: list[tuple[str, Mapping[str, Any]]] = []
        for each in few:
            rejected = each.rejected
            self._log.write(
                "WARNING",
                "flag.rejected",
                f"the flag {rejected.file} is refused: {rejected.reason}",
                worker=rejected.worker_id,
                task_id=rejected.task_id,
                label=rejected.label,
            )
            details = {"file": rejected.file, "code": rejected.code, "reason": rejected.reason}
            told.append((rejected.task_id or rejected.file, details))
        await self._dealings.tell("flag.rejected", told)
        now = self._clock.now().wall
        for (rejected, claimed), (_, said) in zip(few, told, strict=True):
            answer = Answer(success=False, error=rejected.reason, details=said)
            receipt = self._receipt(rejected, answer, claimed)
            kept = kept_name(rejected.file, now)
            dismissal = Dismissal(claimed, kept, rejected.reason, *receipt)
            self._answered[claimed] = _Told(rejected=rejected, dismissal=dismissal)

    async def _heard(self, claimed: str) -> _Told:
        """Let whoever may wait for a flag hear that it is refused, once."""
        told = self._answered[claimed]
        if not told.heard and self._dealings.refused is not None:
            await self._dealings.refused(told.rejected)
        told.heard = True
        return told

    def _receipt(self, flag: Flag | Rejected, answer: Answer, claimed: str) -> tuple[str, bytes]:
        """Compose a receipt: its name and what it says."""
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
            log_path=self._log_path,
        )
        return name, content

    def _say(self, flag: Flag | Rejected, level: str, event: str, text: str) -> None:
        self._log.write(
            level, event, text, worker=flag.worker_id, task_id=flag.task_id, label=flag.label
        )


def _deed(flag: Flag | Rejected, error: str | None, *, success: bool = False) -> Deed:
    return Deed(
        handler=flag.handler,
        label=flag.label,
        task_id=flag.task_id,
        worker_id=flag.worker_id,
        success=success,
        error=error,
    )


def _about(flag: Flag) -> dict[str, Any]:
    return {
        "handler": flag.handler,
        "worker": flag.worker_id,
        "label": flag.label,
        "file": flag.file,
        "sender": flag.sender,
    }
