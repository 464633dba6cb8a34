from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from uphold.core.events import Note, Recorded
from uphold.errors import StoreUnavailable
from uphold.journal import committing, writing
from uphold.journal.audit import verify
from uphold.journal.reading import JournalReader
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, entry, job, news, play, status

WRITER = """
import asyncio, sys
from uphold.core.events import Recorded, WaitBegun
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import entry, news, status

async def main():
    owner = Owner(name="orion", hostname="h", pid=1)
    journal, rescued = open_journal(sys.argv[1], boot_id="boot-1", owner=owner, now=1770301815.0)
    assert rescued is None, rescued
    seq = journal.recall().last_seq
    say = sys.stdout

    async def write(number, durable):
        batch = Batch(
            events=[news(number)],
            slots=[status(f"w{number % 7}", generation=number)],
            audit=[entry(number)] if durable else [],
            durable=durable,
        )
        await journal.append(batch)
        say.write(f"{number} {int(durable)}\\n")
        say.flush()

    while True:
        numbers = range(seq + 1, seq + 9)
        await asyncio.gather(*(write(number, number % 3 == 0) for number in numbers))
        seq += 8

asyncio.run(main())
"""


@pytest.mark.timeout(400)  # a busy machine is no violation
@pytest.mark.accepts("P10", "T01", "T04")
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed_at_random(path):
    chance = random.Random(20260205)
    told: dict[int, bool] = {}
    for _ in range(30):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(chance.randrange(1, 60)):
                number, durable = writer.stdout.readline().split()
                told[int(number)] = durable == "1"
            os.kill(writer.pid, signal.SIGKILL)
            for line in writer.stdout.read().splitlines(keepends=True):
                if line.endswith("\n"):
                    number, durable = line.split()
                    told[int(number)] = durable == "1"
    with JournalReader(path) as reader:
        seqs = [event["seq"] for event in reader.events(limit=1_000_000)]
        audited = {row["details"]["number"] for row in reader.audit(limit=1_000_000)}
        assert verify(reader) == []
    assert set(told) <= set(seqs)
    assert {number for number, durable in told.items() if durable} <= audited
    assert seqs == list(range(1, len(seqs) + 1)), "whole groups are there, without holes"
    owner = Owner(name="orion", hostname="h", pid=1)
    journal, rescued = open_journal(path, boot_id=BOOT, owner=owner, now=0.0)
    memory = journal.recall()
    assert rescued is None
    assert memory.last_seq == seqs[-1]
    assert max(each.generation for each in memory.slots.values()) == seqs[-1]


@contextmanager
def small_disk(folder: Path, size: str):
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


@pytest.mark.accepts("P14", "T10")
def test_a_full_disk_refuses_appends_and_space_lets_them_work_again(tmp_path, owner):
    async def script(folder):
        journal, _ = open_journal(folder / "journal.db", boot_id=BOOT, owner=owner, now=0.0)
        await journal.append(Batch(events=[news(1)], audit=[entry(1)], durable=True))
        fill(folder / "ballast")
        number = 1

        async def write_on():
            nonlocal number
            while number < 400:
                number += 1
                await journal.append(
                    Batch(events=[news(number)], slots=[status()], durable=number % 2 == 0)
                )

        with pytest.raises(StoreUnavailable, match="full") as caught:
            await write_on()
        assert "space" in caught.value.remedy
        with pytest.raises(StoreUnavailable):
            await journal.append(Batch(audit=[entry(2)], slots=[status("x" * 9000)], durable=True))
        (folder / "ballast").unlink()
        await journal.append(Batch(events=[news(number)], audit=[entry(3)], durable=True))
        await journal.close()
        with JournalReader(folder / "journal.db") as reader:
            seqs = [event["seq"] for event in reader.events(limit=1000)]
            assert seqs == list(range(1, number + 1))
            assert [row["audit_id"] for row in reader.audit()] == ["audit-1", "audit-3"]
            assert verify(reader) == []

    with small_disk(tmp_path / "disk", "400k") as folder:
        asyncio.run(script(folder))


@pytest.mark.accepts("P14", "T10")
def test_on_a_full_disk_the_reserve_is_given_up_for_an_order_and_for_nothing_else(tmp_path, owner):
    async def script(folder):
        journal, _ = open_journal(folder / "journal.db", boot_id=BOOT, owner=owner, now=0.0)
        reserve = folder / "reserve"
        assert reserve.stat().st_size == 1024 * 1024
        await journal.append(Batch(events=[news(1)], durable=True))
        fill(folder / "ballast")
        number = 1

        async def write_on():
            nonlocal number
            while number < 400:
                number += 1
                await journal.append(Batch(events=[news(number)], slots=[status()]))

        with pytest.raises(StoreUnavailable, match="full"):
            await write_on()
        assert reserve.exists()
        await journal.append(Batch(events=[news(number)], audit=[entry(1)], durable=True))
        assert not reserve.exists()
        (folder / "ballast").unlink()
        await journal.append(Batch(events=[news(number + 1)]))
        assert reserve.exists()
        await journal.close()
        with JournalReader(folder / "journal.db") as reader:
            assert [row["audit_id"] for row in reader.audit()] == ["audit-1"]

    with small_disk(tmp_path / "disk", "24m") as folder:
        asyncio.run(script(folder))


@pytest.mark.accepts("P14")
def test_a_supervisor_that_starts_on_a_full_disk_can_recall_and_catches_up(tmp_path, owner):
    async def script(folder):
        path = folder / "journal.db"
        journal, _ = open_journal(path, boot_id=BOOT, owner=owner, now=0.0)
        await journal.append(Batch(events=[news(1)], slots=[status()], durable=True))
        killed = folder / "killed" / "journal.db"
        killed.parent.mkdir()
        for end in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{end}", f"{killed}{end}")
        await journal.close()
        for where, gap in ((path, None), (killed, "2-1000001")):
            fill(folder / "ballast")
            late, rescued = open_journal(where, boot_id="boot-2", owner=owner, now=0.0)
            assert rescued is None
            memory = late.recall()
            assert set(memory.slots) == {"api"}
            assert memory.meta.get("gap") == gap
            if where is path:  # opening what a kill left makes room: its log is worked in
                with pytest.raises(StoreUnavailable):
                    await late.append(Batch(events=[news(memory.last_seq + 1)], durable=True))
            (folder / "ballast").unlink()
            await late.append(Batch(events=[news(memory.last_seq + 1)], durable=True))
            again = late.recall()
            assert again.last_seq == memory.last_seq + 1
            assert again.slots["api"].generation == memory.slots["api"].generation
            await late.close()

    with small_disk(tmp_path / "disk", "800k") as folder:
        asyncio.run(script(folder))


def test_a_new_home_on_a_full_disk_leaves_no_empty_journal_behind(tmp_path, owner):
    with small_disk(tmp_path / "disk", "64k") as folder:
        fill(folder / "ballast")
        journal, rescued = open_journal(folder / "journal.db", boot_id=BOOT, owner=owner, now=0.0)
        assert rescued is None
        assert journal.fresh
        assert journal.recall().last_seq == 0
        assert [file.name for file in folder.iterdir()] == ["ballast"]


def test_a_journal_locked_by_another_program_is_refused_and_comes_back(opened, path, monkeypatch):
    monkeypatch.setattr(committing, "connect_writing", _impatient(committing.connect_writing))

    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(1)]))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="locked"):
                await journal.append(Batch(events=[news(2)]))
            other.execute("ROLLBACK")
        await journal.append(Batch(events=[news(2)]))
        assert len(await journal.events()) == 2
        await journal.close()

    play(script)


def _impatient(connect):
    def connected(path):
        connection = connect(path)
        connection.execute("PRAGMA busy_timeout = 1")
        return connection

    return connected


@pytest.mark.accepts("T13")
def test_a_journal_that_is_replaced_while_in_use_is_refused_and_not_written_blindly(opened, path):
    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(1)]))
        path.rename(path.with_name("stolen"))
        path.write_bytes(b"something else")
        with pytest.raises(StoreUnavailable) as caught:
            await journal.append(Batch(events=[news(2)]))
        assert caught.value.code == "UPH_JOURNAL_REPLACED"
        assert path.read_bytes() == b"something else"
        path.with_name("stolen").replace(path)
        await journal.append(Batch(events=[news(2)]))
        await journal.close()

    play(script)


@pytest.mark.accepts("S02", "S03")
def test_only_the_owner_can_read_the_journal_whatever_the_umask(opened, path):
    before = os.umask(0)
    try:

        async def script():
            journal = opened()
            await journal.append(Batch(events=[news(1)]))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            assert modes == {
                "journal.db": 0o600,
                "journal.db-wal": 0o600,
                "journal.db-shm": 0o600,
                "reserve": 0o600,
            }
            await journal.close()

        play(script)
    finally:
        os.umask(before)


@pytest.mark.accepts("B-74")
def test_a_relative_path_stays_where_it_was_when_the_folder_changes(opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def script():
        journal = opened(where="journal.db")
        monkeypatch.chdir("/")
        await journal.append(Batch(events=[news(1)]))
        assert journal.recall().last_seq == 1
        await journal.close()

    play(script)


def test_a_caller_that_gives_up_does_not_undo_what_it_asked_for(opened):
    async def script():
        journal = opened()
        given_up = asyncio.ensure_future(journal.append(Batch(events=[news(1)])))
        await asyncio.sleep(0)
        given_up.cancel()
        await journal.append(Batch(events=[news(2)]))
        assert [event["seq"] for event in await journal.events()] == [1, 2]
        await journal.close()

    play(script)


def test_a_loop_that_is_gone_does_not_end_the_writing(opened, path):
    async def leave():
        journal = opened()
        for number in range(1, 30):
            asyncio.ensure_future(journal.append(Batch(events=[news(number)])))  # noqa: RUF006
        await asyncio.sleep(0)
        return journal

    journal = asyncio.run(leave())

    async def come_back():
        await journal.append(Batch(events=[news(30)]))
        await journal.close()

    asyncio.run(come_back())
    with JournalReader(path) as reader:
        assert [event["seq"] for event in reader.events()] == list(range(1, 31))


def test_closing_ends_the_thread_and_leaves_one_plain_file_and_the_reserve(opened, path):
    async def script():
        journal = opened()
        before = set(threading.enumerate())
        await journal.append(Batch(events=[news(1)]))
        assert set(threading.enumerate()) == before
        await journal.append(Batch(events=[news(2)], durable=True))
        assert len(set(threading.enumerate()) - before) == 1
        await journal.close()
        assert set(threading.enumerate()) <= before

    play(script)
    assert {file.name for file in path.parent.iterdir()} == {"journal.db", "reserve"}


@pytest.mark.accepts("O-05", "O-27")
def test_the_supervisors_own_rows_follow_its_events(opened, path):
    def note(seq, kind, **payload):
        event = Note(type=kind, entity_type="supervisor", entity_id="s", payload=payload)
        return Recorded(seq=seq, id=f"n{seq}", at=1770301815.0 + seq, event=event)

    def rows():
        with closing(sqlite3.connect(path)) as other:
            (mine,) = other.execute(
                "SELECT id, name, status, last_heartbeat, health_metrics FROM supervisors_t"
            )
            (worker,) = other.execute(
                "SELECT worker_id, status, last_heartbeat_at, pid, hostname FROM workers_t"
            )
            return mine, worker

    async def script():
        journal = opened()
        assert journal.supervisor_id == "supervisor-1"
        assert rows()[0] == ("supervisor-1", "orion", "spawning", None, None)
        await journal.append(Batch(events=[note(1, "supervisor.started")]))
        assert rows()[0][2] == "active"
        await journal.append(Batch(events=[note(2, "supervisor.heartbeat", lag=0.5)]))
        beat = "2026-02-05T14:30:17.000Z"
        assert rows() == (
            ("supervisor-1", "orion", "active", beat, '{"lag":0.5}'),
            ("supervisor_orion", "active", beat, 4242, "host-1"),
        )
        for seq, kind, after in (
            (3, "supervisor.paused", "paused"),
            (4, "supervisor.resumed", "active"),
            (5, "supervisor.stopped", "terminated"),
        ):
            await journal.append(Batch(events=[note(seq, kind)]))
            assert [row[2 - place] for place, row in enumerate(rows())] == [after, after]
        await journal.close()

    play(script)


def test_the_supervisor_keeps_its_id_from_run_to_run(path):
    nameless = Owner(name="orion", hostname="h", pid=1)
    first, _ = open_journal(path, boot_id=BOOT, owner=nameless, now=0.0)
    second, _ = open_journal(path, boot_id=BOOT, owner=nameless, now=0.0)
    assert first.supervisor_id == second.supervisor_id
    assert len(first.supervisor_id) == 36
    assert (first.fresh, second.fresh) == (True, False)


def test_jobs_follow_their_order_and_can_be_read_from_outside_at_once(opened, path):
    async def script():
        journal = opened()
        with JournalReader(path) as reader:
            await journal.append(Batch(jobs=[job()], durable=True))
            assert [row["state"] for row in reader.jobs()] == ["queued"]
            await journal.append(Batch(jobs=[job("succeeded", 1770301820.0)]))
            (row,) = reader.jobs()
            assert (row["state"], row["updated_at"]) == ("succeeded", "2026-02-05T14:30:20.000Z")
            assert (row["job_id"], row["created_at"]) == ("job-1", "2026-02-05T14:30:15.000Z")
        await journal.close()

    play(script)


def in_the_file_itself(path):
    """Count the events that need no log beside the file any more."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as plain:
        return plain.execute("SELECT count(*) FROM events_t").fetchone()[0]


def test_the_log_beside_the_file_is_shortened_in_a_pause_and_at_once_when_it_is_long(
    opened, path, monkeypatch
):
    monkeypatch.setattr(committing, "_ROWS_TO_CHECKPOINT", 10)

    async def script():
        journal = opened()
        monkeypatch.setattr(writing, "_A_PAUSE", 600.0)
        await write(journal, 1, 36)
        assert in_the_file_itself(path) == 0, "nobody has paused yet"
        await write(journal, 36, 41)
        assert in_the_file_itself(path) == 40, "it was four times as long as it should be"
        await journal.close()
        journal = opened()
        monkeypatch.setattr(writing, "_A_PAUSE", 0.0)
        await write(journal, 41, 52)
        assert in_the_file_itself(path) >= 50
        await journal.close()

    async def write(journal, first, end):
        for seq in range(first, end):
            await journal.append(Batch(events=[news(seq)]))
            await asyncio.sleep(0)
        await journal.events()  # whatever was asked for before is done

    play(script)
