"""A supervisor with a share: the real engine, journal and helper; only its workers are made up."""

from __future__ import annotations

import asyncio
import json
import sqlite3

from uphold.config.revisions import FileConfig
from uphold.core.specs import Kind
from uphold.daemon.outreach import Around, Outreach
from uphold.engine.supervisor import Supervisor, Surroundings
from uphold.host.chance import new_nonce
from uphold.host.clock import MachineClock
from uphold.host.homes import Home
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.testing.drivers import FakeDriver
from uphold.wire.redaction import Redactor

SECRET = "canary-71b2-do-not-show"
FOLDERS = (
    *("00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS"),
    *("Worker_Inbox", "Worker_Outbox"),
)
WORKER = """
[supervisor]
name = "orion"
[workers.OrionMX]
command = ["watcher"]
"""
INBOX = """
[inbox]
share = "share"
poll_every = "200ms"
"""


class Lines:
    """A log that keeps what it is told."""

    def __init__(self):
        self.kept = []

    def write(self, level, event, message, *, worker=None, task_id=None, label=None):
        self.kept.append((level, event, message, task_id, label))


class Place:
    """One folder with a configuration, a home and a share."""

    def __init__(self, folder, text=WORKER + INBOX):
        self.folder = folder
        self.top = folder / "share"
        for name in FOLDERS:
            (self.top / name).mkdir(parents=True, exist_ok=True)
        self.inbox = self.top / "Worker_Inbox"
        self.marker = self.top / "00_STATE" / "supervisor_pause_OrionMX.flag"
        self.beat = self.top / "00_STATE" / "supervisor_heartbeat_OrionMX.json"
        self.config = folder / "uphold.toml"
        self.config.write_text(text)
        self.home = Home(folder / ".uphold")
        self.home.path.mkdir(exist_ok=True)
        self.clock = MachineClock()
        self.log = Lines()
        self.driver = FakeDriver(self.clock)
        self.children = set()
        """The helpers of the share."""
        self.ending = asyncio.Event()

    def play(self, story):
        """Let a supervisor live for as long as a story takes."""

        async def go():
            await self.start()
            try:
                async with asyncio.timeout(100):
                    return await story()
            finally:
                await self.outreach.close()
                await self.supervisor.abandon()
                await self.journal.close()

        return asyncio.run(go())

    async def start(self):
        now = self.clock.now().wall
        owner = Owner(name="orion", hostname="here", pid=1, id="id-1")
        self.journal, _ = open_journal(self.home.journal, boot_id="b", owner=owner, now=now)
        self.files = FileConfig(self.config, {})
        self.outreach = Outreach(
            Around(
                home=self.home,
                config=self.files,
                environ={},
                clock=self.clock,
                log=self.log,
                redactor=lambda: Redactor((SECRET,)),
                supervisor_id="id-1",
                children=self.children,
                ending=self.ending,
            )
        )
        self.driver = self.driver.successor()
        self.supervisor = Supervisor(
            self.files,
            Surroundings(
                clock=self.clock,
                journal=self.journal,
                drivers={Kind.PROCESS: self.driver},
                new_nonce=new_nonce,
                boot_id="b",
                supervisor_id="id-1",
                errands=self.outreach.errands(),
            ),
        )
        await self.supervisor.start()
        self.outreach.attend(self.supervisor)
        await self.supervisor.settled(30)

    async def look(self):
        """Look at the share once; give what was done, and what is wrong."""
        return await self.outreach.look()

    async def order(self, wish):
        desk = self.supervisor.desk
        job = await desk.submit(desk.order(wish, author="ann", origin="cli"))
        await job.done
        return job

    def drop(self, handler, task_id="task_20260101_000000_ab12", name=None, **content):
        """Put a flag into the inbox, as whoever can write files there."""
        given = {"task_id": task_id, "handler": handler, "worker_id": "OrionMX", **content}
        path = self.inbox / (name or f"supervisor_{handler}_{task_id}.flag")
        path.write_text(json.dumps(given))
        return path

    def receipts(self):
        whole = (self.top / "Worker_Outbox").glob("[!.]*")  # hidden ones are being written
        found = sorted(whole, key=lambda path: path.name[-24:])
        return [json.loads(path.read_text()) for path in found]

    def answered(self):
        """Give how many receipts there are, without reading them."""
        return len(list((self.top / "Worker_Outbox").glob("[!.]*")))

    def rows(self, query):
        with sqlite3.connect(self.home.journal) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]

    def events(self, like):
        return [
            row["type"]
            for row in self.rows("SELECT type FROM events_t ORDER BY seq")
            if row["type"].startswith(like)
        ]

    @property
    def state(self):
        return str(self.supervisor.snapshot().observed.slots["OrionMX"].state)

    @property
    def held(self):
        return self.supervisor.snapshot().declaration.workers["OrionMX"].override.held
