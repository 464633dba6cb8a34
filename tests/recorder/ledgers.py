"""Journals to be copied, and what came of it: rows written as a supervisor writes them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

from uphold.core.events import Note, Recorded
from uphold.host.timing import PlainClock
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import AuditEntry, Batch, JobRow
from uphold.recorder.connecting import Store
from uphold.recorder.copying import Copier
from uphold.recorder.refusals import Refusals

T0 = 1770301815.0
ME = "supervisor-1"


def event(seq, **changes):
    values = {
        "type": "worker.starting",
        "entity_type": "worker",
        "entity_id": "api",
        "payload": {"slot": "api", "generation": seq, "why": "it is wanted"},
    }
    note = Note(**(values | changes))
    return Recorded(seq=seq, id=f"abcdef01-{seq}", at=T0 + seq / 1000, event=note, cause=None)


def entry(number, **changes):
    values = {
        "id": f"job_20260205_{number:06}",
        "actor": "maria",
        "action": "restart",
        "target_type": "worker",
        "target_id": "api",
        "label": None,
        "at": T0 + number / 1000,
        "details": {"origin": "cli", "reason": f"because {number}"},
    }
    return AuditEntry(**(values | changes))


def job(number, state="running", **changes):
    values = {
        "id": f"job_20260205_{number:06}",
        "task_id": None,
        "type": "restart",
        "target": "api",
        "label": None,
        "state": state,
        "created_at": T0 + number / 1000,
        "updated_at": T0 + number / 1000,
    }
    return JobRow(**(values | changes))


def some(first, count):
    """Give a batch with one event, one line of the audit and one job for each number."""
    numbers = range(first, first + count)
    return Batch(
        events=[event(number) for number in numbers],
        audit=[entry(number) for number in numbers],
        jobs=[job(number) for number in numbers],
        durable=True,
    )


def write(path, *batches, close=True, boot_id="boot-1"):
    """Write batches into a journal, as its supervisor `ME`; left open it is not closed cleanly."""
    owner = Owner(name="orion", hostname="host-1", pid=4242, id=ME)

    async def script():
        journal, _ = open_journal(path, boot_id=boot_id, owner=owner, now=T0)
        for batch in batches:
            await journal.append(batch)
        if close:
            await journal.close()

    asyncio.run(script())


def alter(path, *statements):
    """Do something to a journal that no supervisor would do."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO meta_t VALUES ('journal.pruning_audit', '1')")
        for statement in statements:
            connection.execute(statement)
        connection.execute("DELETE FROM meta_t WHERE key = 'journal.pruning_audit'")


class Desk:
    """A copier over a journal and a database, and what it said."""

    def __init__(self, folder, url, patience=10.0):
        self.journal = folder / "journal.db"
        self.lines = []
        self.spool = folder / "spool"
        self.store = Store(url, patience=patience)
        clock = PlainClock()
        self.copier = Copier(
            self.store,
            self.journal,
            wall=clock.wall,
            refusals=Refusals(self.spool, wall=clock.wall, say=self.lines.append),
            say=self.lines.append,
        )

    def copy(self, at_once=2000):
        """Copy all there is; gives the last step."""
        while (step := self.copier.copy(at_once)).full:
            pass
        return step


class Copy:
    """What a database holds of a journal, asked as its administrator."""

    def __init__(self, server, url):
        self._server = server
        self._database = url.rpartition("/")[2]

    def rows(self, statement):
        return [tuple(row) for row in self._server.run(statement, self._database)]

    def events(self):
        return [seq for (seq,) in self.rows("SELECT seq FROM events_t ORDER BY supervisor_id, seq")]

    def audit(self):
        rows = self.rows("SELECT audit_id FROM audit_log_t ORDER BY position")
        return [each for (each,) in rows]

    def jobs(self):
        return dict(self.rows("SELECT job_id, state FROM jobs_t"))


def original(journal, statement):
    with closing(sqlite3.connect(journal)) as connection:
        return connection.execute(statement).fetchall()


def assert_same(copy, journal):
    """Every event and line of the audit exactly once, in order, and jobs as they are now."""
    events = [seq for (seq,) in original(journal, "SELECT seq FROM events_t ORDER BY seq")]
    assert copy.events() == events
    audit = original(journal, "SELECT audit_id FROM audit_log_t ORDER BY rowid")
    assert copy.audit() == [each for (each,) in audit]
    assert copy.jobs() == dict(original(journal, "SELECT job_id, state FROM jobs_t"))
