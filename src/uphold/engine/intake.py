"""The one door: every order is checked, audited on disk, and only then declared.

Orders that arrive together share one commit. Only the intake replaces the declaration,
so no lock is needed and what is on disk is what is believed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uphold.core.declaring import Declaration, declare
from uphold.core.orders import Order, Refusal
from uphold.core.outcomes import Accepted
from uphold.engine.telling import names_of, news_of, refusal_note
from uphold.errors import StoreUnavailable
from uphold.ports.journals import AuditEntry, Batch, JobRow
from uphold.wire.overrides import encode_override

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.events import Event, Recorded
    from uphold.engine.ledger import Ledger

    Enact = Callable[[Declaration, list[Recorded], list["Taken"]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An order that was audited and now stands."""

    order: Order
    job: JobRow
    accepted: Accepted


class Intake:
    """Takes orders one batch at a time."""

    def __init__(self, *, ledger: Ledger, enact: Enact) -> None:
        self._ledger = ledger
        self._enact = enact
        self._waiting: list[tuple[Order, asyncio.Future[Taken | Refusal]]] = []
        self._ready = asyncio.Event()

    async def submit(self, order: Order) -> Taken | Refusal:
        """Hand in an order and wait until it stands or is refused."""
        answer: asyncio.Future[Taken | Refusal] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, answer))
        self._ready.set()
        return await answer

    async def run(self, current: Callable[[], Declaration]) -> None:
        """Take orders for ever."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            waiting, self._waiting = self._waiting, []
            if waiting:
                await self._take(waiting, current())

    def close(self) -> None:
        """Refuse whatever has not been looked at."""
        for _, answer in self._waiting:
            answer.cancel()
        self._waiting.clear()

    async def _take(
        self,
        waiting: list[tuple[Order, asyncio.Future[Taken | Refusal]]],
        declaration: Declaration,
    ) -> None:
        before = declaration
        news: list[Event] = []
        audit: list[AuditEntry] = []
        answers: list[Taken | Refusal] = []
        for order, _ in waiting:
            verdict = declare(declaration, order)
            if isinstance(verdict, Refusal):
                answers.append(verdict)
                news.append(refusal_note(order, verdict))
                audit.append(audit_entry(order, (), refused=verdict.message))
                continue
            names = names_of(order, declaration, verdict)
            answers.append(_taken(order, names, verdict.version))
            news += news_of(order, declaration, verdict)
            audit.append(audit_entry(order, names))
            declaration = verdict
        taken = [answer for answer in answers if isinstance(answer, Taken)]
        recorded = self._ledger.number(news)
        batch = Batch(
            events=recorded,
            audit=audit,
            jobs=[answer.job for answer in taken],
            overrides=_overrides(before, declaration),
            meta=declaration_meta(declaration),
        )
        try:
            await self._ledger.write_or_refuse(batch)
        except StoreUnavailable as error:
            answers = [_unrecorded(error)] * len(waiting)
        else:
            self._enact(declaration, recorded, taken)
        for (_, answer), verdict_given in zip(waiting, answers, strict=True):
            if not answer.done():
                answer.set_result(verdict_given)


def declaration_meta(declaration: Declaration) -> dict[str, str]:
    """Write what must be known of the declaration after a restart."""
    return {
        "declaration_version": str(declaration.version),
        "config_version": str(declaration.config_version),
        "paused": "1" if declaration.paused else "0",
    }


def audit_entry(
    order: Order, names: tuple[str, ...], *, refused: str | None = None, outcome: str | None = None
) -> AuditEntry:
    """Make the line of the audit for an order, its refusal, or its outcome."""
    ending = "refused" if refused is not None else outcome
    details: dict[str, object] = {"origin": order.origin, "reason": order.reason}
    if refused is not None:
        details["error"] = refused
    if len(names) > 1:
        details["names"] = list(names)
    return AuditEntry(
        id=order.id if ending is None else f"{order.id}.{ending}",
        actor=order.author,
        action=order.wish.VERB if ending is None else f"{order.wish.VERB}.{ending}",
        target_type="worker" if names else "supervisor",
        target_id=names[0] if len(names) == 1 else ("*" if names else "supervisor"),
        label=order.label,
        at=order.at,
        details=details,
    )


def _taken(order: Order, names: tuple[str, ...], version: int) -> Taken:
    job = JobRow(
        id=order.id,
        task_id=None,
        type=order.wish.VERB,
        target=",".join(names)[:255],
        label=order.label,
        state="running",
        created_at=order.at,
        updated_at=order.at,
        started_at=order.at,
    )
    accepted = Accepted(wish=order.wish, names=names, version=version)
    return Taken(order=order, job=job, accepted=accepted)


def _overrides(before: Declaration, after: Declaration) -> dict[str, str | None]:
    changed: dict[str, str | None] = {
        name: encode_override(entry.override)
        for name, entry in after.workers.items()
        if name not in before.workers or before.workers[name].override != entry.override
    }
    changed.update((name, None) for name in before.workers if name not in after.workers)
    return changed


def _unrecorded(error: StoreUnavailable) -> Refusal:
    return Refusal(
        code="UPH_AUDIT_UNWRITABLE",
        message=f"the order was not taken, because it cannot be put on record: {error.message}",
        remedy="Free some disk space or mend the disk; workers go on running meanwhile.",
        exit_code=1,
    )
