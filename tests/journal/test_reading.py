from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from proofs import disks
from uphold.core.events import Note, Recorded
from uphold.errors import StoreUnavailable
from uphold.journal.audit import verify
from uphold.journal.reading import JournalReader
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import entry, identity, job, news, play, status

T0 = 1770301815.0


def fingerprint(folder):
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_ino)
        for file in folder.iterdir()
    }


@pytest.fixture
def full(written):
    note = Note(type="config.applied", entity_type="supervisor", entity_id="api", payload={"v": 1})
    return written(
        Batch(
            events=[*(news(n, "web.2" if n % 2 else "api") for n in range(1, 9))],
            slots=[status(), status("web.2", identity=None, terms=None, exit=None, error=None)],
            overrides={"api": '{"replicas": 3}'},
            meta={"version": "3"},
            audit=[entry(1), entry(2)],
            jobs=[job()],
        ),
        Batch(events=[Recorded(seq=9, id="n", at=T0 + 9, event=note)]),
    )


def test_events_are_found_by_number_time_worker_and_type(full):
    with JournalReader(full) as reader:

        def found(**search):
            return [event["seq"] for event in reader.events(**search)]

        assert found() == list(range(1, 10))
        assert found(after_seq=6) == [7, 8, 9]
        assert found(limit=2) == [1, 2]
        assert found(limit=2, newest_first=True) == [9, 8]
        assert found(since=T0 + 3, until=T0 + 5) == [3, 4, 5]
        assert found(worker="web") == [1, 3, 5, 7]
        assert found(worker="api", newest_first=True) == [8, 6, 4, 2]
        assert found(types=["config.applied"]) == [9]
        assert found(types=["config.applied", "worker.connected"], after_seq=7) == [8, 9]
        assert found(types=[]) == []
        assert found(worker="x' OR 1=1 --") == []


@pytest.mark.accepts("D-35", "M-38")
def test_what_is_read_has_the_public_shapes(full):
    with JournalReader(full) as reader:
        assert reader.events(limit=1) == [
            {
                "seq": 1,
                "id": "e-1",
                "type": "worker.connected",
                "entity_type": "worker",
                "entity_id": "web",
                "timestamp": "2026-02-05T14:30:16.000Z",
                "severity": "info",
                "payload": {"slot": "web.2", "generation": 1, "pid": 42},
                "cause": "order-1",
            }
        ]
        line = reader.audit(newest_first=True, limit=1)[0]
        assert line["audit_id"] == "audit-2"
        assert line["details"] == {"reason": "why not", "number": 2}
        assert "details_json" not in line
        assert len(line["hash"]) == len(line["prev_hash"]) == 64
        assert [row["audit_id"] for row in reader.audit(since=T0 + 2)] == ["audit-2"]
        assert reader.audit(until=T0) == reader.audit(targets=["nobody"]) == []
        assert (
            list(reader.jobs()[0])
            == (
                "job_id task_id job_type target_ref label state attempts claimed_by_worker created_at"
                " updated_at started_at finished_at last_error log_path result_path"
            ).split()
        )
        assert reader.jobs(states=["failed"]) == []
        assert len(reader.jobs(states=["queued", "failed"])) == 1
        assert reader.overrides() == {"api": {"replicas": 3}}
        assert reader.meta() == {"version": "3"}


@pytest.mark.accepts("S43")
def test_a_slot_is_shown_with_what_proves_its_life_and_without_its_secrets(full):
    with JournalReader(full) as reader:
        first, second = reader.slots()
    who = identity()
    assert first == {
        "slot": "api",
        "name": "api",
        "kind": "process",
        "team": None,
        "state": "running",
        "generation": 3,
        "pid": who.pid,
        "start_ticks": who.start_ticks,
        "boot_id": who.boot_id,
        "inode": who.inode,
        "since": "2026-02-05T14:30:15.250Z",
        "started_at": "2026-02-05T14:30:14.250Z",
        "last_heartbeat_at": "2026-02-05T14:30:16.000Z",
        "failures": 2,
        "restarts": 5,
        "exit": {"code": 1, "signal": None, "at": "2026-02-05T14:30:00.000Z"},
        "last_error": {"code": "UPH_X", "message": "earlier"},
        "why": "up and ready",
    }
    assert (second["pid"], second["exit"], second["last_error"]) == (None, None, None)
    assert "nonce-" not in json.dumps(first)


@pytest.mark.accepts("B-11")
def test_reading_a_resting_journal_touches_nothing(full):
    before = fingerprint(full.parent)
    with JournalReader(full) as reader:
        assert reader.events()
        assert reader.slots()
    assert fingerprint(full.parent) == before


def test_a_journal_left_by_a_crash_is_read_with_its_last_changes(opened, path, tmp_path):
    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(1)]))
        left = tmp_path / "left"
        left.mkdir()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", left)
        await journal.close()
        before = (left / "journal.db").read_bytes()
        with JournalReader(left / "journal.db") as reader:
            assert [event["seq"] for event in reader.events()] == [1]
        assert (left / "journal.db").read_bytes() == before

    play(script)


def test_readers_see_each_batch_at_once_and_never_disturb_the_writer(opened, path):
    async def script():
        journal = opened()
        with JournalReader(path) as reader:
            for seq in range(1, 60):
                await journal.append(Batch(events=[news(seq)]))
                assert [event["seq"] for event in reader.events(after_seq=seq - 1)] == [seq]
        await journal.close()

    play(script)


def test_a_reader_that_began_at_rest_notices_that_a_supervisor_came_up(full, opened):
    async def script():
        with JournalReader(full) as reader:
            assert len(reader.events()) == 9
            journal = opened()
            await journal.append(Batch(events=[news(10)]))
            assert [event["seq"] for event in reader.events(after_seq=9)] == [10]
            await journal.close()

    play(script)


@pytest.mark.accepts("B-38")
def test_many_readers_and_a_writer_at_once(opened, path):
    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(1)]))

        def look():
            for _ in range(20):
                with JournalReader(path) as reader:
                    seqs = [event["seq"] for event in reader.events(limit=10_000)]
                    assert seqs == list(range(1, len(seqs) + 1))

        async def write():
            for seq in range(2, 150):
                await journal.append(Batch(events=[news(seq)]))

        await asyncio.gather(write(), *(asyncio.to_thread(look) for _ in range(4)))
        await journal.close()

    play(script)


def test_a_missing_journal_is_named_and_not_made(path):
    with JournalReader(path) as reader, pytest.raises(StoreUnavailable) as caught:
        reader.events()
    assert caught.value.code == "UPH_JOURNAL_MISSING"
    assert str(path) in caught.value.message
    assert caught.value.remedy
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("content", [b"nonsense" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_journal_is_refused_with_a_remedy_and_left_alone(path, content):
    path.write_bytes(content)
    with JournalReader(path) as reader, pytest.raises(StoreUnavailable) as caught:
        reader.slots()
    assert caught.value.code == "UPH_JOURNAL_CORRUPT"
    assert caught.value.remedy
    assert fingerprint(path.parent).keys() == {"journal.db"}
    assert path.read_bytes() == content


def test_a_database_without_our_tables_is_refused_with_a_sentence(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (a)")
    with JournalReader(path) as reader, pytest.raises(StoreUnavailable, match="no such table"):
        reader.events()


def test_a_damaged_record_hides_neither_its_row_nor_the_others(full):
    with closing(sqlite3.connect(full, isolation_level=None)) as hand:
        hand.execute("UPDATE slots_t SET record = '{broken' WHERE slot = 'api'")
        hand.execute(
            "UPDATE slots_t SET record = json_set(record, '$.since_wall', 1e300) WHERE slot <> 'api'"
        )
        hand.execute("UPDATE events_t SET payload = '{oops' WHERE seq = 1")
    with JournalReader(full) as reader:
        first, second = reader.slots()
        assert (first["slot"], first["state"], first["generation"]) == ("api", "running", 3)
        assert second["since"] is None
        assert reader.events(limit=1)[0]["payload"] == "{oops"


def test_a_path_with_signs_that_mean_something_in_an_address_is_just_a_path(
    opened, tmp_path, owner
):
    folder = tmp_path / "a b?mode=rw&c#d%20e\udce9"
    folder.mkdir()

    async def script():
        journal = opened(where=folder / "journal.db")
        await journal.append(Batch(events=[news(1)]))
        with JournalReader(folder / "journal.db") as reader:
            assert len(reader.events()) == 1
        await journal.close()

    play(script)
    assert sorted(os.listdir(folder)) == ["journal.db", "reserve"]


def test_the_command_line_pays_for_no_codec_and_no_loop():
    text = (
        "import sys; import uphold.journal.reading, uphold.journal.audit;"
        "print([name for name in ('msgspec', 'asyncio', 'uphold.journal.writing')"
        " if name in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, text=True
    ).stdout
    assert printed.strip() == "[]"


@pytest.mark.accepts("B-86")
def test_what_was_read_stays_whole_after_the_reader_is_closed(full):
    with JournalReader(full) as reader:
        events, audit, slots = reader.events(), reader.audit(), reader.slots()
    assert all(type(each) is dict for each in (*events, *audit, *slots))
    assert events[0]["payload"]["slot"]


@pytest.mark.skipif(disks.why_not() is not None, reason="only root can mount a disk")
@pytest.mark.parametrize("crashed", [False, True])
def test_a_journal_on_a_read_only_disk_is_read(tmp_path, opened, crashed):
    with disks.mounted("-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", tmp_path / "d") as disk:

        async def script():
            journal = opened(where=disk / "journal.db")
            await journal.append(Batch(events=[news(1)], audit=[entry(1)], durable=True))
            if crashed:  # what a killed supervisor leaves behind, in another place
                shutil.copytree(disk, disk / "left")
            await journal.close()

        play(script)
        disks.remount(disk, "ro")
        with JournalReader(disk / ("left/journal.db" if crashed else "journal.db")) as reader:
            assert [event["seq"] for event in reader.events()] == [1]
            assert verify(reader) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("folder", [0o700, 0o755])
def test_somebody_else_is_told_that_they_may_not_read_it(full, folder):
    full.parent.chmod(folder)
    os.seteuid(65534)
    try:
        with JournalReader(full) as reader, pytest.raises(StoreUnavailable) as caught:
            reader.events()
    finally:
        os.seteuid(0)
    assert f"{full}: permission is denied" in caught.value.message
    assert "owner" in caught.value.remedy
