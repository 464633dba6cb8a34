"""Reports as errands: diagnostics of a worker, and the check of the shared database.

Whatever lies on a share is asked through its helper, the database through a program of its own:
the supervisor speaks no SQL and never waits for a share.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uphold.core import orders
from uphold.core.health import slot_health
from uphold.core.notices import Beat
from uphold.core.statuses import Admin
from uphold.diagnose import sections
from uphold.diagnose.reports import About, compose
from uphold.engine.errands import Outcome
from uphold.errors import HostFailure, UpholdError
from uphold.host.commands import run
from uphold.host.files import make_private_folder, write_atomically
from uphold.host.trees import read_tree
from uphold.inbox.receipts import DB_VERIFICATION, DIAGNOSTICS, report_name, watcher_heartbeat_name
from uphold.inbox.shares import Content
from uphold.version import __version__
from uphold.wire.notices import decode_beat
from uphold.wire.views import worker_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uphold.config.revisions import FileConfig
    from uphold.core.orders import Order
    from uphold.diagnose.reports import Reader
    from uphold.engine.supervisor import Supervisor
    from uphold.host.homes import Home
    from uphold.inbox.shares import Inbox, Share
    from uphold.ports.clocks import Clock
    from uphold.wire.redaction import Redactor

_TAIL: Final = 64 * 1024
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
        paths: list[str] = []
        problems: list[str] = []
        for name in order.wish.names:
            report = await compose(
                About(
                    supervisor_id=self._config.current.settings.supervisor.name,
                    worker_id=name,
                    hostname=os.uname().nodename,
                    version=__version__,
                    task_id=order.task_id,
                    label=order.label,
                ),
                self._readers(name),
                wall=self._clock.now().wall,
                redactor=self._redactor(),
                limit=_DATABASE,
            )
            paths.append(await self._keep(DIAGNOSTICS, name, order, report))
            told = report["sections"].items()
            problems += [
                f"{key}: {each['error']['message']}" for key, each in told if each["error"]
            ]
        where: object = paths[0] if len(paths) == 1 else paths
        return Outcome(details={"report_path": where, "problems": problems})

    async def verify(self, order: Order) -> Outcome:
        """Have the shared database checked, and keep the report."""
        report = await self._database_report(order.label)
        names = order.wish.names  # type: ignore[union-attr]
        name = names[0] if names else self._config.current.settings.supervisor.name
        path = await self._keep(DB_VERIFICATION, name, order, report)
        failed = [
            f"{each['check']}: {(each.get('error') or {}).get('message') or each['detail']}"
            for each in report.get("checks", ())
            if each["result"] == "fail"
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

    def _readers(self, name: str) -> dict[str, Reader]:
        """Say who reads for each section; what is not set up here has no reader."""

        async def process() -> Mapping[str, Any]:
            return await asyncio.to_thread(self._process, name)

        async def heartbeat() -> Mapping[str, Any]:
            return await self._heartbeat(name)

        async def log() -> Mapping[str, Any]:
            return await self._log(name)

        async def audit() -> Mapping[str, Any]:
            return await asyncio.to_thread(self._audit)

        always: dict[str, Reader] = {
            "process": process,
            "heartbeat": heartbeat,
            "log": log,
            "audit": audit,
        }
        if self._config.current.settings.store is not None:
            always["database"] = self._database
        if self._share() is not None:
            always |= {"paths": self._paths, "disk": self._disk, "inbox": self._pending}
        return always

    def _process(self, name: str) -> dict[str, Any]:
        snapshot, now = self._engine.snapshot(), self._clock.now()
        entry = snapshot.declaration.workers.get(name)
        found: list[dict[str, Any]] = list(worker_rows(name, entry, snapshot.observed, now))
        for row in found:
            tree = read_tree(row["pid"]) if row["pid"] else []
            row["rss_bytes"] = sum(use.rss for use in tree) or None
            used, uptime = sum(use.cpu for use in tree), row.get("uptime") or 0.0
            row["cpu_percent"] = round(100 * used / uptime, 1) if tree and uptime else None
        told = sections.process(found[0] if found else {})
        others = [sections.process(row) for row in found[1:]]
        return {**told, "other_slots": others} if others else told

    async def _heartbeat(self, name: str) -> dict[str, Any]:
        snapshot, now = self._engine.snapshot(), self._clock.now().wall
        entry = snapshot.declaration.workers.get(name)
        paused = entry is not None and entry.admin is Admin.PAUSED
        inbox, share = self._config.current.settings.inbox, self._share()
        if inbox is None or share is None:
            status = snapshot.observed.slots.get(name)
            proved = None if status is None else status.proved_wall
            told = sections.heartbeat(None, now - proved if proved else None, paused=paused)
            return {**told, "healthy": status is not None and slot_health(status) == "healthy"}
        path = f"{inbox.layout.state}/{watcher_heartbeat_name(name)}"
        seen = await share[0].look(path)
        if seen is None:
            return sections.heartbeat(None, None, paused=paused)
        content = await share[0].read(path, _TAIL)
        read = decode_beat(content.raw, now) if isinstance(content, Content) else None
        beat = read if isinstance(read, Beat) else None
        return sections.heartbeat(beat, seen.age(now), paused=paused)

    async def _database(self) -> dict[str, Any]:
        return sections.database(await self._database_report(None))

    async def _paths(self) -> dict[str, Any]:
        inbox = self._config.current.settings.inbox
        found = await self._reached[0].survey()
        return sections.paths(found["paths"], () if inbox is None else inbox.paths)

    async def _disk(self) -> dict[str, Any]:
        return sections.disk((await self._reached[0].survey())["space"])

    async def _log(self, name: str) -> dict[str, Any]:
        deploy, share = self._config.current.settings.deploy, self._share()
        if share is None or deploy is None:
            path = self._home.log(name)
            return sections.log_tail(str(path), await asyncio.to_thread(_tail, path))
        found = await share[0].read(deploy.worker_log, _TAIL, end=True)
        raw = found.raw if isinstance(found, Content) else None
        return sections.log_tail(deploy.worker_log, raw)

    async def _pending(self) -> dict[str, Any]:
        listing = await self._reached[1].flags()
        files = [(entry.name, entry.size, entry.modified) for entry in listing.entries]
        return sections.pending(files, more=listing.more)

    def _audit(self) -> dict[str, Any]:
        from uphold.journal.reading import JournalReader  # noqa: PLC0415 - only for a report

        with JournalReader(self._home.journal) as journal:
            return sections.audit(journal.audit(limit=sections.AUDIT_ROWS, newest_first=True))

    @property
    def _reached(self) -> tuple[Share, Inbox]:
        share = self._share()
        if share is None:
            raise HostFailure("no share is configured ([inbox] is missing).")
        return share

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

    @property
    def _engine(self) -> Supervisor:
        assert self._supervisor is not None
        return self._supervisor


def _tail(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL))
            return file.read()
    except OSError:
        return None
