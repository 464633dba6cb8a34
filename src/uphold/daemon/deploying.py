"""Updates and rollbacks as errands: workers kept down and verified, git, workers back, the gate.

What git does is the business of `uphold.deploy`; here it meets the engine. How far it has come is
on the disk before each step, so that the next supervisor can end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from uphold.core import orders
from uphold.core.events import Note
from uphold.core.orders import Refusal
from uphold.core.statuses import ALIVE, Admin
from uphold.daemon.gating import TO_GET_READY, ended, restarts_of, watch
from uphold.daemon.noting import Notes, Written
from uphold.deploy.records import DeployRecord, Outcome, Step, Verb
from uphold.deploy.updating import finished
from uphold.deploy.working import Work, work_on
from uphold.engine.errands import Outcome as Ending
from uphold.errors import HostFailure, NotPermitted, UpholdError

if TYPE_CHECKING:
    from uphold.core.orders import Order
    from uphold.core.specs import DeploySpec
    from uphold.engine.jobs import Job
    from uphold.engine.supervisor import Supervisor
    from uphold.ports.clocks import Clock
    from uphold.ports.logs import Log

Value = TypeVar("Value")
_SHORT: Final = 12
_TOLD: Final = ("before_commit", "after_commit", "final_commit", "kept_down")
_US: Final = "deploy"
_LOGGED: Final = frozenset({"commands", "trace"})
_WHOLE: Final = (Step.PREPARED, Step.APPLIED)
"""Where the code is the old one or the new one as far as anybody can say without looking at it."""
_PUT_BACK: Final = "Put [deploy] back as it was; then uphold restart puts the checkout right."
_REST: Final = 2.0
"""Seconds between the end and the start of a worker that is restarted by a flag."""


class Deploys:
    """Carries out what changes the code that workers run from."""

    def __init__(
        self, path: Path, deploy: Callable[[], DeploySpec | None], clock: Clock, log: Log
    ) -> None:
        self._notes = Notes(path)
        self._deploy = deploy
        self._clock = clock
        self._log = log
        self._supervisor: Supervisor | None = None

    def attend(self, supervisor: Supervisor) -> None:
        """Learn for whom all this is done."""
        self._supervisor = supervisor

    def errands(self) -> dict[type, Any]:
        """Say which orders are carried out here."""
        return {
            orders.UpdateCode: self.update,
            orders.RollBackCode: self.roll_back,
            orders.FinishDeploy: self.finish,
            orders.RestartSlowly: self.restart,
        }

    async def take_up(self) -> Job | None:
        """Have what the last supervisor did not end ended; nobody stays down for it.

        Gives the order to do so, if there is one; it is carried out in its turn.
        """
        desk, declaration = self._engine.desk, self._engine.snapshot().declaration
        workers, kept_down = declaration.workers, sorted(declaration.withheld)
        try:
            left = self._notes.read()
        except HostFailure as unknown:  # nobody knows what they would run from
            wish = orders.FinishDeploy(names=tuple(n for n in kept_down if n in workers))
            why = unknown.message
            return await self._begin(desk.order(wish, author="supervisor", reason=why, origin=_US))
        if left is None:
            self._notes.forget()  # at most what has ended lies there
        names = () if left is None else tuple(n for n in left.names if n in workers)
        others = tuple(n for n in kept_down if left is None or n not in left.names)
        if others:
            release = orders.ReleaseWorkers(names=others)
            await desk.submit(desk.order(release, author="supervisor", origin=_US))
        if left is None:
            return None
        order = desk.order(
            orders.FinishDeploy(names=names),
            author=left.author,
            origin=_US,
            reason=f"{left.record.job} was interrupted",
            label=left.label,
            task_id=left.task_id,
        )
        return await self._begin(order)

    async def _begin(self, order: Order) -> Job | None:
        job = await self._engine.desk.submit(order)
        if isinstance(job, Refusal):
            self._say(order, "ERROR", f"{order.reason}, and cannot be ended: {job.message}")
            return None
        return job

    async def update(self, order: Order) -> Ending:
        """Bring the checkout up to date; the old commit comes back if it does not do well."""
        assert isinstance(order.wish, orders.UpdateCode)
        if (still_open := await self._end_earlier(order)) is not None:
            return still_open
        packages = order.wish.dependencies
        work = self._work()
        if isinstance(work, Ending):
            return work
        try:
            check = partial(work.updating.check, packages=packages, label=order.label)
            record = await _aside(check, order.id)
        except UpholdError as refusal:
            return _refused(refusal)
        if record.target == record.before and not packages:
            at = record.before[:_SHORT]
            return Ending(details={"before_commit": at, "after_commit": at, "up_to_date": True})
        return await self._carry_out(order, work, record)

    async def roll_back(self, order: Order) -> Ending:
        """Undo the last commits."""
        assert isinstance(order.wish, orders.RollBackCode)
        if (still_open := await self._end_earlier(order)) is not None:
            return still_open
        work = self._work()
        if isinstance(work, Ending):
            return work
        try:
            check = partial(work.rolling_back.check, label=order.label)
            record = await _aside(check, order.id, order.wish.commits)
            preview = await _aside(work.rolling_back.preview, record)
        except UpholdError as refusal:
            return _refused(refusal)
        for line in preview:
            self._say(order, "INFO", f"to be reverted: {line}")
        return await self._carry_out(order, work, record)

    async def finish(self, order: Order) -> Ending:
        """End what another supervisor began, by the written rule of its step."""
        try:
            left = self._notes.read()
        except HostFailure as unknown:
            return await self._stay_down(order, unknown.message, unknown.remedy)
        if left is None:
            await self._release(order)
            return Ending()
        work = self._work(left)
        # All that it was begun for: some may be out of the file just now, and come back.
        record, order = left.record, replace(order, wish=orders.FinishDeploy(names=left.names))
        if isinstance(work, Ending):
            if record.step not in _WHOLE:
                error = f"{record.job} cannot be ended, as {work.error}"
                return await self._stay_down(order, error, _PUT_BACK)
            await self._release(order)
            return work
        # What had not begun needs nobody to be stopped.
        problem = None if record.step is Step.PREPARED else await self._keep_down(order)
        if problem is not None:
            if record.step is Step.APPLIED:  # the new code is whole: whoever is down may have it
                await self._release(order)
            return Ending(error=f"{record.job} cannot be ended, as {problem}")
        came = await _aside(work.recover, record, self._notes.writer(left))
        return await self._bring_back(order, work, came, left)

    async def _stay_down(self, order: Order, error: str, remedy: str) -> Ending:
        """Let nobody run from what may be a mixture, and what cannot be put right from here."""
        await self._keep_down(order)
        self._say(order, "ERROR", f"{error} {remedy}")
        remedy = f"The workers stay down, as their code may be a mixture. {remedy}"
        await self._news("deploy.failed", order, {"kept_down": True, "error": error})
        return Ending(error=error, details={"kept_down": True, "remedy": remedy})

    async def _end_earlier(self, order: Order) -> Ending | None:
        """End what an earlier order left open; tell how that went if it still is."""
        if self._notes.read() is None:
            return None
        ending = await self.finish(order)
        return None if self._notes.read() is None else ending

    async def restart(self, order: Order) -> Ending:
        """End workers, let a moment pass, and have them up again; those that are held stay down."""
        assert isinstance(order.wish, orders.RestartSlowly)
        if (still_open := await self._end_earlier(order)) is not None:
            return still_open
        held = [name for name in order.wish.names if self._held(name)]
        if held:
            return Ending(details={"held": True, "workers": held})
        problem = await self._keep_down(order)
        if problem is None:
            await self._clock.sleep(_REST)
        error = await self._release(order)
        return Ending(error=problem or error, details={"held": False})

    async def _carry_out(self, order: Order, work: Work, record: DeployRecord) -> Ending:
        names = order.wish.names  # type: ignore[union-attr]
        written = Written(
            record=record,
            names=names,
            author=order.author,
            label=order.label,
            task_id=order.task_id,
            terms=work.spec,
        )
        note = self._notes.writer(written)
        try:
            await _aside(note, record)
        except OSError as cause:
            path = self._notes.path
            error = f"nothing was changed, as {path} cannot be written: {cause.strerror}"
            return Ending(error=error, details={"before_commit": record.before[:_SHORT]})
        await self._news("deploy.started", order, {"before_commit": record.before})
        problem = await self._keep_down(order)
        if problem is not None:
            await self._release(order)
            self._notes.forget()
            error = f"nothing was changed, as {problem}"
            await self._news("deploy.failed", order, {"error": error})
            return Ending(error=error, details={"before_commit": record.before[:_SHORT]})
        came = await _aside(work.apply, record, note)
        return await self._bring_back(order, work, came, written)

    async def _bring_back(
        self, order: Order, work: Work, came: Outcome, written: Written
    ) -> Ending:
        """Start the workers with whatever is checked out now, and see whether they do well."""
        self._say_commands(order, came)
        details, error = _told(came), came.error or None
        if not came.runnable:
            # Neither the old code nor the new: nobody runs from a mixture. The next start, or the
            # next order, tries again to put it in order.
            details |= work.kept_down()
            about = {key: details.get(key) for key in _TOLD}
            await self._news("deploy.failed", order, {**about, "error": error})
            return Ending(error=error, details=details)
        names, gate = self._names(order), work.spec.gate
        restarts = restarts_of(self._engine.snapshot(), names)
        unwell = await self._release(order)
        judged = came.success and came.record.verb is not Verb.ROLLBACK
        if judged and unwell is None:
            unwell = await watch(self._engine, self._clock, names, gate.healthy_for, restarts)
        if judged and unwell is not None and gate.rollback:
            details, error = await self._take_back(order, work, came, written, unwell)
        else:
            error = error or unwell
            if came.success:
                await self._finish(written, came.record)
        self._notes.forget_if_ended()
        kind = "deploy.rolled_back" if came.record.verb is Verb.ROLLBACK else "deploy.updated"
        about = {key: details.get(key) for key in _TOLD}
        await self._news("deploy.failed" if error else kind, order, {**about, "error": error})
        return Ending(error=error, details={**details, "held": self._all_held(order)})

    async def _take_back(
        self, order: Order, work: Work, came: Outcome, written: Written, unwell: str
    ) -> tuple[dict[str, Any], str]:
        """Put the old commit back, as the workers are not well; give details and error."""
        why = f"after the update {unwell}"
        self._say(order, "ERROR", f"the update is taken back: {unwell}")
        problem = await self._keep_down(order)
        if problem is not None:  # its code is not changed under it; the next start tries again
            await self._release(order)
            error = f"{why}; it cannot be taken back, as {problem}"
            return {**_told(came), "returned": False}, error
        go_back = partial(work.return_to, why=why, code="UPH_DEPLOY_UNWELL")
        back = await _aside(go_back, came.record, self._notes.writer(written))
        self._say_commands(order, back)
        details = {**_told(back), "returned": back.record.step is Step.RETURNED}
        if not back.runnable:
            return {**details, **work.kept_down()}, back.error
        again = await self._release(order)
        if again is not None:
            details["after_return"] = again
        return details, back.error or why

    async def _finish(self, written: Written, record: DeployRecord) -> None:
        """Write down that nothing is left to do."""
        try:
            await _aside(self._notes.writer(written), finished(record))
        except OSError as cause:  # then the next start looks at the workers once more
            text = f"{self._notes.path} cannot be written: {cause.strerror}"
            self._log.write("ERROR", "deploy", text)

    def _held(self, name: str) -> bool:
        entry = self._engine.snapshot().declaration.workers.get(name)
        return entry is not None and entry.admin is Admin.PAUSED

    def _all_held(self, order: Order) -> bool:
        names = order.wish.names  # type: ignore[union-attr]
        return bool(names) and all(map(self._held, names))

    def _names(self, order: Order) -> tuple[str, ...]:
        """Name those of an order who are declared now: the file may have changed since."""
        workers = self._engine.snapshot().declaration.workers
        return tuple(name for name in order.wish.names if name in workers)  # type: ignore[union-attr]

    async def _keep_down(self, order: Order) -> str | None:
        """Stop the workers and see that they are gone; say why if that is impossible."""
        names = order.wish.names  # type: ignore[union-attr]
        problem = await self._tell_workers(order, orders.WithholdWorkers(names=names))
        snapshot = self._engine.snapshot()
        observed = snapshot.observed
        slots = [observed.slots[slot] for name in names for slot in observed.of(name)]
        if snapshot.declaration.paused and not any(status.state in ALIVE for status in slots):
            return None  # it stops nobody now, and nobody is up anyway
        return problem

    async def _release(self, order: Order) -> str | None:
        """Have the workers up again, as far as anybody wants that; say what is wrong with them."""
        wish = orders.ReleaseWorkers(names=order.wish.names)  # type: ignore[union-attr]
        problem = await self._tell_workers(order, wish, within=TO_GET_READY)
        return None if self._engine.snapshot().declaration.paused else problem

    async def _tell_workers(
        self, order: Order, wish: orders.Workers, within: float | None = None
    ) -> str | None:
        if not wish.names:
            return None
        desk = self._engine.desk
        job = await desk.submit(
            desk.order(
                wish,  # type: ignore[arg-type]
                author=order.author,
                origin=_US,
                reason=f"for {order.id}",
                label=order.label,
            )
        )
        if isinstance(job, Refusal):
            return job.message
        if not await ended(job, self._clock, within):
            return f"{', '.join(self._names(order))} was not up within {within:g} s"
        return job.row.error

    def _work(self, left: Written | None = None) -> Work | Ending:
        """Find the checkout: of what is to be ended the one where that was begun.

        [deploy] may name another by now, or none. Only a checkout that is not there any more may
        have been moved to where [deploy] says. How the workers are judged is a matter of today.
        """
        spec = self._deploy()
        if left is not None and left.terms is not None and _is_there(left.terms.repo):
            spec = replace(left.terms, gate=left.terms.gate if spec is None else spec.gate)
        if spec is None:
            return Ending(error="there is no [deploy] section that says what is to be updated")
        return work_on(spec)

    def _say_commands(self, order: Order, came: Outcome) -> None:
        """Put everything the programs said into the log, under the task's name."""
        for each in came.details.get("commands", ()):
            ended = "timed out" if each.get("timed_out") else f"ended with {each.get('returncode')}"
            text = f"{each.get('command')} {ended}: {each.get('output') or 'no output'}"
            self._say(order, "INFO" if came.success else "WARNING", text)
        if "trace" in came.details:
            self._say(order, "ERROR", f"please report this: {came.details['trace']}")

    def _say(self, order: Order, level: str, text: str) -> None:
        self._log.write(level, "deploy", text, task_id=order.task_id or order.id, label=order.label)

    async def _news(self, kind: str, order: Order, payload: dict[str, Any]) -> None:
        note = Note(
            type=kind,
            entity_type="deploy",
            entity_id=order.id,
            payload={"verb": order.wish.VERB, "label": order.label, **payload},
            severity="error" if kind == "deploy.failed" else "info",
        )
        await self._engine.tell(note)

    @property
    def _engine(self) -> Supervisor:
        assert self._supervisor is not None
        return self._supervisor


def _is_there(checkout: str) -> bool:
    """Tell whether a checkout may still be where it was; what cannot be seen counts as there."""
    try:
        return Path(checkout).is_dir()
    except OSError:
        return True


async def _aside(work: Callable[..., Value], *words: Any) -> Value:
    """Do it on a thread; whoever cancels waits, as nobody may meet a git that is still at work."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *words))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


def _told(came: Outcome) -> dict[str, Any]:
    """Give what goes on record; what the programs said is in the log."""
    told = {key: value for key, value in came.details.items() if key not in _LOGGED}
    return {**told, "code": came.code} if came.code else told


def _refused(refusal: UpholdError) -> Ending:
    told: dict[str, Any] = {"code": refusal.code, "remedy": refusal.remedy or None}
    if isinstance(refusal, NotPermitted):
        told["refused"] = True
    return Ending(error=refusal.message, details=told)
