from __future__ import annotations

import os
import stat
from contextlib import closing

import pytest

from proofs import disks
from uphold.host.files import keep_in_place
from uphold.journal import reserving
from uphold.journal.connecting import connect_writing
from uphold.journal.reserving import SIZE, Headroom, Reserve


@pytest.fixture
def reserve(path, monkeypatch):
    monkeypatch.setattr(reserving, "_PLENTY", 0)
    return Reserve(path)


def test_the_reserve_is_room_that_is_really_taken_and_private(reserve, path):
    reserve.renew()
    found = path.with_name("reserve").stat()
    assert found.st_size == SIZE
    assert found.st_blocks * 512 >= SIZE
    assert stat.S_IMODE(found.st_mode) == 0o600


def test_it_is_given_up_once_and_had_again_when_there_is_room(reserve, path):
    assert not reserve.give_up()
    reserve.renew()
    assert reserve.give_up()
    assert not path.with_name("reserve").exists()
    assert not reserve.give_up()
    reserve.renew()
    assert path.with_name("reserve").exists()


def test_one_that_an_earlier_supervisor_left_is_known(reserve, path):
    reserve.renew()
    assert Reserve(path).give_up()


def test_a_disk_without_plenty_is_left_alone(path, monkeypatch):
    monkeypatch.setattr(reserving, "_PLENTY", 2**80)
    reserve = Reserve(path)
    reserve.renew()
    assert not path.with_name("reserve").exists()


def test_what_cannot_be_made_is_no_trouble(reserve, path, monkeypatch):
    path.with_name("reserve").mkdir()
    reserve.renew()
    assert not reserve.give_up()
    monkeypatch.delattr(os, "posix_fallocate")
    reserve.renew()


def test_where_files_change_in_place_nobody_asks_for_headroom(path, monkeypatch):
    monkeypatch.setattr(reserving, "is_kept_in_place", lambda _: False)
    monkeypatch.delattr(os, "pwrite")
    headroom = Headroom(path)
    assert headroom.is_there()
    assert headroom.is_there_for(2**60)


@pytest.mark.accepts("P14")
def test_where_a_full_disk_kills_headroom_is_asked_for_and_given_back(tmp_path):
    if reason := disks.why_not_btrfs():
        pytest.skip(reason)
    with disks.copying(tmp_path / "image", tmp_path / "disk") as disk:
        keep_in_place(disk)
        headroom = Headroom(disk / "journal.db")
        assert headroom.is_there_for()
        assert headroom.is_there_for(SIZE)
        assert not headroom.is_there_for(2**60)
        assert os.listdir(disk) == []
        disks.fill(disk)
        assert not headroom.is_there_for()
        (disk / "ballast").unlink()
        os.sync()
        assert headroom.is_there_for()


@pytest.mark.accepts("P14")
def test_what_is_open_is_asked_whether_its_index_can_be_changed(tmp_path):
    if reason := disks.why_not_btrfs():
        pytest.skip(reason)
    with disks.limited(tmp_path / "image", tmp_path / "disk", 4) as disk:
        path = disk / "journal.db"
        headroom = Headroom(path)
        keep_in_place(disk)
        with closing(connect_writing(path)) as connection:
            connection.execute("CREATE TABLE t (a)")
            headroom.forget()
            assert headroom.is_there()
            disks.fill(disk)
            assert not headroom.is_there()
            (disk / "ballast").unlink()
            os.sync()
            assert headroom.is_there()
