"""The one door: every order is checked, audited on disk, and only then declared.

Orders that arrive together share one commit. Only the intake replaces the declaration,
so no lock is needed and what is on disk is what is believed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from uphold.core.declaring import Declaration, declare
from uphold.core.orders import Order, Refusal, ShutDown
from uphold.engine.auditing import audit_entry
from uphold.engine.jobs import Job, open_job
from uphold.engine.ledger import Caused
from uphold.engine.telling import names_of, news_of, refusal_note
from uphold.errors import EXIT_NOT_RUNNING, StoreUnavailable
from uphold.ports.journals import AuditEntry, Batch
from uphold.wire.overrides import ABSENT, encode_override

if TYPE_CHECKING:
    from collections.abc import Callable

    from uphold.core.events import Event, Recorded
    from uphold.engine.ledger import Ledger

    Enact = Callable[[Declaration, list[Recorded], list[Job]], None]

_TOO_LATE: Final = Refusal(
    code="UPH_SUPERVISOR_NOT_RUNNING",
    message="the supervisor has ended and takes no more orders.",
    remedy="uphold start starts it again.",
    exit_code=EXIT_NOT_RUNNING,
)


class Intake:
    """Takes orders one batch at a time."""

    def __init__(self, *, ledger: Ledger, enact: Enact) -> None:
        self._ledger = ledger
        self._enact = enact
        self._waiting: list[tuple[Order, asyncio.Future[Job | Refusal]]] = []
        self._ready = asyncio.Event()
        self._closed = False

    async def submit(self, order: Order) -> Job | Refusal:
        """Hand in an order and wait until it stands or is refused."""
        if self._closed:  # nobody would ever answer
            return _TOO_LATE
        answer: asyncio.Future[Job | Refusal] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, answer))
        self._ready.set()
        return await answer

    async def run(self, current: Callable[[], Declaration]) -> None:
        """Take orders for ever."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            waiting, self._waiting = self._waiting, []
            try:
                if waiting:
                    await self._take(waiting, current())
            finally:
                for _, answer in waiting:  # whatever went wrong, nobody waits for ever
                    answer.cancel()

    def close(self) -> None:
        """Refuse whatever has not been looked at, and whatever still comes."""
        self._closed = True
        for _, answer in self._waiting:
            answer.cancel()
        self._waiting.clear()

    async def _take(
        self,
        waiting: list[tuple[Order, asyncio.Future[Job | Refusal]]],
        declaration: Declaration,
    ) -> None:
        before = declaration
        news: list[Event | Caused] = []
        audit: list[AuditEntry] = []
        answers: list[Job | Refusal] = []
        for order, _ in waiting:
            verdict = declare(declaration, order)
            if isinstance(verdict, Refusal):
                answers.append(verdict)
                news.append(Caused(refusal_note(order, verdict), order.id))
                audit.append(audit_entry(order, (), refused=verdict.message))
                continue
            names = names_of(order, declaration, verdict)
            answers.append(open_job(order, names, verdict.version))
            news += [Caused(each, order.id) for each in news_of(order, declaration, verdict)]
            audit.append(audit_entry(order, names))
            declaration = verdict
        taken = [answer for answer in answers if isinstance(answer, Job)]
        recorded = self._ledger.number(news)
        batch = Batch(
            events=recorded,
            audit=audit,
            jobs=[answer.row for answer in taken],
            overrides=_overrides(before, declaration),
            meta=declaration_meta(declaration),
        )
        try:
            await self._ledger.write_or_refuse(batch)
        except StoreUnavailable as error:
            answers = [_unrecorded(error)] * len(waiting)
            self._enact_unrecorded([order for order, _ in waiting], before)
        else:
            self._enact(declaration, recorded, taken)
        for (_, answer), verdict_given in zip(waiting, answers, strict=True):
            if not answer.done():
                answer.set_result(verdict_given)

    def _enact_unrecorded(self, orders_given: list[Order], before: Declaration) -> None:
        """Obey a signal to end even when nothing can be written.

        Who sends one has no other way, and would have to kill us.
        """
        for order in orders_given:
            if order.origin == "signal" and isinstance(order.wish, ShutDown):
                declared = declare(before, order)
                if isinstance(declared, Declaration):
                    self._enact(declared, [], [])
                    return


def declaration_meta(declaration: Declaration) -> dict[str, str]:
    """Write what must be known of the declaration after a restart."""
    return {
        "declaration_version": str(declaration.version),
        "config_version": str(declaration.config_version),
        "paused": "1" if declaration.paused else "0",
    }


def _overrides(before: Declaration, after: Declaration) -> dict[str, str | None]:
    changed: dict[str, str | None] = {
        name: encode_override(entry.override)
        for name, entry in after.workers.items()
        if name not in before.workers or before.workers[name].override != entry.override
    }
    known = before.workers.keys() | before.absent
    changed.update((name, None) for name in known - after.workers.keys() - after.absent)
    changed.update((name, ABSENT) for name in after.absent - before.absent)
    return changed


def _unrecorded(error: StoreUnavailable) -> Refusal:
    return Refusal(
        code="UPH_AUDIT_UNWRITABLE",
        message=f"the order was not taken, because it cannot be put on record: {error.message}",
        remedy="Free some disk space or mend the disk; workers go on running meanwhile.",
        exit_code=1,
    )
