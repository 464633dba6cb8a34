from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

from proofs import disks
from uphold.errors import Malformed
from uphold.host.files import keep_in_place
from uphold.journal.committing import Committer, create_private
from uphold.journal.reading import JournalReader
from uphold.journal.rows import rows_of
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, entry, news, status


@pytest.fixture
def committer(path, owner):
    committer = Committer(path, owner=owner, boot_id=BOOT, now=0.0)
    yield committer
    committer.close()


@pytest.fixture
def rows(owner):
    return lambda **fields: rows_of(Batch(**fields), boot_id=BOOT, owner=owner)


@pytest.mark.accepts("P10")
def test_durable_groups_wait_for_the_disk_and_others_do_not(committer, rows):
    levels = []
    for seq, durable in enumerate((False, True, True, False, True), start=1):
        committer.write([rows(events=[news(seq)])], durable=durable)
        levels.append(committer._open().execute("PRAGMA synchronous").fetchone()[0])
    normal, full = 1, 2
    assert levels == [normal, full, full, normal, full]


def test_the_last_durable_number_is_noted_for_whoever_copies(committer, rows, path):
    noted = []
    with JournalReader(path) as reader:
        for seq, durable in ((1, True), (2, False), (3, False), (4, True), (5, False)):
            committer.write([rows(events=[news(seq)])], durable=durable)
            noted.append(reader.own_meta()["journal.durable_seq"])
    assert noted == ["1", "1", "1", "4", "4"]


def test_a_group_is_written_whole_or_not_at_all(committer, rows, path):
    committer.write([rows(events=[news(1)], audit=[entry(1)])], durable=True)
    wrong = rows(events=[news(3)])._replace(slots=[("a", "b", "c", 2**70, "e", "f")])
    with pytest.raises(OverflowError):
        committer.write(
            [rows(events=[news(2)], audit=[entry(2)], slots=[status()]), wrong], durable=True
        )
    committer.write([rows(audit=[entry(3)])], durable=True)
    with JournalReader(path) as reader:
        assert [event["seq"] for event in reader.events()] == [1]
        assert [row["audit_id"] for row in reader.audit()] == ["audit-1", "audit-3"]
        assert reader.slots() == []


def test_an_error_of_the_disk_is_followed_by_a_new_connection(committer, rows):
    committer.write([rows(events=[news(1)], audit=[entry(1)])], durable=True)
    before = committer._open()
    committer._undo(before, sqlite3.OperationalError("disk I/O error"))
    assert committer._open() is not before
    committer.write([rows(events=[news(2)], audit=[entry(2)])], durable=True)
    assert [event["seq"] for event in committer.events(0, 10, None)] == [1, 2]


def test_other_content_under_the_same_number_is_named(committer, rows):
    committer.write([rows(events=[news(1)])], durable=False)
    other = rows(events=[news(1)])
    other.events[0] = (1, "else", *other.events[0][2:])
    with pytest.raises(Malformed, match="event 1 is already in the journal as 'e-1'"):
        committer.write([other], durable=False)


def test_a_file_that_is_there_is_not_made_again(path):
    create_private(path)
    path.write_bytes(b"kept")
    create_private(path)
    assert path.read_bytes() == b"kept"


@pytest.mark.accepts("S03")
def test_a_planted_link_is_not_followed(path, tmp_path):
    path.symlink_to(tmp_path / "victim")
    create_private(path)
    assert not (tmp_path / "victim").exists()


CAREFUL = """
import sqlite3, sys
from pathlib import Path
from proofs.disks import fill
from uphold.journal.committing import Committer
from uphold.journal.rows import Owner, rows_of
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, news
path = Path(sys.argv[1])
owner = Owner(name="orion", hostname="host-1", pid=4242, id="supervisor-1")
committer = Committer(path, owner=owner, boot_id=BOOT, now=0.0)
write = lambda n: committer.write(
    [rows_of(Batch(events=[news(n)]), boot_id=BOOT, owner=owner)], durable=False
)
write(1)
fill(path.parent)
connection = committer._connection
for act in (lambda: write(2), committer._open):
    try:
        act()
    except sqlite3.OperationalError as full:
        assert full.sqlite_errorcode == sqlite3.SQLITE_FULL
    else:
        raise AssertionError("written to a full disk")
committer.close()
connection.execute("SELECT 1")  # it was left open: closing it would have changed the index
print("alive", flush=True)
import os
os._exit(0)
"""


@pytest.mark.accepts("P14")
def test_a_full_btrfs_is_told_and_ends_nobody(tmp_path, rows, owner):
    if reason := disks.why_not_btrfs():
        pytest.skip(reason)
    with disks.copying(tmp_path / "image", tmp_path / "disk") as disk:
        keep_in_place(disk)
        path = disk / "journal.db"
        done = subprocess.run(
            [sys.executable, "-c", CAREFUL, path],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
        (disk / "ballast").unlink()
        os.sync()
        committer = Committer(path, owner=owner, boot_id=BOOT, now=0.0)
        committer.write([rows(events=[news(2)])], durable=True)
        assert [event["seq"] for event in committer.events(0, 10, None)] == [1, 2]
        committer.close()
