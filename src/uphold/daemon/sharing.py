"""The share of a supervisor: flags are obeyed, holds are mirrored, heartbeats and logs are left.

One task works through the inbox, poll by poll; a share that hangs or is away delays nobody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from uphold import plugins
from uphold.core.events import Note
from uphold.core.names import is_companion
from uphold.core.times import utc_text
from uphold.daemon.handling import Handling
from uphold.daemon.marking import Markers
from uphold.daemon.tasks import JournalTasks
from uphold.errors import HostFailure, UpholdError
from uphold.inbox.consulting import Consultants
from uphold.inbox.flags import Rules
from uphold.inbox.handlers import HANDLERS
from uphold.inbox.obeying import Dealings, Deed, Obedience
from uphold.inbox.reaching import Reach, Standing
from uphold.inbox.receipts import heartbeat_content, heartbeat_name
from uphold.inbox.shares import Inbox, Share
from uphold.inbox.validating import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from uphold.core.orders import Wish
    from uphold.core.specs import InboxSpec, Settings
    from uphold.daemon.tasks import Tasks
    from uphold.engine.supervisor import Supervisor
    from uphold.host.homes import Home
    from uphold.inbox.flags import Flag
    from uphold.inbox.obeying import Answer
    from uphold.inbox.reaching import Begin
    from uphold.ports.clocks import Clock
    from uphold.ports.logs import Log
    from uphold.wire.redaction import Redactor

_MOST_WATCHED: Final = 50
"""Workers whose pause markers are looked at, where the file does not say which."""
_MOST_LINES: Final = 10_000
"""Lines of the log that wait for a share that is away; older ones are only in the home."""
_LOOKS_OF_A_PASS: Final = 100
"""Looks at 200 flags each, until one of them is ours."""
_SHARE_LOG: Final = "supervisor.log"


class ShareLife:
    """Everything that is done on one share."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        spec: InboxSpec,
        *,
        settings: Callable[[], Settings],
        supervisor_id: str,
        home: Home,
        clock: Clock,
        log: Log,
        redactor: Callable[[], Redactor],
        children: set[int] | None = None,
        only: tuple[str, ...] = (),
        stir: Callable[[], None] = lambda: None,
        ending: asyncio.Event | None = None,
        tasks: Tasks | None = None,
        begin: Begin | None = None,
    ) -> None:
        """`only` names the workers whose flags are obeyed; none: those of all.

        `stir` is called when another look is worth while. Once `ending` is set no flag is begun
        any more, and none but errands is waited for. `tasks` remembers what was done before, by
        default the journal; `begin` starts whoever touches the share.
        """
        self.spec = spec
        self._settings = settings
        self._only = only
        self._ending = ending or asyncio.Event()
        self._redactor = redactor
        self._supervisor_id = supervisor_id
        self._home = home
        self._tasks = tasks or JournalTasks(home.journal)
        self._clock = clock
        self._log = log
        self._changes: deque[Standing] = deque(maxlen=10)
        self._reach = Reach(
            spec,
            owner=_owner(supervisor_id),
            clock=clock,
            tell=self._changes.append,
            stir=stir,
            children=children,
            begin=begin,
        )
        self.share = Share(spec, self._reach)
        self.inbox = Inbox(self._reach, self._say_kept)
        self._consultants = Consultants(spec.handlers, clock)
        self._lines: deque[bytes] = deque(maxlen=_MOST_LINES)
        self.handling: Handling | None = None
        self._supervisor: Supervisor | None = None
        self._markers: Markers | None = None
        self._obedience: Obedience | None = None
        self._beaten = float("-inf")
        self._stir = stir
        self._untold: str | None = None
        """Why nobody tells us of what comes; empty: somebody does; None: not known yet."""

    def attend(self, supervisor: Supervisor) -> None:
        """Learn whom the orders are for."""
        self._supervisor = supervisor
        kept = self._home.path / "markers.json"
        self._markers = markers = Markers(self.spec, self.share, supervisor, kept, self._watched)
        self.handling = handling = Handling(
            supervisor,
            lambda: self._settings().deploy,
            self._tasks,
            markers.mirror,
            self._consult,
            self._ending,
        )
        self._obedience = Obedience(
            inbox=self.inbox,
            share=self.share,
            owner=_owner(self._supervisor_id),
            supervisor_id=self._supervisor_id,
            dealings=Dealings(
                rules=self._rules,
                carry=self._carry,
                known=self._known,
                tell=self._tell,
                refused=handling.refused,
            ),
            clock=self._clock,
            log=self._log,
        )

    async def _carry(self, flag: Flag) -> Answer:
        assert self.handling is not None
        return self._shown(await self.handling.carry(flag))

    async def _consult(self, flag: Flag) -> Wish | None:
        """Ask the plug-in a flag is for; one that fails is an event about the worker."""
        await self._find_plugins()
        # Whoever announces a flag may mean a worker of somebody else: that is not its fault.
        allowed = self._rules().workers | {flag.worker_id}
        try:
            return await self._consultants.wish(flag, allowed)
        except UpholdError as problem:
            # It goes into job, event, log and receipt: what strangers' code says may be anything.
            problem.message = self._redactor().text(problem.message)
            if problem.code != plugins.FAILED:
                raise
            payload = {"handler": flag.handler, "task_id": flag.task_id, "label": flag.label}
            note = Note(
                type="plugin.failed",
                entity_type="worker",
                entity_id=flag.worker_id,
                payload={**payload, "error": problem.message},
                severity="error",
            )
            await self._engine.tell(note)
            raise

    async def _find_plugins(self) -> None:
        """Find the plug-ins the file names; those that cannot be used are told, once."""
        for name, why in (await self._consultants.look()).items():
            error = self._redactor().text(why)
            self._log.write("ERROR", "plugin.unusable", f"the handler {name}: {error}")
            note = Note(
                type="plugin.unusable",
                entity_type="plugin",
                entity_id=name,
                payload={"group": plugins.HANDLERS, "error": error},
                severity="error",
            )
            await self._engine.tell(note)

    async def _known(self, task_id: str) -> Answer | None:
        assert self.handling is not None
        answer = await self.handling.known(task_id)
        return None if answer is None else self._shown(answer)

    def _shown(self, answer: Answer) -> Answer:
        """Take secrets out of an answer: whoever reads the share reads its receipt."""
        redactor = self._redactor()
        error = None if answer.error is None else redactor.text(answer.error)
        return replace(answer, error=error, details=redactor.value(answer.details))

    def listing(self) -> Inbox:
        """Give a view of the inbox for reports: where the obedient one has got to stays its own."""
        return Inbox(self._reach)

    def heed(self, line: bytes) -> None:
        """Keep a line of the supervisor's log for the share."""
        self._lines.append(line)

    async def look(self, *, watch: bool = False) -> tuple[list[Deed], str | None]:
        """Obey what lies there now; give what was done, and what is wrong with the share.

        `watch`: from now on it is told when another look is worth while, where that is possible.
        """
        deeds: list[Deed] = []
        error: str | None = None
        obeying = asyncio.ensure_future(self._obey(watch=watch))
        try:
            while not (await asyncio.wait({obeying}, timeout=self.spec.poll_every))[0]:
                await self._keep_in_touch()
            deeds = obeying.result()
        except UpholdError as problem:  # the share, or the journal: what is claimed stays claimed
            error = problem.message
        finally:
            obeying.cancel()  # we may be; and what it came to is then nobody's
            await asyncio.gather(obeying, return_exceptions=True)
        standing = self._reach.standing
        if error is None or (standing is not None and standing.reachable):
            error = await self._leave_word(deeds, error)
        await self._tell_changes()
        return deeds, error

    async def _obey(self, *, watch: bool) -> list[Deed]:
        """Obey what lies there now; give what was done."""
        assert self._obedience is not None
        assert self._markers is not None
        if watch:
            await self._listen()  # first: what comes after the look must be told
        await self._markers.mirror()
        await self._find_plugins()
        deeds = await self._obedience.look(self._ending.is_set)
        for _ in range(0 if watch else _LOOKS_OF_A_PASS):
            if deeds or not self._obedience.more:
                break  # the next pass begins anew: it may not stay with flags of others
            deeds = await self._obedience.look(self._ending.is_set)
        if deeds and self._obedience.more:
            self._stir()  # each such look leaves less
        return deeds

    async def _keep_in_touch(self) -> None:
        """Say that we live, and learn how the share does, while what a flag orders takes long."""
        with suppress(HostFailure):  # how the share stands has been noted
            await self.share.look(self.spec.layout.state)
            await self._leave_word([], None)
        await self._tell_changes()

    def shown(self) -> dict[str, Any]:
        """Give what is known of how the share stands, as `status` shows it."""
        standing = self._reach.standing
        if standing is None:
            return {}
        since = utc_text(standing.since)
        if not standing.reachable:
            error = {"code": standing.code, "message": self._redactor().text(standing.why)}
            return {"state": "unreachable", "since": since, "last_error": error}
        return {
            "state": "reachable",
            "since": since,
            "watched": self._untold == "" and self._reach.helped,
            "polled_because": self._untold or None,
        }

    async def close(self) -> None:
        """Leave the last lines, and let the helper go."""
        self._consultants.close()
        try:
            async with asyncio.timeout(2.0):
                await self._leave_lines()
        except (HostFailure, TimeoutError):
            pass  # they are in the home
        await self._reach.close()

    async def beat(self, *, success: bool, error: str | None, actions: list[Any]) -> None:
        """Leave the supervisor's heartbeat for each worker that is steered here."""
        wall = self._clock.now().wall
        for name in self._watched():
            content = heartbeat_content(
                supervisor_id=self._supervisor_id,
                wall=wall,
                worker_id=name,
                success=success,
                error=error,
                actions=actions,
            )
            await self.share.put("state", heartbeat_name(name), content, durable=False)

    async def _listen(self) -> None:
        """Have it told when something comes; where that is impossible, say so once."""
        untold = await self.inbox.watch()
        if untold != self._untold:
            self._untold = untold
            every = f"looked at every {self.spec.poll_every:g} s"
            text = f"{every} only: {untold}" if untold else f"watched, and {every}"
            self._log.write("INFO", "share.watched", f"the inbox is {text}.")

    def _say_kept(self, name: str, why: str) -> None:
        text = f"the flag {name} cannot be taken ({why}): only its owner can move it."
        self._log.write("WARNING", "flag.kept", text)

    async def _leave_word(self, deeds: list[Deed], error: str | None) -> str | None:
        """Leave log lines and a heartbeat, of a look that failed too; give what is wrong."""
        try:
            await self._leave_lines()
            await self._beat(deeds, error)
        except HostFailure as problem:
            return error or problem.message
        return error

    async def _beat(self, deeds: list[Deed], error: str | None) -> None:
        now = self._clock.now().mono
        due = now - self._beaten >= self._settings().supervisor.heartbeat_every
        if deeds or error is not None or due:
            self._beaten = now
            failed = [deed.error or "failed" for deed in deeds if not deed.success]
            failed += [] if error is None else [error]
            await self.beat(
                success=not failed,
                error="; ".join(failed) or None,
                actions=[deed.shown() for deed in deeds],
            )

    async def _leave_lines(self) -> None:
        while self._lines:
            lines, self._lines = self._lines, deque(maxlen=_MOST_LINES)
            try:
                await self.share.append(_SHARE_LOG, b"".join(lines))
            except BaseException:
                lines.extend(self._lines)
                self._lines = lines
                raise

    def _rules(self) -> Rules:
        settings = self._settings()
        deploy = settings.deploy
        names = self._only or tuple(spec.name for spec in settings.workers)
        fallback = deploy.workers if deploy is not None and deploy.workers else names
        survey = self._consultants.survey
        return Rules(
            workers=frozenset(names),
            fallback=self._only or fallback,
            require_signature=self.spec.require_signature,
            senders=self.spec.senders,
            handlers=(*HANDLERS, *survey.rows),
            unusable=survey.unusable,
        )

    def _watched(self) -> tuple[str, ...]:
        if self._only:
            return self._only
        settings = self._settings()
        if settings.deploy is not None and settings.deploy.workers:
            return settings.deploy.workers
        names = (spec.name for spec in settings.workers if not is_companion(spec.name))
        return tuple(names)[:_MOST_WATCHED]

    async def _tell(self, kind: str, told: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        severity = "warning" if kind == "flag.rejected" else "info"
        notes = [
            Note(
                type=kind,
                entity_type="flag",
                entity_id=about,
                payload=dict(more),
                severity=severity,
            )
            for about, more in told
        ]
        if notes:
            await self._engine.tell(*notes)

    async def _tell_survey(self) -> None:
        """Tell what is not right on a share that has just come; it is worked with all the same."""
        try:
            issues = judge(await self.share.survey(), self.spec).issues
        except HostFailure:
            return  # away again: that is told by itself
        if issues:
            note = Note(
                type="share.incomplete",
                entity_type="share",
                entity_id=self.spec.share,
                payload={"problems": [issue.text for issue in issues]},
                severity="error" if any(issue.grave for issue in issues) else "warning",
            )
            await self._engine.tell(note)

    async def _tell_changes(self) -> None:
        while self._changes:
            await self._tell_standing(self._changes.popleft())

    async def _tell_standing(self, standing: Standing) -> None:
        if not standing.reachable:
            self._beaten = float("-inf")  # whoever reads it there waits for word: the next look's
        kind = "share.reachable" if standing.reachable else "share.unreachable"
        note = Note(
            type=kind,
            entity_type="share",
            entity_id=self.spec.share,
            payload={"code": standing.code or None, "error": standing.why or None},
            severity="info" if standing.reachable else "error",
        )
        await self._engine.tell(note)
        if standing.reachable:
            await self._tell_survey()

    @property
    def _engine(self) -> Supervisor:
        assert self._supervisor is not None
        return self._supervisor


def _owner(supervisor_id: str) -> str:
    """Name a claim's owner; dots would end the name early."""
    return supervisor_id.replace(".", "-")
