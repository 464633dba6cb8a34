"""Slot files and time indexes of any content: read for what they are worth, or passed over."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from uphold.cli.logreading import LogView, Look, Wanted, render
from uphold.core.specs import WorkerSpec
from uphold.drivers.finding import Finder
from uphold.host.clock import MachineClock, boot_id
from uphold.host.homes import Home
from uphold.host.processes.scanning import Snapshot
from uphold.host.processes.slotlocks import SlotLock, SlotRecord, read_record
from uphold.host.proctable import lives
from uphold.ports.drivers import Trace
from uphold.pump.chains import Chain
from uphold.pump.indexes import Index

LINES = b"".join(b"line %d\n" % number for number in range(40))


class Slots:
    """Inputs are `lock` (the file of a slot) or `index` (the times of a log)."""

    def __init__(self, folder):
        self._home = Home(folder)
        self._finder = Finder(self._home, MachineClock(), _NobodyLives())

    async def open(self):
        for path in (self._home.slots, self._home.logs):
            path.mkdir(exist_ok=True)

    async def close(self):
        pass

    async def take(self, kind, data):
        if kind == "lock":
            await self._lock(data.replace(b"@BOOT@", boot_id().encode()))
        else:
            self._index(data)

    async def _lock(self, data):
        path = Path(self._home.slot_lock("web"))
        path.write_bytes(data)
        record = read_record(path)
        lock = SlotLock.take(path)
        assert lock is not None
        try:
            assert lock.read() == record
        finally:
            lock.close()
        if record is not None and (who := record.identity) is not None:
            lives(who.pid, who.start_ticks, who.inode)
        spec = WorkerSpec(name="web", command=("web",))
        trace = Trace(slot="web", generation=1, nonce="", identity=None, spec=spec)
        for verdict in await self._finder.sort_out([self._finder.follow(trace)]):
            assert verdict.process is None, f"a stranger was taken in: {verdict}"
        await self._finder.strays(())
        self._written_again(path)

    def _written_again(self, path):
        """The next run replaces whatever was there."""
        lock = SlotLock.take(path)
        fresh = SlotRecord(7, "f" * 32, boot_id(), 4_000_000, 12345, 99)
        try:
            lock.write(fresh)
            assert lock.read() == fresh
        finally:
            lock.close()

    def _index(self, data):
        logs = self._home.logs
        for name, content in (
            ("web.log", LINES),
            ("web.log.idx", data),
            ("web.log.1", LINES),
            ("web.log.1.idx", data),
        ):
            (logs / name).write_bytes(content)
        shown = [*self._shown(Wanted()), *self._shown(Wanted(last=5, since=1.0, until=4e9))]
        assert len(shown) >= 80, f"{len(shown)} of 80 lines are shown"
        folder = os.open(logs, os.O_RDONLY | os.O_DIRECTORY)
        try:
            index = Index(Chain(folder, "web.log"), 256)
            index.open(len(LINES), 1_700_000_000_000_000)
            for number in range(40):
                index.note(1_700_000_000_000_000 + number * 20_000, number)
            index.close()
            assert (logs / "web.log.idx").stat().st_size <= max(256, len(data)) + 16
        finally:
            os.close(folder)
            with suppress(FileNotFoundError):
                (logs / ".web.log.idx").unlink()

    def _shown(self, wanted):
        with LogView(self._home.logs) as view:
            return [render(line, Look(width=5, timestamps=True)) for line in view.lines(wanted)]


class _NobodyLives:
    """A process table without any process of ours."""

    async def look(self):
        return Snapshot(())

    async def holders(self, path):
        return []
