from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing

import pytest

from uphold.errors import StoreUnavailable
from uphold.journal.rescuing import find_damage, rescue
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, news, play, status

NOW = 1770301815.0


def empty(path):
    path.write_bytes(b"")


def text(path):
    path.write_text("this is not a database\n" * 500)


def zeros(path):
    path.write_bytes(bytes(path.stat().st_size))


def cut_in_half(path):
    os.truncate(path, path.stat().st_size // 2)


def cut_to_its_header(path):
    os.truncate(path, 60)


def other_header(path):
    with path.open("r+b") as file:
        file.write(b"SQLITE FORMAT 9\x00")


def scribbled_pages(path):
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(os.urandom(200))


def scribbled_schema(path):
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 2000)


def folder(path):
    path.unlink()
    path.mkdir()
    (path / "something").write_text("kept")


def link(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def database_of_another_program(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA application_id = 12345")
        other.execute("CREATE TABLE browser_history (url)")


def lost_table(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("DROP TABLE slots_t")


KINDS = [
    empty,
    text,
    zeros,
    cut_in_half,
    cut_to_its_header,
    other_header,
    scribbled_pages,
    scribbled_schema,
    folder,
    link,
    fifo,
    database_of_another_program,
    lost_table,
]


@pytest.mark.accepts("P9")
@pytest.mark.parametrize("damage", KINDS)
def test_a_damaged_journal_is_set_aside_and_a_fresh_one_works(written, path, owner, damage):
    written(Batch(events=[news(n) for n in range(1, 300)], slots=[status()]))
    damage(path)
    kept = path.lstat()
    journal, rescued = open_journal(path, boot_id=BOOT, owner=owner, now=NOW)
    aside = path.with_name("journal.db.corrupt-20260205T143015Z")
    assert rescued is not None
    assert aside.name in rescued
    assert aside.lstat().st_ino == kept.st_ino
    assert journal.fresh
    assert stat.S_ISREG(path.lstat().st_mode)
    assert journal.recall().slots == {}

    async def script():
        await journal.append(Batch(events=[news(1)], durable=True))
        assert len(await journal.events()) == 1
        await journal.close()

    play(script)


@pytest.mark.accepts("P9")
def test_its_companions_go_with_it_and_earlier_ones_are_kept(path, owner):
    for turn in range(3):
        path.write_bytes(b"broken %d" % turn)
        path.with_name("journal.db-wal").write_bytes(b"changes %d" % turn)
        open_journal(path, boot_id=BOOT, owner=owner, now=NOW)
    aside = "journal.db.corrupt-20260205T143015Z"
    found = {file.name: file.read_bytes() for file in path.parent.glob("*.corrupt-*")}
    assert found == {
        aside: b"broken 0",
        f"{aside}-wal": b"changes 0",
        f"{aside}-2": b"broken 1",
        f"{aside}-2-wal": b"changes 1",
        f"{aside}-3": b"broken 2",
        f"{aside}-3-wal": b"changes 2",
    }


def test_damage_that_only_shows_when_the_journal_is_used_is_rescued_too(path, owner, monkeypatch):
    text(path)
    monkeypatch.setattr("uphold.journal.writing.rescue", lambda *_: None)
    journal, rescued = open_journal(path, boot_id=BOOT, owner=owner, now=NOW)
    assert "not a database" in rescued
    assert journal.fresh
    assert journal.supervisor_id == "supervisor-1"


def test_a_log_of_changes_without_its_journal_is_not_given_to_a_new_one(path, owner):
    path.with_name("journal.db-wal").write_bytes(b"left over")
    _, rescued = open_journal(path, boot_id=BOOT, owner=owner, now=NOW)
    assert rescued is not None
    assert "only its log of changes is left" in rescued


def test_a_healthy_journal_and_no_journal_are_left_alone(written, path):
    assert rescue(path, NOW) is None
    assert rescue(written(Batch(events=[news(1)])), NOW) is None
    assert {file.name for file in path.parent.iterdir()} == {"journal.db", "reserve"}


def test_damage_in_the_log_of_changes_costs_only_what_was_in_it(opened, path, tmp_path):
    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(1)]))
        await journal.close()
        path.with_name("journal.db-wal").write_bytes(os.urandom(5000))
        again = opened()
        assert again.recall().last_seq == 1

    play(script)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_not_being_allowed_to_look_is_not_damage(written, path):
    written(Batch(events=[news(1)]))
    path.chmod(0)
    assert find_damage(path) is None


def test_a_journal_in_a_folder_that_is_not_there_is_refused_when_it_is_used(tmp_path, owner):
    journal, rescued = open_journal(
        tmp_path / "no" / "journal.db", boot_id=BOOT, owner=owner, now=NOW
    )
    assert rescued is None

    async def script():
        with pytest.raises(StoreUnavailable):
            await journal.append(Batch(events=[news(1)]))
        await journal.close()

    play(script)
