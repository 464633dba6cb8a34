"""Reports as errands: diagnostics of a worker, and the check of the shared database.

Whatever lies on a share is asked through its helper, the database through a program of its own:
the supervisor speaks no SQL and never waits for a share.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.core import orders
from uphold.core.health import slot_health
from uphold.core.statuses import ALIVE, Admin
from uphold.core.times import utc_or_none
from uphold.diagnose.reports import gather
from uphold.engine.errands import Outcome
from uphold.errors import HostFailure, UpholdError
from uphold.host.commands import run
from uphold.host.files import make_private_folder, write_atomically
from uphold.host.trees import read_tree
from uphold.inbox.receipts import DB_VERIFICATION, DIAGNOSTICS, report_name, watcher_heartbeat_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.config.revisions import FileConfig
    from uphold.core.orders import Order
    from uphold.engine.supervisor import Supervisor
    from uphold.host.homes import Home
    from uphold.inbox.shares import Inbox, Share
    from uphold.ports.clocks import Clock
    from uphold.wire.redaction import Redactor

_LINES: Final = 50
_AUDIT: Final = 10
_TAIL: Final = 64 * 1024
_FRESH: Final = 300.0
"""Seconds after which a heartbeat is stale."""
_DATABASE: Final = 60.0
"""Seconds for all questions to the database together; each has its own limit of 10."""


class Reports:
    """Writes reports about what is supervised."""

    def __init__(  # noqa: PLR0913 - what is looked at, by name
        self,
        *,
        home: Home,
        config: FileConfig,
        environ: Mapping[str, str],
        clock: Clock,
        redactor: Callable[[], Redactor],
        share: Callable[[], tuple[Share, Inbox] | None],
    ) -> None:
        self._home = home
        self._config = config
        self._environ = dict(environ)
        self._clock = clock
        self._redactor = redactor
        self._share = share
        self._supervisor: Supervisor | None = None

    def attend(self, supervisor: Supervisor) -> None:
        """Learn whom the reports are about."""
        self._supervisor = supervisor

    def errands(self) -> dict[type, Any]:
        """Say which orders are carried out here."""
        return {orders.Diagnose: self.diagnose, orders.VerifyDatabase: self.verify}

    async def diagnose(self, order: Order) -> Outcome:
        """Write a report with everything that can be known about these workers."""
        assert isinstance(order.wish, orders.Diagnose)
        paths, problems = [], []
        for name in order.wish.names:
            report = await gather(
                self._sections(name),
                worker=name,
                supervisor=self._config.current.settings.supervisor.name,
                wall=self._clock.now().wall,
                label=order.label,
            )
            kept = await self._keep(DIAGNOSTICS, name, order, self._redactor().value(report))
            paths.append(kept)
            problems += [f"{k}: {s['error']}" for k, s in report["sections"].items() if s["error"]]
        details: dict[str, object] = {"report_path": paths[0] if len(paths) == 1 else paths}
        return Outcome(details={**details, "problems": problems})

    async def verify(self, order: Order) -> Outcome:
        """Have the shared database checked, and keep the report."""
        report = await self._database_report(order.label)
        names = order.wish.names  # type: ignore[union-attr]
        name = names[0] if names else self._config.current.settings.supervisor.name
        path = await self._keep(DB_VERIFICATION, name, order, report)
        failed = [
            f"{each['check']}: {(each.get('error') or {}).get('message') or each['detail']}"
            for each in report.get("checks", ())
            if each["result"] != "ok"
        ]
        error = "; ".join(failed) or (None if report.get("ok") else "the checks did not end")
        return Outcome(error=error, details={"report_path": path, "checks": report.get("checks")})

    async def _keep(self, kind: str, worker: str, order: Order, report: dict[str, Any]) -> str:
        """Leave a report on the share, or in the home where there is none; give its path."""
        name = report_name(kind, worker, self._clock.now().wall, order.label)
        content = f"{json.dumps({**report, 'task_id': order.task_id}, indent=2)}\n".encode()
        share = self._share()
        if share is not None:
            try:
                return await share[0].put("diagnostics", name, content)
            except HostFailure:
                pass  # a report that can be read here is better than none
        return await asyncio.to_thread(self._keep_here, name, content)

    def _keep_here(self, name: str, content: bytes) -> str:
        folder = self._home.path / "reports"
        make_private_folder(folder)
        write_atomically(folder / name, content)
        return str(folder / name)

    def _sections(self, name: str) -> dict[str, Any]:
        async def process() -> Mapping[str, Any]:
            return await asyncio.to_thread(self._process, name)

        async def heartbeat() -> Mapping[str, Any]:
            return await self._heartbeat(name)

        async def log_tail() -> Mapping[str, Any]:
            return await self._log_tail(name)

        async def audit() -> Mapping[str, Any]:
            return await asyncio.to_thread(self._audit)

        return {
            "process": process,
            "heartbeat": heartbeat,
            "database": self._database,
            "paths": self._paths,
            "disk": self._disk,
            "log_tail": log_tail,
            "inbox": self._pending,
            "audit": audit,
        }

    def _process(self, name: str) -> dict[str, Any]:
        snapshot = self._engine.snapshot()
        slots = []
        for slot in snapshot.observed.of(name):
            status = snapshot.observed.slots[slot]
            pid = status.identity.pid if status.identity and status.state in ALIVE else None
            tree = read_tree(pid) if pid else []
            slots.append(
                {
                    "slot": slot,
                    "state": str(status.state),
                    "health": str(slot_health(status)),
                    "running": pid is not None,
                    "pid": pid,
                    "memory_bytes": sum(use.rss for use in tree) or None,
                    "cpu_seconds": round(sum(use.cpu for use in tree), 2) if tree else None,
                    "processes": len(tree),
                    "uptime_seconds": self._uptime(status.started_wall) if pid else None,
                    "restarts": status.restarts,
                    "last_error": None if status.error is None else status.error.message,
                    "why": status.why,
                }
            )
        first = slots[0] if slots else {"running": False, "pid": None}
        keys = ("running", "pid", "memory_bytes", "cpu_seconds", "uptime_seconds")
        return {**{key: first.get(key) for key in keys}, "slots": slots}

    def _uptime(self, started: float) -> float:
        return round(max(0.0, self._clock.now().wall - started), 3)

    async def _heartbeat(self, name: str) -> dict[str, Any]:
        snapshot = self._engine.snapshot()
        entry = snapshot.declaration.workers.get(name)
        told: dict[str, Any] = {
            "paused": entry is not None and entry.admin is Admin.PAUSED,
            "fresh": None,
            "healthy": None,
        }
        share = self._share()
        if share is None:
            status = snapshot.observed.slots.get(name)
            told["healthy"] = None if status is None else str(slot_health(status)) == "healthy"
            told["last_heartbeat_at"] = None if status is None else utc_or_none(status.proved_wall)
            return told
        layout = self._config.current.settings.inbox
        assert layout is not None
        path = f"{layout.layout.state}/{watcher_heartbeat_name(name)}"
        seen = await share[0].look(path)
        if seen is None:
            return {**told, "fresh": False, "healthy": False, "why": "there is none"}
        age = seen.age(self._clock.now().wall)
        content = await share[0].read(path, _TAIL)
        return {**told, **_judged(getattr(content, "raw", b""), age)}

    async def _database(self) -> dict[str, Any]:
        if self._config.current.settings.store is None:
            return {"configured": False}
        report = await self._database_report(None)
        checks = {each["check"]: each for each in report.get("checks", ())}
        server = checks.get("server", {})
        failed = [each for each in checks.values() if each["result"] == "fail"]
        return {
            "configured": True,
            "connected": checks.get("connection", {}).get("result") == "ok",
            "server": server.get("detail"),
            "failed": [f"{each['check']}: {each['detail']}" for each in failed],
        }

    async def _database_report(self, label: str | None) -> dict[str, Any]:
        """Have the command line check the database, in a process that may speak SQL."""
        words = [sys.executable, "-I", "-m", "uphold", "-c", self._config.path]
        words += ["--home", str(self._home.path), "verify-db", "--json"]
        words += ["--label", label] if label else []
        done = await asyncio.to_thread(
            run,
            words,
            cwd=str(Path(self._config.path).parent),
            limit=_DATABASE,
            environment=self._environ,
        )
        try:
            report: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise HostFailure(
                f"the database could not be checked: {done.stderr[-500:] or done.error}"
            ) from None
        if "error" in report and "checks" not in report:
            raise UpholdError(str(report["error"].get("message")), code="UPH_STORE_UNREACHABLE")
        return report

    async def _paths(self) -> dict[str, Any]:
        found = await self._surveyed()
        problems = {path: error for path, error in found["paths"].items() if error}
        accessible = {path: error is None for path, error in found["paths"].items()}
        return {"accessible": accessible, "problems": problems}

    async def _disk(self) -> dict[str, Any]:
        found = await self._surveyed()
        space: dict[str, Any] = found["space"]
        return space

    async def _surveyed(self) -> dict[str, Any]:
        share = self._share()
        if share is None:
            raise HostFailure("no share is configured ([inbox] is missing).")
        return await share[0].survey()

    async def _log_tail(self, name: str) -> dict[str, Any]:
        settings = self._config.current.settings
        share = self._share()
        if share is not None and settings.deploy is not None:
            path = settings.deploy.worker_log
            found = await share[0].read(path, _TAIL, end=True)
            raw = getattr(found, "raw", None)
        else:
            path = str(self._home.log(name))
            raw = await asyncio.to_thread(_tail, Path(path))
        if raw is None:
            return {"path": path, "lines": [], "why": "there is no such log"}
        text = self._redactor().text(raw.decode(errors="replace"))
        return {"path": path, "lines": text.splitlines()[-_LINES:]}

    async def _pending(self) -> dict[str, Any]:
        share = self._share()
        if share is None:
            raise HostFailure("no share is configured ([inbox] is missing).")
        listing = await share[1].flags()
        return {
            "pending": [entry.name for entry in listing.entries],
            "more": listing.more,
            "processing": [entry.name for entry in await share[1].names("processing", 50)],
        }

    def _audit(self) -> dict[str, Any]:
        from uphold.journal.reading import JournalReader  # noqa: PLC0415 - only for a report

        with JournalReader(self._home.journal) as journal:
            return {"rows": journal.audit(limit=_AUDIT, newest_first=True)}

    @property
    def _engine(self) -> Supervisor:
        assert self._supervisor is not None
        return self._supervisor


def _judged(raw: bytes, age: float) -> dict[str, Any]:
    """Say what a watcher's heartbeat means; one that cannot be read is a bad sign, no mistake."""
    from uphold.core.notices import GOOD_STATUSES  # noqa: PLC0415 - with a share only

    try:
        content = json.loads(raw)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        return {"age_seconds": round(age, 1), "fresh": False, "healthy": False, "why": "unreadable"}
    error = content.get("error") or content.get("last_error")
    fresh = age < _FRESH
    good = str(content.get("status", "")).lower() in GOOD_STATUSES
    return {
        "age_seconds": round(age, 1),
        "fresh": fresh,
        "healthy": fresh and good and not error,
        "status": content.get("status"),
        "reported_error": error,
        "pid": content.get("pid"),
        "hostname": content.get("hostname"),
    }


def _tail(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            return file.read()
    except OSError:
        return None
