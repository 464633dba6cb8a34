"""Updates and rollbacks as errands: workers kept down and verified, git, workers back, the gate.

What git does is the business of `uphold.deploy`; here it meets the engine. How far it has come is
on the disk before each step, so that the next supervisor can end it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.core import orders
from uphold.core.events import Note
from uphold.core.orders import Refusal
from uphold.core.statuses import Admin
from uphold.daemon.gating import watch
from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.installing import Installer
from uphold.deploy.records import DeployRecord, Outcome, Step, Verb
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating, finished
from uphold.engine.errands import Outcome as Ending
from uphold.errors import Malformed, UpholdError
from uphold.host.files import write_atomically
from uphold.wire.codecs import decode, encode

if TYPE_CHECKING:
    from uphold.core.orders import Order
    from uphold.core.specs import DeploySpec
    from uphold.engine.supervisor import Supervisor
    from uphold.ports.clocks import Clock
    from uphold.ports.logs import Log

_REST: Final = 2.0
"""Seconds between the end and the start of a worker that is restarted by a flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What lies on the disk while an update or rollback is under way."""

    record: DeployRecord
    names: tuple[str, ...]
    author: str
    label: str | None = None
    task_id: str | None = None


class Deploys:
    """Carries out what changes the code that workers run from."""

    def __init__(
        self, path: Path, deploy: Callable[[], DeploySpec | None], clock: Clock, log: Log
    ) -> None:
        self._path = path
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

    async def take_up(self) -> None:
        """Have what the last supervisor did not end ended; nobody stays down for it."""
        left = self._read()
        snapshot = self._engine.snapshot()
        kept_down = tuple(
            name for name, entry in snapshot.declaration.workers.items() if entry.override.withheld
        )
        if left is not None and not left.record.ended:
            names = tuple(n for n in left.names if n in snapshot.declaration.workers)
            desk = self._engine.desk
            order = desk.order(
                orders.FinishDeploy(names=names),
                author=left.author,
                origin="deploy",
                reason=f"{left.record.job} was interrupted",
                label=left.label,
                task_id=left.task_id,
            )
            await desk.submit(order)
        elif kept_down:
            # Not waited for: one of them may still take its time to end.
            wish = orders.ReleaseWorkers(names=kept_down)
            desk = self._engine.desk
            await desk.submit(
                desk.order(wish, author="supervisor", origin="deploy", reason="start")
            )

    async def update(self, order: Order) -> Ending:
        """Bring the checkout up to date; the old commit comes back if it does not do well."""
        assert isinstance(order.wish, orders.UpdateCode)
        packages = order.wish.dependencies
        work = self._work()
        if isinstance(work, Ending):
            return work
        try:
            record = await asyncio.to_thread(work.updating.check, order.id, packages=packages)
        except UpholdError as refusal:
            return _refused(refusal)
        if record.target == record.before and not packages:
            return Ending(details={"before_commit": record.before, "up_to_date": True})
        return await self._carry_out(order, work, record)

    async def roll_back(self, order: Order) -> Ending:
        """Undo the last commits."""
        assert isinstance(order.wish, orders.RollBackCode)
        work = self._work()
        if isinstance(work, Ending):
            return work
        try:
            check = work.rolling_back.check
            record = await asyncio.to_thread(check, order.id, order.wish.commits)
            preview = await asyncio.to_thread(work.rolling_back.preview, record)
        except UpholdError as refusal:
            return _refused(refusal)
        for line in preview:
            self._say(order, "INFO", f"to be reverted: {line}")
        return await self._carry_out(order, work, record)

    async def finish(self, order: Order) -> Ending:
        """End what another supervisor began, by the written rule of its step."""
        left, work = self._read(), self._work()
        if left is None or isinstance(work, Ending):
            await self._release(order)
            return work if isinstance(work, Ending) else Ending()
        record = left.record
        operation = work.rolling_back if record.verb is Verb.ROLLBACK else work.updating
        problem = await self._keep_down(order)
        if problem is not None:
            return Ending(error=problem)
        note = self._note(left)
        came = await asyncio.to_thread(operation.recover, record, note)
        return await self._bring_back(order, work, came, left)

    async def restart(self, order: Order) -> Ending:
        """End workers, let a moment pass, and have them up again; those that are held stay down."""
        assert isinstance(order.wish, orders.RestartSlowly)
        held = [name for name in order.wish.names if self._held(name)]
        if held:
            return Ending(details={"held": True, "workers": held})
        problem = await self._keep_down(order)
        if problem is None:
            await self._clock.sleep(_REST)
        error = await self._release(order)
        return Ending(error=problem or error, details={"held": False})

    async def _carry_out(self, order: Order, work: _Work, record: DeployRecord) -> Ending:
        names = order.wish.names  # type: ignore[union-attr]
        written = Written(
            record=record,
            names=names,
            author=order.author,
            label=order.label,
            task_id=order.task_id,
        )
        note = self._note(written)
        await asyncio.to_thread(note, record)
        await self._news("deploy.started", order, {"before_commit": record.before})
        problem = await self._keep_down(order)
        if problem is not None:
            await self._release(order)
            self._forget()
            await self._news("deploy.failed", order, {"error": problem})
            return Ending(error=problem, details={"before_commit": record.before})
        operation = work.rolling_back if record.verb is Verb.ROLLBACK else work.updating
        came = await asyncio.to_thread(operation.apply, record, note)
        return await self._bring_back(order, work, came, written)

    async def _bring_back(
        self, order: Order, work: _Work, came: Outcome, written: Written
    ) -> Ending:
        """Start the workers with whatever is checked out now, and see whether they do well."""
        self._say_commands(order, came)
        details = _told(came)
        error = came.error or None
        if not came.runnable:
            # Neither the old code nor the new: nobody runs from a mixture. The next start, or the
            # next update, tries again to put it in order.
            await self._news("deploy.failed", order, {"error": error})
            return Ending(error=error, details={**details, "kept_down": True})
        unwell = await self._release(order)
        spec = self._deploy()
        judged = came.success and came.record.verb is not Verb.ROLLBACK and spec is not None
        if judged and spec is not None:
            names = order.wish.names  # type: ignore[union-attr]
            if unwell is None:
                unwell = await watch(self._engine, self._clock, names, spec.gate.healthy_for)
        if unwell is not None and judged and spec is not None and spec.gate.rollback:
            self._say(order, "ERROR", f"the update is taken back: {unwell}")
            await self._keep_down(order)
            why = f"after the update {unwell}"
            note = self._note(written)
            back = await asyncio.to_thread(
                work.updating.return_to, came.record, note, why=why, code="UPH_DEPLOY_UNWELL"
            )
            self._say_commands(order, back)
            again = await self._release(order)
            details = {**_told(back), "returned": back.record.step is Step.RETURNED}
            error = back.error or why
            if again is not None:
                details["after_return"] = again
        elif unwell is not None and error is None:
            error = unwell
        elif came.success:
            await asyncio.to_thread(self._note(written), finished(came.record))
        self._forget_if_ended()
        kind = "deploy.rolled_back" if came.record.verb is Verb.ROLLBACK else "deploy.updated"
        about = {key: details.get(key) for key in ("before_commit", "after_commit", "final_commit")}
        await self._news("deploy.failed" if error else kind, order, {**about, "error": error})
        return Ending(error=error, details={**details, "held": self._all_held(order)})

    def _held(self, name: str) -> bool:
        entry = self._engine.snapshot().declaration.workers.get(name)
        return entry is not None and entry.admin is Admin.PAUSED

    def _all_held(self, order: Order) -> bool:
        names = order.wish.names  # type: ignore[union-attr]
        return bool(names) and all(map(self._held, names))

    async def _keep_down(self, order: Order) -> str | None:
        """Stop the workers and see that they are gone; say why if that is impossible."""
        names = order.wish.names  # type: ignore[union-attr]
        wish = orders.WithholdWorkers(names=names)
        problem = await self._tell_workers(wish, order.author, f"for {order.id}", order.label)
        return None if problem is None else f"nothing was changed, as {problem}"

    async def _release(self, order: Order) -> str | None:
        names = order.wish.names  # type: ignore[union-attr]
        wish = orders.ReleaseWorkers(names=names)
        return await self._tell_workers(wish, order.author, f"for {order.id}", order.label)

    async def _tell_workers(
        self, wish: Any, author: str, reason: str, label: str | None = None
    ) -> str | None:
        if not wish.names:
            return None
        desk = self._engine.desk
        job = await desk.submit(
            desk.order(wish, author=author, origin="deploy", reason=reason, label=label)
        )
        if isinstance(job, Refusal):
            return job.message
        await job.done
        return job.row.error

    def _work(self) -> _Work | Ending:
        spec = self._deploy()
        if spec is None:
            return Ending(error="there is no [deploy] section that says what is to be updated")
        git = Git(spec.repo)
        checkout = Checkout(git, remote=spec.remote, branch=spec.branch)
        installer = Installer(
            git,
            python=spec.python,
            requirements=spec.requirements,
            strict=spec.pip == "strict",
        )
        return _Work(Updating(checkout, installer), RollingBack(checkout))

    def _note(self, written: Written) -> Callable[[DeployRecord], None]:
        def note(record: DeployRecord) -> None:
            content = Written(
                record=record,
                names=written.names,
                author=written.author,
                label=written.label,
                task_id=written.task_id,
            )
            write_atomically(self._path, encode(content))

        return note

    def _read(self) -> Written | None:
        try:
            return decode(Written, self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, Malformed) as cause:
            self._log.write("ERROR", "deploy.unreadable", f"{self._path} cannot be read: {cause}")
            return None

    def _forget_if_ended(self) -> None:
        left = self._read()
        if left is not None and left.record.ended:
            self._forget()

    def _forget(self) -> None:
        self._path.unlink(missing_ok=True)

    def _say_commands(self, order: Order, came: Outcome) -> None:
        """Put everything the programs said into the log, under the task's name."""
        for each in came.details.get("commands", ()):
            ended = "timed out" if each.get("timed_out") else f"ended with {each.get('returncode')}"
            text = f"{each.get('command')} {ended}: {each.get('output') or 'no output'}"
            self._say(order, "INFO" if came.success else "WARNING", text)

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


@dataclass(frozen=True, slots=True)
class _Work:
    """The two things that can be done to a checkout."""

    updating: Updating
    rolling_back: RollingBack


def _told(came: Outcome) -> dict[str, Any]:
    """Give what goes on record; what the programs said is in the log."""
    return {key: value for key, value in came.details.items() if key != "commands"}


def _refused(refusal: UpholdError) -> Ending:
    return Ending(
        error=refusal.message, details={"code": refusal.code, "remedy": refusal.remedy or None}
    )
