from __future__ import annotations

import shutil

import pytest

from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import (
    BOOT,
    NEXT_BOOT,
    JournalContract,
    entry,
    job,
    news,
    play,
    status,
)
from uphold.testing.journals import MemoryJournal


class MemoryBench:
    def open(self):
        self.journal = MemoryJournal(boot_id=BOOT)
        return self.journal

    def after_kill(self):
        return self.journal.after_kill()

    def after_boot(self):
        return self.journal.after_boot(NEXT_BOOT)

    def fail(self):
        self.journal.unavailable = True

    def heal(self):
        self.journal.unavailable = False


class SqliteBench:
    """A copy of the files of a journal in use is exactly what a killed supervisor leaves."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "live" / "journal.db"
        self.path.parent.mkdir()

    def open(self):
        return self._open(self.path, BOOT)

    def after_kill(self):
        return self._open(self._copy("killed"), BOOT)

    def after_boot(self):
        return self._open(self._copy("booted"), NEXT_BOOT)

    def fail(self):
        self.path.rename(self.path.with_name("away"))

    def heal(self):
        self.path.with_name("away").rename(self.path)

    def _copy(self, name):
        folder = self.folder / name
        folder.mkdir()
        for file in self.path.parent.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, folder)
        return folder / "journal.db"

    def _open(self, path, boot_id):
        owner = Owner(name="orion", hostname="host", pid=1)
        journal, rescued = open_journal(path, boot_id=boot_id, owner=owner, now=1770301815.0)
        assert rescued is None
        return journal


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def bench(self):
        return MemoryBench()

    def test_a_power_cut_takes_what_was_not_durable_and_a_kill_does_not(self):
        async def script():
            journal = MemoryJournal()
            await journal.append(Batch(events=[news(1)], slots=[status("a")], durable=True))
            await journal.append(Batch(events=[news(2)], slots=[status("b")], meta={"k": "v"}))
            killed, cut = journal.after_kill(), journal.after_boot("boot-2")
            assert set(killed.recall().slots) == {"a", "b"}
            assert set(cut.recall().slots) == {"a"}
            assert [event["seq"] for event in await cut.events()] == [1]
            assert "k" not in cut.recall().meta

        play(script)

    def test_what_was_written_can_be_looked_at(self):
        async def script():
            journal = MemoryJournal()
            batch = Batch(audit=[entry(1)], jobs=[job("running")], durable=True)
            await journal.append(batch)
            assert journal.audit == [entry(1)]
            assert journal.jobs == {"job-1": job("running")}
            assert journal.appended == [batch]

        play(script)


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    def bench(self, tmp_path):
        return SqliteBench(tmp_path)
