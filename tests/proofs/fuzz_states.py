"""Homes with state of any content: `status` answers, the next supervisor starts.

Checksums are put right again where they fit before, so that what is behind them is tried too.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing, suppress

from uphold.cli.offline import anything_alive, look_ourselves
from uphold.cli.owners import config_of, owner_of, watch
from uphold.cli.rendering import key_values, table
from uphold.cli.seeing import _add_stop_note
from uphold.cli.verdicts import exit_code
from uphold.core.events import Note, Recorded
from uphold.core.specs import Instant, WorkerSpec
from uphold.core.statuses import SlotStatus, State
from uphold.errors import Malformed, StoreUnavailable
from uphold.host.locks import _checksum
from uphold.host.mirrors import checksum, read_mirror
from uphold.host.proctable import boot_id
from uphold.journal.audit import verify
from uphold.journal.reading import JournalReader
from uphold.journal.recalling import recall
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import AuditEntry, Batch, JobRow
from uphold.testing.stages import Stage
from uphold.wire.codecs import decode
from uphold.wire.overrides import decode_override

NOW = 1_770_301_815.0
OWNER = Owner(name="orion", hostname="host-1", pid=4242, id="supervisor-1")
ROWS = {
    "slot": "UPDATE slots_t SET record = ?",
    "override": "UPDATE overrides_t SET override = ?",
    "payload": "UPDATE events_t SET payload = ?",
    "details": "UPDATE audit_log_t SET details_json = ?",
}


class States:
    """Inputs are `runtime`, `stop`, `lock`, `meta`, `journal` (damage), or a column of ROWS."""

    def __init__(self, folder):
        self._home = folder
        self._journal = folder / "journal.db"
        self._whole = b""
        self._turn = 0

    async def open(self):
        journal, _ = open_journal(self._journal, boot_id=boot_id(), owner=OWNER, now=NOW)
        await journal.append(_batch())
        await journal.close()
        with closing(sqlite3.connect(self._journal)) as connection:
            triggers = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for (name,) in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            connection.commit()
            connection.execute("PRAGMA journal_mode = DELETE")
        self._whole = self._journal.read_bytes()

    async def close(self):
        pass

    async def take(self, kind, data):
        self._turn += 1
        for path in self._home.iterdir():
            path.unlink()
        data = data.replace(b"@BOOT@", boot_id().encode())
        if kind in ("runtime", "stop", "lock"):
            name = {"runtime": "runtime.json", "stop": "last_stop.json", "lock": "lock"}[kind]
            (self._home / name).write_bytes(_signed(kind, data))
        else:
            self._damage(kind, data)
        self._look()
        if kind not in ("runtime", "stop", "lock"):
            self._read_journal(kind, data)
            await self._start(kind)

    def _damage(self, kind, data):
        """Put a good journal in place, then the input into it."""
        content = bytearray(self._whole)
        if kind == "journal":
            for word in data.split():
                at, _, byte = word.partition(b":")
                with suppress(ValueError):
                    content[int(at[:9]) % len(content)] = int(byte[:9] or b"0", 16) % 256
        self._journal.write_bytes(content)
        if kind == "journal":
            return
        text = data.decode("utf-8", "replace")
        with closing(sqlite3.connect(self._journal)) as connection:
            if kind == "meta":
                key, _, value = text.partition("=")
                connection.execute(
                    "INSERT OR REPLACE INTO meta_t (key, value) VALUES (?, ?)", (key, value)
                )
            else:
                connection.execute(ROWS[kind], (text,))
            connection.commit()

    def _look(self):
        home = str(self._home)
        read_mirror(self._home / "runtime.json")
        found = owner_of(home)
        config_of(found)
        if found.owner is not None and (held := watch(found.owner)) is not None:
            held.close()
        document = look_ourselves(home, found, companions=True)
        anything_alive(home)
        _add_stop_note(document, home)
        json.dumps(document)
        table(document, NOW, wide=True)
        key_values(document)
        assert exit_code(document, named=False) in range(256)

    def _read_journal(self, kind, data):
        if kind == "slot":
            with suppress(Malformed):
                decode(SlotStatus, data)
        if kind == "override":
            decode_override(data.decode("utf-8", "replace"))
        with suppress(StoreUnavailable), JournalReader(self._journal) as reader:
            for answer in (
                reader.slots(),
                reader.events(),
                reader.audit(),
                reader.jobs(),
                reader.overrides(),
                reader.meta(),
            ):
                json.dumps(answer)
            list(verify(reader))

    async def _start(self, kind):
        """Be the next supervisor: the books are read as they are, and it starts."""
        with suppress(StoreUnavailable):
            memory = recall(self._journal, boot_id())
            stage = Stage(WorkerSpec(name="web", command=("web",)))
            stage.journal.recall = lambda: memory
            await asyncio.wait_for(stage.start(), 60)
            assert stage.supervisor.snapshot().declaration.workers
            await stage.supervisor.abandon()
        if kind in ("meta", "journal") or self._turn % 8 == 0:
            with suppress(StoreUnavailable):
                journal, _ = open_journal(self._journal, boot_id="another", owner=OWNER, now=NOW)
                await journal.append(Batch(meta={"x": "y"}))
                await journal.close()


def _signed(kind, data):
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return data
    if kind == "runtime" and isinstance(content, dict) and "checksum" in content:
        content["checksum"] = checksum(content)
    elif kind == "lock" and isinstance(content, dict) and "check" in content:
        del content["check"]
        content["check"] = _checksum(content)
    else:
        return data
    return json.dumps(content).encode()


def _batch():
    status = SlotStatus(
        slot="web", state=State.RUNNING, generation=3, nonce="f" * 32, since=Instant(10.0)
    )
    note = Note(
        type="supervisor.started", entity_type="supervisor", entity_id="orion", payload={"pid": 1}
    )
    audit = AuditEntry(
        id="a1",
        actor="ann",
        action="stop",
        target_type="worker",
        target_id="web",
        label=None,
        at=NOW,
        details={},
    )
    job = JobRow(
        id="j1",
        task_id=None,
        type="stop",
        target="web",
        label=None,
        state="running",
        created_at=NOW,
        updated_at=NOW,
    )
    return Batch(
        events=[Recorded(seq=1, id="e1", at=NOW, event=note, cause=None)],
        slots=[status],
        overrides={"web": json.dumps({"up": False, "by": "ann"})},
        meta={"declaration": "3"},
        audit=[audit],
        jobs=[job],
    )
