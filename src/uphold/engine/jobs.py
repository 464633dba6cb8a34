"""Jobs: each accepted order is followed until it has come true or has failed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from uphold.core.names import is_companion
from uphold.core.orders import Errand, ShutDown, SignalWorkers
from uphold.core.outcomes import Accepted, Pending, Result, outcome
from uphold.engine.auditing import audit_entry
from uphold.engine.ledger import Caused
from uphold.engine.telling import order_note
from uphold.ports.journals import JobRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.core.absorbing import Observed
    from uphold.core.declaring import Declaration
    from uphold.core.events import Event, Moment
    from uphold.core.orders import Order
    from uphold.core.specs import Instant
    from uphold.ports.journals import AuditEntry


@dataclass(slots=True, kw_only=True)
class Job:
    """One order under way."""

    order: Order
    row: JobRow
    accepted: Accepted
    done: asyncio.Future[tuple[Result, ...]]
    results: dict[str, Result] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)
    """What an errand came to, for the audit and for whoever ordered it."""


def open_job(order: Order, names: tuple[str, ...], version: int) -> Job:
    """Make the job of an order that is being taken."""
    row = JobRow(
        id=order.id,
        task_id=order.task_id,
        type=order.wish.VERB,
        target=",".join(names)[:255],
        label=order.label,
        state="running",
        created_at=order.at,
        updated_at=order.at,
        started_at=order.at,
    )
    # Companions look after themselves: nobody waits for them. A signal is sent, or not, at once.
    at_once = isinstance(order.wish, SignalWorkers)
    followed = tuple(name for name in names if at_once or not is_companion(name))
    return Job(
        order=order,
        row=row,
        accepted=Accepted(wish=order.wish, names=followed, version=version),
        done=asyncio.get_running_loop().create_future(),
    )


class Jobs:
    """The orders that have not yet come true."""

    def __init__(self) -> None:
        self._open: dict[str, Job] = {}

    def follow(self, job: Job) -> None:
        """Follow one more order."""
        self._open[job.row.id] = job

    def find(self, job_id: str) -> Job | None:
        """Find an order that is still under way."""
        return self._open.get(job_id)

    def review(
        self, declaration: Declaration, observed: Observed, now: Moment, turned: int
    ) -> tuple[list[Job], Instant | None]:
        """Look at those that have been acted on: give who ended, and when to look again.

        `turned` is the version of the declaration that a whole turn has last gone by.
        """
        ended: list[Job] = []
        again: Instant | None = None
        for job in tuple(self._open.values()):
            if job.accepted.version > turned or isinstance(job.accepted.wish, ShutDown | Errand):
                continue
            at = self._look_at(job, declaration, observed, now.mono)
            if all(name in job.results for name in job.accepted.names):
                self._end(job, now)
                ended.append(job)
            elif at is not None:
                again = at if again is None else min(again, at)
        return ended, again

    def end_shutdown(self, now: Moment, error: str | None) -> list[Job]:
        """End the orders to shut down: only now is it known what they came to."""
        ended = [job for job in self._open.values() if isinstance(job.accepted.wish, ShutDown)]
        for job in ended:
            self._end(job, now, error)
        return ended

    def end_errand(
        self, job: Job, now: Moment, error: str | None, details: Mapping[str, object]
    ) -> None:
        """End an errand: only whoever carried it out knows what it came to."""
        job.details = details
        state = "done" if error is None else "failed"
        for name in job.accepted.names:
            job.results[name] = Result(name=name, ok=error is None, state=state, error=error)
        self._end(job, now, error)

    def close(self) -> None:
        """Let go of everybody who still waits."""
        for job in self._open.values():
            job.done.cancel()
        self._open.clear()

    def _look_at(
        self, job: Job, declaration: Declaration, observed: Observed, now: Instant
    ) -> Instant | None:
        again: Instant | None = None
        for name in job.accepted.names:
            if name in job.results:
                continue
            verdict = outcome(job.accepted, name, declaration, observed, now)
            if isinstance(verdict, Result):
                job.results[name] = verdict
            elif isinstance(verdict, Pending) and verdict.at is not None:
                again = verdict.at if again is None else min(again, verdict.at)
        return again

    def _end(self, job: Job, now: Moment, error: str | None = None) -> None:
        del self._open[job.row.id]
        results = tuple(job.results[name] for name in job.accepted.names)
        errors = [f"{result.name}: {result.error}" for result in results if not result.ok]
        if error is not None:
            errors = [error]  # said once, however many workers it is about
        job.row = replace(
            job.row,
            state="failed" if errors else "succeeded",
            updated_at=now.wall,
            finished_at=now.wall,
            error="; ".join(errors) or None,
        )
        if not job.done.done():
            job.done.set_result(results)


def endings(jobs: list[Job]) -> tuple[list[Caused], list[AuditEntry]]:
    """Tell how these orders ended: to whoever listens, and to the audit."""
    news = [Caused(_note(job), job.order.id) for job in jobs]
    audit = [
        audit_entry(
            job.order,
            job.accepted.names,
            outcome=job.row.state,
            at=job.row.finished_at,
            more=_more(job),
        )
        for job in jobs
    ]
    return news, audit


def _more(job: Job) -> Mapping[str, object]:
    """Give what an errand came to; why it failed stands nowhere else for good."""
    if job.row.error is None or not isinstance(job.accepted.wish, Errand):
        return job.details
    return {"error": job.row.error, **job.details}


def _note(job: Job) -> Event:
    if job.row.state == "succeeded":
        return order_note("order.done", job.order, job_id=job.row.id)
    return order_note("order.failed", job.order, job_id=job.row.id, error=job.row.error)
