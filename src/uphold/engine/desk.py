"""The desk: where orders are made, handed in and followed until they have come true."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from uphold.core import orders
from uphold.core.orders import Order, Refusal, order_id
from uphold.core.outcomes import Result
from uphold.core.statuses import ALIVE, State
from uphold.engine.auditing import audit_entry
from uphold.engine.errands import Errands
from uphold.engine.intake import Intake
from uphold.engine.jobs import Job, Jobs, endings
from uphold.engine.ledger import Caused
from uphold.engine.telling import order_note, refusal_note
from uphold.ports.configs import Asker
from uphold.ports.journals import Batch, JobRow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.core.declaring import Declaration
    from uphold.core.events import Recorded
    from uphold.core.orders import Wish
    from uphold.core.specs import Settings, WorkerSpec
    from uphold.engine.board import Board
    from uphold.engine.errands import Outcome, Run
    from uphold.engine.ledger import Ledger
    from uphold.engine.performer import Performer
    from uphold.engine.reconciler import Reconciler
    from uphold.ports.clocks import Clock
    from uphold.ports.configs import Revision

_ABOUT_ALL = (
    orders.Declare,
    orders.PauseSupervisor,
    orders.ResumeSupervisor,
    orders.ShutDown,
)

_EDITED = Asker(author="configuration", origin="config", reason="file changed")


class Desk:
    """Takes orders through the intake and says when they are done."""

    def __init__(  # noqa: PLR0913 - whom it speaks to, by name
        self,
        *,
        clock: Clock,
        board: Board,
        ledger: Ledger,
        reconciler: Reconciler,
        performer: Performer,
        first_number: int,
        companions: Callable[[Settings], tuple[WorkerSpec, ...]],
        errands: Mapping[type, Run] | None = None,
    ) -> None:
        self._clock = clock
        self._board = board
        self._ledger = ledger
        self._reconciler = reconciler
        self._performer = performer
        self._number = first_number
        self._companions = companions
        self._intake = Intake(ledger=ledger, enact=self._enact)
        self._jobs = Jobs()
        self.errands = Errands(errands or {}, self._end_errand)
        self._forget_alarm: Callable[[], None] | None = None
        self._declaring: asyncio.Task[Job | Refusal] | None = None
        self._owed: tuple[str, Revision] | None = None
        """The newest configuration, until it has been declared, and the order to do that."""

    def order(  # noqa: PLR0913 - what an order is made of, by name
        self,
        wish: Wish,
        *,
        author: str,
        origin: str,
        reason: str = "",
        label: str | None = None,
        task_id: str | None = None,
    ) -> Order:
        """Make an order with an id of its own."""
        at = self._clock.now().wall
        self._number += 1
        return Order(
            id=order_id(at, self._number),
            wish=wish,
            author=author,
            origin=origin,
            at=at,
            reason=reason,
            label=label,
            task_id=task_id,
        )

    async def submit(self, order: Order) -> Job | Refusal:
        """Hand in an order: audited and declared, or refused. The job says when it is done."""
        answer = await self._intake.submit(order)
        if isinstance(answer, Job):
            await self.review()
        return answer

    async def announce(self, order: Order, names: tuple[str, ...]) -> JobRow:
        """Put an order on record that will come by another way: queued, and nothing else yet."""
        row = _announced(order, names)
        audit = audit_entry(order, names, outcome="announced")
        await self._ledger.write_or_refuse(Batch(audit=[audit], jobs=[row]))
        return row

    async def forgo(self, order: Order, names: tuple[str, ...], error: str) -> None:
        """Put on record that an announced order will not be carried out, and why."""
        at = self._clock.now().wall
        row = replace(
            _announced(order, names), state="failed", updated_at=at, finished_at=at, error=error
        )
        audit = audit_entry(order, names, outcome="rejected", at=at, more={"error": error})
        await self._ledger.write_or_refuse(Batch(audit=[audit], jobs=[row]))

    async def refuse(self, order: Order, refusal: Refusal) -> None:
        """Put on record that an order is refused which nobody needs to look at any closer."""
        news = [Caused(refusal_note(order, refusal), order.id)]
        audit = audit_entry(order, (), refused=refusal.message)
        await self._board.tell(self._ledger, news, Batch(audit=[audit]))

    async def leave_unchanged(self, order: Order) -> None:
        """Put on record an order that found everything as it wants it: it is done already."""
        row = replace(
            _announced(order, ()), state="succeeded", started_at=order.at, finished_at=order.at
        )
        notes = (
            order_note("order.accepted", order),
            order_note("order.done", order, job_id=row.id),
        )
        audit = audit_entry(order, (), outcome="unchanged")
        news = [Caused(note, order.id) for note in notes]
        await self._board.tell(self._ledger, news, Batch(audit=[audit], jobs=[row]))

    def job(self, job_id: str) -> Job | None:
        """Find an order that is still under way."""
        return self._jobs.find(job_id)

    def declare(self, revision: Revision) -> None:
        """Hand in the order that a new configuration is."""
        settings = revision.settings
        wish = orders.Declare(
            specs=settings.workers,
            source=settings.source,
            companions=self._companions(settings),
        )
        asker = revision.asker or _EDITED
        order = self.order(
            wish,
            author=asker.author,
            origin=asker.origin,
            reason=asker.reason,
            label=asker.label,
        )
        loop = asyncio.get_running_loop()
        self._owed = (order.id, revision)
        self._declaring = loop.create_task(self.submit(order), name="declare")

    def declare_owed(self) -> None:
        """Hand in again a configuration that could not be recorded when it came."""
        if self._owed is not None and (self._declaring is None or self._declaring.done()):
            self.declare(self._owed[1])

    async def declaring(self) -> Job | Refusal | None:
        """Give the order that came of the newest configuration, if there was one since start."""
        return None if self._declaring is None else await asyncio.shield(self._declaring)

    async def run(self) -> None:
        """Take orders for ever."""
        await self._intake.run(lambda: self._board.declaration)

    async def review(self) -> None:
        """See which orders have come true, and put that on record."""
        snapshot = self._board.snapshot
        now = self._clock.now()
        ended, again = self._jobs.review(
            snapshot.declaration, snapshot.observed, now, snapshot.turned
        )
        if self._forget_alarm is not None:
            self._forget_alarm()
            self._forget_alarm = None
        if again is not None:
            self._forget_alarm = self._clock.alarm(again, lambda: self._reconciler.wake(()))
        await self._record(ended)

    async def end_shutdown(self, error: str | None) -> None:
        """Put on record what the orders to shut down came to."""
        await self._record(self._jobs.end_shutdown(self._clock.now(), error))

    async def _end_errand(self, job: Job, came_to: Outcome) -> None:
        self._jobs.end_errand(job, self._clock.now(), came_to.error, came_to.details)
        await self._record([job])

    async def _record(self, ended: list[Job]) -> None:
        if ended:
            news, audit = endings(ended)
            rows = Batch(jobs=[job.row for job in ended], audit=audit)
            await self._board.tell(self._ledger, news, rows)

    def close(self) -> None:
        """Refuse what was not looked at, and let go of everybody who still waits."""
        self._intake.close()
        self._jobs.close()

    def _enact(self, declaration: Declaration, recorded: list[Recorded], taken: list[Job]) -> None:
        self._board.declare(declaration, recorded)
        if declaration.closing is not None:
            self._reconciler.wake(None)
        for job in taken:
            self._jobs.follow(job)
            wish = job.accepted.wish
            if isinstance(wish, orders.SignalWorkers):
                self._send_signal(wish, job)
            if isinstance(wish, orders.Errand):
                self.errands.begin(job)
            if self._owed is not None and self._owed[0] == job.order.id:
                self._owed = None
            about_all = isinstance(wish, _ABOUT_ALL)
            # Companions are not followed, but obeyed.
            named = (*job.accepted.names, *getattr(wish, "names", ()))
            self._reconciler.wake(None if about_all else named)

    def _send_signal(self, wish: orders.SignalWorkers, job: Job) -> None:
        observed = self._board.snapshot.observed
        for name in job.accepted.names:
            alive = [
                status
                for slot in observed.of(name)
                if (status := observed.slots[slot]).state in ALIVE
            ]
            sent = [
                self._performer.driver(status.terms).signal(status.slot, wish.signal)
                for status in alive
            ]
            error = None if any(sent) else "it has no process that a signal could be sent to"
            state = str(alive[0].state) if alive else str(State.STOPPED)
            job.results[name] = Result(name=name, ok=error is None, state=state, error=error)


def _announced(order: Order, names: tuple[str, ...]) -> JobRow:
    return JobRow(
        id=order.id,
        task_id=order.task_id,
        type=order.wish.VERB,
        target=",".join(names)[:255],
        label=order.label,
        state="queued",
        created_at=order.at,
        updated_at=order.at,
    )
