"""What the local socket offers: each method turns a request into a wish or a view."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from uphold.control.server import Underway
from uphold.core import orders
from uphold.core.changes import preview
from uphold.core.declaring import unknown
from uphold.core.dependencies import longest_grace
from uphold.core.events import Note
from uphold.core.explaining import explain
from uphold.core.names import is_label, worker_of
from uphold.core.orders import Refusal
from uphold.core.outcomes import patience
from uphold.core.statuses import Fault
from uphold.core.times import utc_or_none
from uphold.daemon.rewriting import WrittenRows
from uphold.engine.bus import gap
from uphold.errors import EXIT_USAGE, ConfigInvalid, StoreUnavailable, UpholdError
from uphold.ports.configs import Asker
from uphold.wire.envelopes import envelope
from uphold.wire.frames import encode_line
from uphold.wire.views import (
    change_view,
    health_report,
    plain,
    rows,
    spec_view,
    with_vitals,
    worker_rows,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from uphold.config.revisions import FileConfig
    from uphold.control.server import Method, Stream
    from uphold.core.orders import Order, Wish
    from uphold.core.specs import Settings
    from uphold.daemon.beating import Beats
    from uphold.daemon.copies import Copies
    from uphold.engine.bus import Subscription
    from uphold.engine.jobs import Job
    from uphold.engine.snapshots import Snapshot
    from uphold.engine.supervisor import Supervisor
    from uphold.ports.clocks import Clock
    from uphold.ports.journals import Journal
    from uphold.wire.redaction import Redactor

    Told = dict[str, object]
    Finish = Callable[[Told], Awaitable[Told]]

_WISHES: Final[dict[str, type[Any]]] = {
    "start": orders.StartWorkers,
    "stop": orders.StopWorkers,
    "restart": orders.RestartWorkers,
    "pause": orders.PauseWorkers,
    "resume": orders.ResumeWorkers,
    "enable": orders.EnableWorkers,
    "disable": orders.DisableWorkers,
    "quarantine": orders.QuarantineWorkers,
    "approve": orders.ApproveWorkers,
    "reset": orders.ResetWorkers,
}
_LONGEST_WAIT: Final = 10**7
_MOST_NAMED: Final = 3


class Methods:
    """The methods of the socket, over one supervisor."""

    def __init__(  # noqa: PLR0913 - what the methods show and change, by name
        self,
        *,
        supervisor: Supervisor,
        config: FileConfig,
        read: Callable[[], Settings],
        clock: Clock,
        journal: Journal,
        about: Callable[[], dict[str, object]],
        redactor: Callable[[], Redactor],
        beats: Beats | None = None,
        copies: Copies | None = None,
        share: Callable[[], dict[str, Any] | None] = lambda: None,
        more: Mapping[str, Method] | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._config = config
        self._read = read
        self._clock = clock
        self._journal = journal
        self._about = about
        self._redactor = redactor
        self._beats = beats
        self._copies = copies
        self._share = share
        self._more = more or {}
        self._written = WrittenRows(clock)

    def table(self) -> dict[str, Method]:
        """Give the closed table of methods."""
        return {
            "ping": self.ping,
            "status": self.status,
            "show": self.show,
            "why": self.why,
            "plan": self.plan,
            "submit": self.submit,
            "reload": self.reload,
            "shutdown": self.shutdown,
            "job": self.job,
            "beat": self.beat,
            **({} if self._copies is None else self._copies.table(self._supervisor)),
            **self._more,
        }

    def streams(self) -> dict[str, Stream]:
        """Give the methods that answer with a stream."""
        return {"subscribe": self.subscribe}

    async def ping(self, _params: Mapping[str, Any]) -> object:
        """Answer, and say who answers."""
        about = self._about()
        return {
            "pid": about["pid"],
            "version": about["uphold"],
            "snapshot": self._supervisor.snapshot().version,
        }

    async def status(self, params: Mapping[str, Any]) -> object:
        """Give the document of `status --json`."""
        snapshot = self._supervisor.snapshot()
        redactor = self._redactor()
        names = _names(params)
        asked = (snapshot.version, names, bool(params.get("all")), redactor)
        found: object = self._written.find(asked)
        if found is None:
            listed = self._rows(snapshot, names, companions=asked[2])
            for row in self._with_life(listed, snapshot):
                _hide(row, redactor)
            found = self._written.keep(asked, listed)
        document = {"schema": 1, "supervisor": redactor.value(self._about()), "workers": found}
        store = None if self._copies is None else self._copies.shown()
        beside = {"store": store, "share": self._share()}
        return document | {key: shown for key, shown in beside.items() if shown is not None}

    def _rows(
        self, snapshot: Snapshot, names: tuple[str, ...], *, companions: bool
    ) -> list[dict[str, Any]]:
        now = self._clock.now()
        if not names:
            return list(rows(snapshot.declaration, snapshot.observed, now, companions=companions))
        found: list[dict[str, Any]] = []
        for name in names:
            worker = worker_of(self._known(name))
            entry = snapshot.declaration.workers.get(worker)
            of_worker = worker_rows(worker, entry, snapshot.observed, now)
            found += [row for row in of_worker if name in (worker, row["slot"])]
        return found

    def _with_life(self, rows: list[dict[str, Any]], snapshot: Snapshot) -> list[dict[str, Any]]:
        """Add the latest signs of life, of workers here and elsewhere."""
        with_vitals(rows, snapshot.vitals)
        if self._beats is not None:
            self._beats.complete(rows)
        return rows

    async def show(self, params: Mapping[str, Any]) -> object:
        """Give everything known about one worker."""
        name = worker_of(self._known(str(params.get("name", ""))))
        snapshot = self._supervisor.snapshot()
        entry = snapshot.declaration.workers.get(name)
        slots: list[dict[str, Any]] = list(
            worker_rows(name, entry, snapshot.observed, self._clock.now())
        )
        self._with_life(slots, snapshot)
        worker: dict[str, object] = dict(slots[0]) if slots else {"name": name}
        if slots:
            worker["health_report"] = health_report(slots[0])
        if entry is not None:
            record = snapshot.record(entry)
            worker |= {
                "config": spec_view(entry.spec),
                "enabled": record.enabled,
                "quarantined": record.quarantined,
                "connected": record.connected,
                "connection_info": [
                    {"slot": row["slot"], "pid": row["pid"], "since": row["since"]}
                    for row in slots
                    if row["pid"] is not None
                ],
                "last_seen": max((str(row["last_health_at"] or "") for row in slots), default="")
                or None,
                "tool_count": record.tool_count,
                "desired_version": record.desired_version,
                "last_reconcile": utc_or_none(record.last_reconcile),
                "reconcile_count": record.reconcile_count,
                "override": plain(entry.override),
            }
        if self._beats is not None and (heard := self._beats.shown(name)):
            worker["heartbeat"] = heard
        return self._redactor().value({"schema": 1, "worker": worker, "slots": slots})

    async def why(self, params: Mapping[str, Any]) -> object:
        """Explain one worker in a paragraph."""
        name = worker_of(self._known(str(params.get("name", ""))))
        snapshot = self._supervisor.snapshot()
        now = self._clock.now().mono
        text = explain(name, snapshot.declaration, snapshot.observed, now)
        for slot in snapshot.observed.of(name):
            vital = snapshot.vitals.get(slot)
            if vital is not None and vital.answer:
                text += f" It was last asked: {vital.answer}."
            if vital is not None and vital.said:
                text += f" It says: {vital.said}."
        return {"schema": 1, "name": name, "text": self._redactor().text(text)}

    async def plan(self, _params: Mapping[str, Any]) -> object:
        """Say what the file as it is now would change."""
        settings = await asyncio.to_thread(self._read)
        workers = self._supervisor.snapshot().declaration.workers
        return {
            "schema": 1,
            "changes": [change_view(each) for each in preview(workers, settings.workers)],
        }

    async def submit(self, params: Mapping[str, Any]) -> object:
        """Take an order and wait until it has come true, if asked to."""
        _timeout(params)  # what is wrong with the request is said before anything is done
        wish = wish_of(self._with_names(params))
        order = self._supervisor.desk.order(wish, origin="socket", **_authorship(params))
        job = _taken(await self._supervisor.desk.submit(order))
        return await self._answer(job, params)

    def _with_names(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Name those who run from the checkout, where an order about it names nobody."""
        deploy = self._config.current.settings.deploy
        if params.get("names") or params.get("verb") not in ("update", "rollback"):
            return params
        if deploy is None:
            raise UpholdError(
                "there is no [deploy] section that says what is to be updated.",
                code="UPH_DEPLOY_NOT_CONFIGURED",
                remedy="Add one with the checkout and the workers that run from it.",
            )
        return {**params, "names": list(deploy.workers)}

    async def reload(self, params: Mapping[str, Any]) -> object:
        """Apply the file as it is now; who asked for it is on record, whatever comes of it."""
        _timeout(params)
        asker = Asker(origin="socket", **_authorship(params))
        before = self._supervisor.snapshot().declaration.workers
        try:
            settings = await reload(self._config, self._supervisor, asker)
        except ConfigInvalid as error:
            refusal = Refusal(code=error.code, message=_first_problem(error))
            with suppress(StoreUnavailable):  # on a full disk, too, what is wrong is told
                await self._supervisor.desk.refuse(self._declaring(params), refusal)
            raise
        changes = [change_view(each) for each in preview(before, settings.workers)]
        if self._config.current.asker is not asker:  # it says what is in force already
            order = self._declaring(params, settings)
            return await self._unchanged(order, params, changes)
        declared = await self._supervisor.desk.declaring()
        assert declared is not None

        async def with_changes(told: Told) -> Told:
            return {**told, "changes": changes}

        return await self._answer(_taken(declared), params, with_changes)

    async def _unchanged(
        self, order: Order, params: Mapping[str, Any], changes: list[dict[str, object]]
    ) -> object:
        """Answer for a file that says what is in force, or is being carried out for another one.

        Then it is done when that is, and that is the job to look for while it is not.
        """

        async def ours(told: Told) -> Told:
            await self._supervisor.desk.leave_unchanged(order)
            return {**told, "job_id": order.id, "changes": changes}

        declared = await self._supervisor.desk.declaring()
        if declared is None or isinstance(declared, Refusal) or declared.done.done():
            return await ours({"schema": 1, "results": []})
        return await self._answer(declared, params, ours)

    def _declaring(self, params: Mapping[str, Any], settings: Settings | None = None) -> Order:
        """Make the order that a reload is, where no new configuration came of it."""
        specs = () if settings is None else settings.workers
        wish = orders.Declare(specs=specs, source=self._config.path)
        return self._supervisor.desk.order(wish, origin="socket", **_authorship(params))

    async def shutdown(self, params: Mapping[str, Any]) -> object:
        """Begin to end."""
        grace = longest_grace(self._supervisor.snapshot().declaration)
        wish = orders.ShutDown(keep_workers=bool(params.get("keep_workers")))
        order = self._supervisor.desk.order(wish, origin="socket", **_authorship(params))
        job = _taken(await self._supervisor.desk.submit(order))
        return {"accepted": True, "job_id": job.row.id, "grace": grace}

    async def job(self, params: Mapping[str, Any]) -> object:
        """Say where an order stands."""
        job_id = str(params.get("job_id", ""))
        found = self._supervisor.desk.job(job_id)
        if found is None:
            raise UpholdError(
                f"no order under way has the id '{job_id}'.",
                code="UPH_JOB_UNKNOWN",
                remedy="Finished ones are listed by: uphold jobs",
                exit_code=5,
            )
        return plain(found.row)

    async def beat(self, params: Mapping[str, Any]) -> object:
        """Take in a heartbeat of a remote worker."""
        if self._beats is None:
            raise _misused("nobody listens to remote workers here.")
        return self._beats.take(params, self._supervisor.snapshot().declaration)

    def subscribe(self, params: Mapping[str, Any]) -> tuple[object, AsyncIterator[bytes]]:
        """Stream events from a number on (from now: null)."""
        from_seq = params.get("from_seq")
        if from_seq is not None and (not isinstance(from_seq, int) or from_seq < 0):
            raise _misused("'from_seq' is the number of an event, or null.")
        wanted = {worker_of(name) for name in _names(params)} or None
        last = self._supervisor.last_seq
        after = last if from_seq is None else int(from_seq) - 1
        return {"seq": last}, self._events(after, last, wanted)

    async def _events(self, after: int, last: int, wanted: set[str] | None) -> AsyncIterator[bytes]:
        live = self._supervisor.subscribe()
        try:
            if after > last:
                # Numbers it knows and we do not: ours began anew (a rescued journal). What came
                # since it was told our last number is read from the journal.
                yield self._line(_gap(last + 1, after))
                after = last
            async for view in self._history_and(live, after):
                seq = view["seq"]
                if seq > after + 1 and view["type"] != "gap":
                    yield self._line(_gap(after + 1, seq - 1))
                after = seq
                if _concerns(view, wanted):
                    yield self._line(view)
        finally:
            live.close()

    async def _history_and(self, live: Subscription, after: int) -> AsyncIterator[dict[str, Any]]:
        """Give what was before from the journal; what comes meanwhile waits in `live`."""
        while after < self._supervisor.last_seq:
            page = await self._journal.events(after=after, limit=500)
            if not page:
                break
            for each in page:
                yield dict(each)
            after = int(str(page[-1]["seq"]))
        async for recorded in live:
            if recorded.seq > after:
                yield envelope(recorded)

    def _line(self, view: dict[str, Any]) -> bytes:
        return encode_line({"event": self._redactor().value(view)})

    async def _answer(
        self, job: Job, params: Mapping[str, Any], finish: Finish | None = None
    ) -> object:
        """Tell what came of an order, or only its job; that it was accepted first, if asked to."""
        complete = finish or _as_it_is
        if not params.get("wait", True):
            return await complete({"schema": 1, "job_id": job.row.id, "results": []})
        limit = _timeout(params)
        if limit is None:
            limit = patience(job.accepted.wish, self._supervisor.snapshot().declaration)

        async def outcome() -> object:
            return await complete(await self._outcome(job, limit))

        if params.get("tell_accepted"):
            return Underway({"job_id": job.row.id, "within": limit}, outcome)
        return await outcome()

    async def _outcome(self, job: Job, limit: float) -> Told:
        try:
            results = await asyncio.wait_for(asyncio.shield(job.done), limit)
        except TimeoutError:
            raise UpholdError(
                f"{job.row.id} has not come true within {limit:g} s; it goes on.",
                code="UPH_ORDER_TIMEOUT",
                remedy=f"See where it stands: {_where_it_stands(job)}",
            ) from None
        told: Told = {
            "schema": 1,
            "job_id": job.row.id,
            "results": self._redactor().value([plain(each) for each in results]),
        }
        if isinstance(job.accepted.wish, orders.Errand):
            told |= {"error": job.row.error, "details": dict(job.details)}
        return told

    def _known(self, name: str) -> str:
        """Let pass the name of a worker or slot; anything else is an error with the nearest."""
        snapshot = self._supervisor.snapshot()
        known = snapshot.declaration.workers
        if name in known or name in snapshot.observed.slots or name in snapshot.observed.by_worker:
            return name
        entry = known.get(worker_of(name))
        if entry is not None and name in entry.slots():
            return name
        raise _refused(unknown(name, known))


async def reload(
    config: FileConfig, supervisor: Supervisor, asker: Asker | None = None
) -> Settings:
    """Read the file again; if it is wrong, put that on record, raise it and keep the old one."""
    try:
        settings = await asyncio.to_thread(config.reload, asker)
    except ConfigInvalid as error:
        supervisor.complain(Fault(code=error.code, message=_first_problem(error)))
        await supervisor.tell(
            Note(
                type="config.refused",
                entity_type="config",
                entity_id=config.path,
                payload={"problems": [str(problem) for problem in error.problems]},
                severity="error",
            )
        )
        raise
    supervisor.complain(None)
    return settings


def _first_problem(error: ConfigInvalid) -> str:
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    return f"the file is refused and the old one stays in force: {error.problems[0]}{more}"


def wish_of(params: Mapping[str, Any]) -> Wish:
    """Read a wish from a request; what cannot be understood is a usage error."""
    verb = str(params.get("verb", ""))
    names = _names(params)
    if verb in ("pause", "resume") and not names:
        return orders.PauseSupervisor() if verb == "pause" else orders.ResumeSupervisor()
    if not names and verb not in ("update", "rollback"):
        raise _misused(f"'{verb}' needs the name of a worker.")
    if verb == "scale":
        replicas = params.get("replicas")
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise _misused("'scale' needs a whole number of slots.")
        return orders.ScaleWorker(name=names[0], replicas=replicas)
    if verb == "signal":
        return orders.SignalWorkers(names=names, signal=_signal_name(params.get("signal")))
    errand = _errand_of(verb, names, params)
    if errand is not None:
        return errand
    wish = _WISHES.get(verb)
    if wish is None:
        raise _misused(f"there is no order '{verb}'.")
    made: Wish = wish(names=names)
    return made


def _errand_of(verb: str, names: tuple[str, ...], params: Mapping[str, Any]) -> Wish | None:
    if verb == "update":
        return orders.UpdateCode(names=names, dependencies=bool(params.get("dependencies")))
    if verb == "rollback":
        commits = params.get("commits", 1)
        if not isinstance(commits, int) or isinstance(commits, bool) or not 1 <= commits <= 10:
            raise _misused("'rollback' needs a number of commits from 1 to 10.")
        return orders.RollBackCode(names=names, commits=commits)
    return orders.Diagnose(names=names) if verb == "diagnose" else None


def _names(params: Mapping[str, Any]) -> tuple[str, ...]:
    given = params.get("names") or ()
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise _misused("'names' is a list of names.")
    return tuple(dict.fromkeys(given))  # twice the same is one wish


def _where_it_stands(job: Job) -> str:
    """Name the commands that tell more; `why` is about one worker at a time."""
    waited_for = [name for name in job.accepted.names if name not in job.results]
    more = ", ..." if len(waited_for) > _MOST_NAMED else ""
    asked = (f"uphold why {name}" for name in waited_for[:_MOST_NAMED])
    return ", ".join(("uphold jobs", *asked)) + more


def _timeout(params: Mapping[str, Any]) -> float | None:
    given = params.get("timeout")
    if given is None:
        return None
    if isinstance(given, int | float) and 0 <= given <= _LONGEST_WAIT:
        return float(given)
    raise _misused(f"'timeout' is a number of seconds, at most {_LONGEST_WAIT}.")


def _signal_name(given: object) -> str:
    from signal import Signals  # noqa: PLC0415 - the names only, when somebody sends one

    text = str(given or "").upper().removeprefix("SIG")
    if text.isdecimal():
        try:
            return Signals(int(text)).name.removeprefix("SIG")
        except ValueError:
            raise _misused(f"there is no signal {text}.") from None
    if f"SIG{text}" not in Signals.__members__:
        raise _misused(f"there is no signal '{given}'.")
    return text


def _authorship(params: Mapping[str, Any]) -> dict[str, Any]:
    label = params.get("label")
    if label is not None and not is_label(str(label)):
        raise UpholdError(
            "a label has at most 100 letters, digits, spaces, hyphens and underscores.",
            code="UPH_LABEL_INVALID",
            exit_code=EXIT_USAGE,
        )
    return {
        "author": str(params.get("author") or "unknown")[:200],
        "reason": str(params.get("reason") or "")[:1000],
        "label": None if label is None else str(label),
    }


async def _as_it_is(told: Told) -> Told:
    return told


def _taken(answer: Job | Refusal) -> Job:
    if isinstance(answer, Refusal):
        raise _refused(answer)
    return answer


def _refused(refusal: Refusal) -> UpholdError:
    return UpholdError(
        refusal.message, code=refusal.code, remedy=refusal.remedy, exit_code=refusal.exit_code
    )


def _misused(message: str) -> UpholdError:
    return UpholdError(message, code="UPH_ORDER_INVALID", exit_code=EXIT_USAGE)


def _concerns(event: Mapping[str, Any], wanted: set[str] | None) -> bool:
    return wanted is None or event["entity_id"] in wanted or event["type"] == "gap"


def _gap(first: int, last: int) -> dict[str, Any]:
    return envelope(gap(first, last, 0.0))


def _hide(row: dict[str, Any], redactor: Redactor) -> None:
    """Take secrets out of the two fields of a row that may quote what a worker was given."""
    if row["last_error"] is not None:
        row["last_error"] = redactor.value(row["last_error"])
    if row["state"] != "running":
        row["why"] = redactor.text(row["why"])
