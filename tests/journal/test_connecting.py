from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from proofs import disks
from uphold.errors import StoreUnavailable
from uphold.host.files import keep_in_place
from uphold.journal.connecting import (
    connect_reading,
    connect_writing,
    is_damage,
    reads_still,
    unavailable,
)


def error(code, kind=sqlite3.OperationalError):
    cause = kind("the library's own words")
    cause.sqlite_errorcode = code
    return cause


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "full"),
        (sqlite3.SQLITE_READONLY, "read-only"),
        (sqlite3.SQLITE_BUSY, "locked"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened"),
        (sqlite3.SQLITE_IOERR_WRITE, "reports an error"),
        (sqlite3.SQLITE_ERROR, "does not answer"),
    ],
)
def test_every_cause_is_a_sentence_with_a_remedy(path, code, words):
    refusal = unavailable(path, error(code))
    assert words in refusal.message
    assert str(path) in refusal.message
    assert "the library's own words" in refusal.message
    assert refusal.remedy
    assert refusal.code == "UPH_JOURNAL_UNAVAILABLE"


def test_damage_is_told_apart_from_what_is_only_out_of_reach(path):
    assert is_damage(error(sqlite3.SQLITE_CORRUPT, sqlite3.DatabaseError))
    assert is_damage(error(sqlite3.SQLITE_NOTADB, sqlite3.DatabaseError))
    assert is_damage(error(sqlite3.SQLITE_CORRUPT_INDEX, sqlite3.DatabaseError))
    for cause in (error(sqlite3.SQLITE_IOERR), error(sqlite3.SQLITE_FULL), OSError(), ValueError()):
        assert not is_damage(cause)
    refusal = unavailable(path, error(sqlite3.SQLITE_CORRUPT, sqlite3.DatabaseError))
    assert refusal.code == "UPH_JOURNAL_CORRUPT"
    assert "restart" in refusal.remedy


def test_each_caller_gets_an_error_of_its_own(path):
    first = StoreUnavailable("words", code="UPH_X", remedy="do this")
    second = unavailable(path, first)
    assert second is not first
    assert (second.message, second.code, second.remedy) == ("words", "UPH_X", "do this")


def test_a_journal_rests_when_no_changes_wait_beside_it(path):
    assert reads_still(path)
    connection = connect_writing(path)
    connection.execute("CREATE TABLE t (a)")
    assert not reads_still(path)
    connection.close()
    assert reads_still(path)
    path.with_name("journal.db-wal").touch()
    assert reads_still(path)


WRITER = """
import os, sys
from pathlib import Path
from uphold.journal.connecting import connect_writing
connection = connect_writing(Path(sys.argv[1]))
connection.execute("CREATE TABLE t (a)")
connection.execute("INSERT INTO t VALUES (1)")
os._exit(0)
"""
READER = """
import sys
from pathlib import Path
from uphold.journal.connecting import connect_reading
assert connect_reading(Path(sys.argv[1])).execute("SELECT a FROM t").fetchall()
"""


@pytest.mark.accepts("P14")
def test_a_journal_on_a_full_btrfs_can_be_read_with_and_without_its_writer(tmp_path):
    if reason := disks.why_not_btrfs():
        pytest.skip(reason)
    with disks.copying(tmp_path / "image", tmp_path / "disk") as disk:
        keep_in_place(disk)
        path = disk / "journal.db"
        subprocess.run([sys.executable, "-c", WRITER, path], check=True)
        disks.fill(disk)
        with closing(connect_reading(path)) as connection:  # its writer was killed
            assert connection.execute("SELECT a FROM t").fetchone()[0] == 1
        (disk / "ballast").unlink()
        os.sync()
        with closing(connect_writing(path)) as writer:
            writer.execute("INSERT INTO t VALUES (2)")
            with closing(connect_reading(path)) as connection:
                assert connection.execute("SELECT count(*) FROM t").fetchone()[0] == 2
                writer.execute("INSERT INTO t VALUES (3)")
                assert connection.execute("SELECT count(*) FROM t").fetchone()[0] == 3


def test_a_reader_changes_nothing_in_the_index_of_a_btrfs_journal(tmp_path):
    if reason := disks.why_not_btrfs():
        pytest.skip(reason)
    with disks.copying(tmp_path / "image", tmp_path / "disk") as disk:
        keep_in_place(disk)
        path = disk / "journal.db"
        with closing(connect_writing(path)) as writer:
            writer.execute("CREATE TABLE t (a)")
            writer.execute("INSERT INTO t VALUES (1)")
            before = path.with_name("journal.db-shm").read_bytes()
            # In a process of its own: within one, SQLite shares what it has mapped.
            subprocess.run([sys.executable, "-c", READER, path], check=True)
            assert path.with_name("journal.db-shm").read_bytes() == before
