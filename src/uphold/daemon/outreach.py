"""What only some supervisors have: a share with an inbox, a checkout to update, reports.

Nothing of it is imported before it is needed; a supervisor without these pays nothing for them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uphold.core import orders
from uphold.errors import UpholdError
from uphold.host.beats import unanswered

if TYPE_CHECKING:
    from uphold.config.revisions import FileConfig
    from uphold.core.notices import Refused
    from uphold.core.orders import Order
    from uphold.core.specs import InboxSpec
    from uphold.daemon.deploying import Deploys
    from uphold.daemon.reporting import Reports
    from uphold.daemon.sharing import ShareLife
    from uphold.daemon.tasks import Tasks
    from uphold.engine.errands import Outcome, Run
    from uphold.engine.jobs import Job
    from uphold.engine.supervisor import Supervisor
    from uphold.host.beats import Written
    from uphold.host.homes import Home
    from uphold.inbox.obeying import Deed
    from uphold.inbox.reaching import Begin
    from uphold.inbox.shares import Inbox, Share
    from uphold.ports.clocks import Clock
    from uphold.ports.logs import Log
    from uphold.wire.redaction import Redactor

_CODE = (orders.UpdateCode, orders.RollBackCode, orders.FinishDeploy, orders.RestartSlowly)
_REPORTS = (orders.Diagnose, orders.VerifyDatabase)

_BURST = 0.05
_LONGEST_BURST = 1.0
"""Seconds between news and the look that follows, at least and at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What there is around a supervisor that reaches out."""

    home: Home
    config: FileConfig
    environ: Mapping[str, str]
    clock: Clock
    log: Log
    redactor: Callable[[], Redactor]
    supervisor_id: str
    children: set[int]
    """Processes whose end nobody else may take."""
    only: tuple[str, ...] = ()
    """The workers whose flags are obeyed; none: those of all."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    """Once it is set no flag is begun any more, and none but errands is waited for."""
    tasks: Tasks | None = None
    """Who remembers what became of tasks; None: the journal of the home."""
    begin: Begin | None = None
    """Who starts the helpers of a share; None: they are processes."""


class Outreach:
    """Brings share, checkout and reports along when they are asked for."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._supervisor: Supervisor | None = None
        self._deploys: Deploys | None = None
        self._reports: Reports | None = None
        self._life: ShareLife | None = None
        self._closed = False
        self._stirred = asyncio.Event()
        """There is reason to look now: another configuration, or something in the inbox."""
        self._loop = asyncio.get_running_loop()
        around.config.subscribe(self._configured)

    def errands(self) -> dict[type, Run]:
        """Say which orders are carried out here; whoever does it comes when needed."""

        async def code(order: Order) -> Outcome:
            run: Run = self._deploying().errands()[type(order.wish)]
            return await run(order)

        async def report(order: Order) -> Outcome:
            run: Run = self._reporting().errands()[type(order.wish)]
            return await run(order)

        return {**dict.fromkeys(_CODE, code), **dict.fromkeys(_REPORTS, report)}

    def attend(self, supervisor: Supervisor) -> None:
        """Learn who is supervised."""
        self._supervisor = supervisor

    def heed(self, line: bytes) -> None:
        """Keep a line of the supervisor's log for the share, if there is one."""
        if self._life is not None:
            self._life.heed(line)

    async def take_up(self) -> Job | None:
        """Have ended what an earlier supervisor left half done; give the order to, if any."""
        around = self._around
        unfinished = (around.home.path / "deploy.json").exists()
        if unfinished or self._engine.snapshot().declaration.withheld:
            return await self._deploying().take_up()
        return None

    async def run(self) -> None:
        """Look at the share for ever, whichever the file names."""
        await self.take_up()
        while True:
            life = await self._current()
            if life is None:
                await self._stirred.wait()
            else:
                began = self._now
                await self._look_at(life)
                await self._pause(life.spec.poll_every, self._now - began)
            self._stirred.clear()

    async def look(self) -> tuple[list[Deed], str | None]:
        """Look at the share once; give what was done, and what is wrong with it."""
        life = await self._current()
        return ([], None) if life is None else await life.look()

    async def beat(self, *, success: bool, error: str | None, actions: list[Any]) -> None:
        """Leave a heartbeat on the share, if there is one."""
        if self._life is not None:
            await self._life.beat(success=success, error=error, actions=actions)

    async def announce(self, params: Mapping[str, Any]) -> object:
        """Put a flag on record that somebody is about to write."""
        life = await self._current()
        if life is None or life.handling is None:
            raise UpholdError(
                "there is no [inbox] here that a flag could be for.",
                code="UPH_INBOX_NOT_CONFIGURED",
                remedy="Add one with the share.",
            )
        return await life.handling.announce(params)

    def reading(self, path: str) -> Awaitable[Written | Refused] | None:
        """Have a heartbeat file that lies on the share read by its helper; None: it does not."""
        spec: InboxSpec | None = self._around.config.current.settings.inbox
        if spec is None:
            return None
        path = os.path.normpath(path)
        below = path.removeprefix(f"{os.path.normpath(spec.share)}/")
        return None if below == path else self._read_beat(path, below)

    def shown(self) -> dict[str, Any] | None:
        """Give how the share stands, for `status`; None where none is configured."""
        spec: InboxSpec | None = self._around.config.current.settings.inbox
        if spec is None:
            return None
        known = {} if self._life is None or self._life.spec != spec else self._life.shown()
        return {
            "path": self._around.redactor().text(spec.share),
            "state": "unknown",
            "since": None,
            "watched": None,
            "polled_because": None,
            "poll_seconds": spec.poll_every,
            "last_error": None,
            **known,
        }

    async def close(self) -> None:
        """Let go of the share, for good."""
        self._closed = True
        self._around.config.unsubscribe(self._configured)
        await self._leave()

    async def _leave(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            await life.close()

    async def _look_at(self, life: ShareLife) -> None:
        """Look at a share; a mistake of ours in one look must not end all others."""
        try:
            await life.look(watch=True)
        except asyncio.CancelledError as problem:
            task = asyncio.current_task()
            if (task is not None and task.cancelling()) or not self._engine.running:
                raise
            self._tell_failed(problem)  # nobody has cancelled us: something in the look was
        except Exception as problem:  # noqa: BLE001 - the boundary of a look: told, then on
            self._tell_failed(problem)

    def _tell_failed(self, problem: BaseException) -> None:
        self._around.log.write("ERROR", "share.failed", f"a look at the share: {problem!r}")

    def _configured(self, _revision: object) -> None:
        """Hear of a new configuration, from whatever thread read it."""
        self._loop.call_soon_threadsafe(self._stirred.set)

    async def _pause(self, seconds: float, took: float) -> None:
        """Wait until it is time, or something stirs; `took` is how long the last look was."""
        waiting = asyncio.ensure_future(self._stirred.wait())
        sleeping = asyncio.ensure_future(self._around.clock.sleep(seconds))
        try:
            await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()
        if self._stirred.is_set():
            # What comes in a burst is looked at together; whoever floods us has half of our time.
            await self._around.clock.sleep(min(max(took, _BURST), _LONGEST_BURST, seconds))

    async def _current(self) -> ShareLife | None:
        """Give the share that the file names now."""
        wanted: InboxSpec | None = self._around.config.current.settings.inbox
        if self._life is not None and self._life.spec != wanted:
            await self._leave()
        if self._life is None and wanted is not None and not self._closed:
            from uphold.daemon.sharing import ShareLife  # noqa: PLC0415 - with a share only

            around = self._around
            self._life = ShareLife(
                wanted,
                settings=lambda: around.config.current.settings,
                supervisor_id=around.supervisor_id,
                home=around.home,
                clock=around.clock,
                log=around.log,
                redactor=around.redactor,
                children=around.children,
                only=around.only,
                stir=self._stirred.set,
                ending=around.ending,
                tasks=around.tasks,
                begin=around.begin,
            )
            self._life.attend(self._engine)
        return self._life

    async def _read_beat(self, path: str, below: str) -> Written | Refused:
        from uphold.inbox.beating import read_beat_file  # noqa: PLC0415 - with a share only

        life = await self._current()
        return unanswered(path) if life is None else await read_beat_file(life.share, path, below)

    def _share(self) -> tuple[Share, Inbox] | None:
        return None if self._life is None else (self._life.share, self._life.listing())

    def _deploying(self) -> Deploys:
        if self._deploys is None:
            from uphold.daemon.deploying import Deploys  # noqa: PLC0415 - with a checkout only

            around = self._around
            self._deploys = Deploys(
                around.home.path / "deploy.json",
                lambda: around.config.current.settings.deploy,
                around.clock,
                around.log,
            )
            self._deploys.attend(self._engine)
        return self._deploys

    def _reporting(self) -> Reports:
        if self._reports is None:
            from uphold.daemon.reporting import Reports  # noqa: PLC0415 - for a report only

            around = self._around
            self._reports = Reports(
                home=around.home,
                config=around.config,
                environ=around.environ,
                clock=around.clock,
                redactor=around.redactor,
                share=self._share,
            )
            self._reports.attend(self._engine)
        return self._reports

    @property
    def _now(self) -> float:
        return self._around.clock.now().mono

    @property
    def _engine(self) -> Supervisor:
        assert self._supervisor is not None
        return self._supervisor
