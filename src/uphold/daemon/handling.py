"""Flags become orders: each handler is a wish, audited and followed like any other."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uphold.core import orders
from uphold.core.names import is_label
from uphold.core.orders import Refusal
from uphold.core.outcomes import patience
from uphold.errors import EXIT_USAGE, UpholdError
from uphold.inbox.flags import Flag
from uphold.inbox.handlers import find_handler
from uphold.inbox.obeying import Answer
from uphold.wire.wishes import WISHES, names_in, read_wish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from uphold.core.orders import Wish
    from uphold.core.outcomes import Result
    from uphold.core.specs import DeploySpec
    from uphold.daemon.tasks import Tasks
    from uphold.engine.jobs import Job
    from uphold.engine.supervisor import Supervisor
    from uphold.inbox.flags import Rejected

_CODE = (orders.UpdateCode, orders.RollBackCode)


def wish_of(flag: Flag, deploy: DeploySpec | None) -> Wish | None:
    """Say what a flag wishes; None if no handler of uphold itself is called so."""
    handler = find_handler(flag.handler)
    if handler is None or handler.wish is None:
        return None
    wish = handler.wish(flag)
    assert not isinstance(wish, Refusal)
    return aimed(wish, deploy)


def aimed(wish: Wish, deploy: DeploySpec | None) -> Wish:
    """Have a wish about code be about all who run from it, whoever's flag it was."""
    if deploy is not None and deploy.workers and isinstance(wish, _CODE):
        return replace(wish, names=deploy.workers)
    return wish


class Handling:
    """Carries flags out through the one door that every order takes."""

    def __init__(  # noqa: PLR0913, PLR0917 - its collaborators
        self,
        supervisor: Supervisor,
        deploy: Callable[[], DeploySpec | None],
        tasks: Tasks,
        mirrored: Callable[[], Any],
        consult: Callable[[Flag], Awaitable[Wish | None]],
        ending: asyncio.Event,
    ) -> None:
        self._supervisor = supervisor
        self._deploy = deploy
        self._tasks = tasks
        self._mirrored = mirrored
        """Brings the pause markers on the share in step with what is held."""
        self._consult = consult
        """Asks the plug-in that a flag is for; None if there is no such plug-in."""
        self._ending = ending
        """Set once nobody has time any more to wait for what an order comes to."""
        self._announced: dict[str, str] = {}
        """Jobs that wait for the flag of a task, as whoever wrote it has put on record."""
        self._queued: set[str] | None = None
        """Tasks whose flags are waited for; None: not read yet. A flood of nonsense must not cost
        a look into the journal each."""

    async def carry(self, flag: Flag) -> Answer:
        """Carry a flag out; whatever goes wrong becomes its answer."""
        try:
            return await self._carry(flag)
        except UpholdError as problem:
            return Answer(success=False, error=problem.message, details={"code": problem.code})
        except Exception as problem:  # noqa: BLE001 - the boundary of a flag: answered, then on
            return Answer(success=False, error=f"a mistake of uphold: {problem!r}")

    async def _carry(self, flag: Flag) -> Answer:
        announced = self._announced.pop(flag.task_id, None)
        try:
            wish = await self._wish(flag)
        except UpholdError as problem:
            if announced is not None:
                await self._close(flag.task_id, flag.file, problem.message)
            raise
        if wish is None:
            return Answer(success=False, error=f"there is no handler '{flag.handler}' here.")
        desk = self._supervisor.desk
        order = desk.order(
            wish,
            author=f"flag:{flag.sender}" if flag.sender else "flag",
            origin="flag",
            reason=flag.file,
            label=flag.label,
            task_id=flag.task_id,
        )
        order = order if announced is None else replace(order, id=announced)
        job = await desk.submit(order)
        if isinstance(job, Refusal):
            if announced is not None:
                await desk.forgo(order, names_in(wish), job.message)
            return Answer(success=False, error=job.message, details={"code": job.code})
        results = await self._results(job)
        if isinstance(wish, orders.PauseWorkers | orders.ResumeWorkers):
            await self._mirrored()
        if results is None:
            return _answer_of(job, job_id=job.row.id)
        if isinstance(wish, orders.Errand):
            return _answer_of(job)
        return _answer_of(job, state=results[0].state if results else None)

    async def _results(self, job: Job) -> Sequence[Result] | None:
        """Wait for what an order comes to; None if it goes on and nobody waits any longer.

        It may need what only the next flag orders. An errand has limits of its own, and whoever
        is told to end finishes it first.
        """
        if isinstance(job.accepted.wish, orders.Errand):
            # Whoever waits may be cancelled; the order goes on, and others wait for it too.
            return await asyncio.shield(job.done)
        limit = patience(job.accepted.wish, self._supervisor.snapshot().declaration)
        ending = asyncio.ensure_future(self._ending.wait())
        both: set[asyncio.Future[Any]] = {job.done, ending}
        try:
            await asyncio.wait(both, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
        return job.done.result() if job.done.done() else None

    async def _wish(self, flag: Flag) -> Wish | None:
        """Say what a flag wishes: by uphold's own table, or by a plug-in that is named."""
        deploy = self._deploy()
        own = wish_of(flag, deploy)
        if own is not None:
            return own
        theirs = await self._consult(flag)
        return None if theirs is None else aimed(theirs, deploy)

    async def known(self, task_id: str) -> Answer | None:
        """Find what a task came to that was taken before: no task has two effects."""
        found = await asyncio.to_thread(self._tasks.newest, task_id)
        came_to: Mapping[str, object] = {}
        if found is not None and found["state"] == "running":
            job = self._supervisor.desk.job(str(found["job_id"]))
            if job is not None:  # as an update that another supervisor began and this one ends
                await self._results(job)
                came_to = job.details
            await self._supervisor.sync()  # what it came to may be on its way to the disk
            found = await asyncio.to_thread(self._tasks.newest, task_id)
        if found is None:
            return None
        if found["started_at"] is None:
            # Waiting for this very flag, even if another with its name has been refused.
            self._announced[task_id] = str(found["job_id"])
            return None
        return Answer(
            success=found["state"] == "succeeded",
            error=_error_of(found["state"], found["job_id"], found["last_error"]),
            details={**came_to, "duplicate_of": found["job_id"], "state": found["state"]},
            job_id=str(found["job_id"]),
        )

    async def announce(self, params: Mapping[str, Any]) -> object:
        """Put a flag on record that somebody is about to write: a queued job, and an audit row."""
        task, handler, worker = (
            str(params.get(key) or "") for key in ("task_id", "handler", "worker_id")
        )
        label = None if params.get("label") is None else str(params["label"])
        given = params.get("params")
        flag = Flag(
            file="",
            task_id=task,
            handler=handler,
            worker_id=worker,
            label=label,
            params=given if isinstance(given, dict) else {},
        )
        said = task and worker and (label is None or is_label(label))
        wish = await self._wish(flag) if said else None
        if wish is None:
            raise UpholdError(
                "'announce' needs task_id, handler and worker_id of a flag.",
                code="UPH_ORDER_INVALID",
                exit_code=EXIT_USAGE,
            )
        desk = self._supervisor.desk
        order = desk.order(
            wish,
            author=str(params.get("author") or "unknown")[:200],
            origin="flag",
            label=flag.label,
            task_id=flag.task_id,
        )
        row = await desk.announce(order, names_in(wish))
        if self._queued is not None:
            self._queued.add(task)
        return {"job_id": row.id, "task_id": row.task_id}

    async def refused(self, rejected: Rejected) -> None:
        """Close the job of a flag that was put on record and turned out to be no good."""
        task = rejected.task_id
        if self._queued is None:
            self._queued = await asyncio.to_thread(self._tasks.waiting)
        if task is None or task not in self._queued:
            return
        await self._close(task, rejected.file, rejected.reason)
        self._queued.discard(task)

    async def _close(self, task: str, file: str, reason: str) -> None:
        """Put on record that what was announced will not be, under the verb it was announced by."""
        found = await asyncio.to_thread(self._tasks.newest, task)
        if found is None or found["state"] != "queued":
            return
        worker = str(found["target_ref"]).partition(",")[0]
        desk = self._supervisor.desk
        order = desk.order(
            _called(str(found["job_type"]), worker),
            author="flag",
            origin="flag",
            reason=file,
            label=None if found["label"] is None else str(found["label"]),
            task_id=task,
        )
        order = replace(order, id=str(found["job_id"]))
        await desk.forgo(order, (worker,), reason)


def _called(verb: str, worker: str) -> Wish:
    """Make a wish for the record, which looks at nothing but its verb."""
    kind = next((kind for kind in WISHES if verb == kind.VERB), orders.Diagnose)
    view = {"names": [worker], "name": worker, "replicas": 0, "signal": "TERM"}
    return read_wish({"wish": kind.__name__, **view})


def _answer_of(job: Job, **more: object) -> Answer:
    return Answer(
        success=job.row.state == "succeeded",
        error=_error_of(job.row.state, job.row.id, job.row.error),
        details={**job.details, **more},
        job_id=job.row.id,
    )


def _error_of(state: str, job_id: str, error: str | None) -> str | None:
    return f"it is still under way as {job_id}." if state == "running" else error
