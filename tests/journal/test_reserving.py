from __future__ import annotations

import os
import stat

import pytest

from uphold.journal import reserving
from uphold.journal.reserving import SIZE, Reserve


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
