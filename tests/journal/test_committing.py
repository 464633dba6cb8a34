from __future__ import annotations

import sqlite3

import pytest

from uphold.errors import Malformed
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
