"""Looking through folders that somebody has flooded."""

from __future__ import annotations

import os

import pytest

from uphold.inbox import listings
from uphold.inbox.listings import Scan, names_in


@pytest.fixture
def folder(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield tmp_path, descriptor
    os.close(descriptor)


def fill(path, count, name="supervisor_{}.flag"):
    for number in range(count):
        made = path / name.format(number)
        made.touch()
        os.utime(made, (1000 + number, 1000 + number))


@pytest.mark.accepts("S11")
@pytest.mark.parametrize("limit", ["MOST_LOOKED_AT", "MOST_NAMES"])
def test_a_look_that_is_cut_short_goes_on_where_it_stopped(folder, monkeypatch, limit):
    path, descriptor = folder
    monkeypatch.setattr(listings, limit, 100)
    fill(path, 350)
    scan = Scan("supervisor_*.flag")
    seen, looks = set(), 0
    while True:
        found = scan.flags(descriptor, 200)
        seen |= {each["name"] for each in found["entries"]}
        looks += 1
        if not found["more"]:
            break
    assert len(seen) == 350
    assert looks == 4
    assert len(scan.flags(descriptor, 200)["entries"]) in {100, 101}, "and anew"
    scan.close()


@pytest.mark.accepts("S11")
def test_a_look_that_takes_too_long_ends_by_itself(folder, monkeypatch):
    path, descriptor = folder
    fill(path, 300)
    monkeypatch.setattr(listings, "LONGEST_LOOK", -1.0)
    scan = Scan("supervisor_*.flag")
    found = scan.flags(descriptor, 200)
    assert found["more"]
    assert len(found["entries"]) < 100
    scan.close()


@pytest.mark.accepts("S11", "T12")
def test_a_slow_share_is_read_a_part_at_a_time_and_its_place_is_kept(folder, monkeypatch):
    path, descriptor = folder
    fill(path, 10)
    scan = Scan("supervisor_*.flag")
    seconds = iter(range(10_000))
    monkeypatch.setattr(listings, "clock", lambda: float(next(seconds)))
    read = []
    monkeypatch.setattr(listings, "LONGEST_LOOK", 20.0)  # its names, and some of its files
    for _ in range(5):
        found = scan.flags(descriptor, 200)
        assert found["entries"]
        read += [each["modified"] for each in found["entries"]]
        monkeypatch.setattr(listings, "LONGEST_LOOK", 2.0)
        if not found["more"]:
            break
        assert len(found["entries"]) < 10
    assert read == [1000 + number for number in range(10)]
    assert not scan.flags(descriptor, 0)["entries"]
    scan.close()


def test_many_other_files_cost_no_look_at_them(folder, monkeypatch):
    path, descriptor = folder
    monkeypatch.setattr(listings, "MOST_LOOKED_AT", 5)
    fill(path, 300, "task_{}.flag")
    fill(path, 3)
    found = Scan("supervisor_*.flag").flags(descriptor, 200)
    assert [each["name"] for each in found["entries"]] == [
        "supervisor_0.flag",
        "supervisor_1.flag",
        "supervisor_2.flag",
    ]


def test_what_did_not_fit_comes_next_and_the_folder_is_read_only_then_again(folder):
    path, descriptor = folder
    fill(path, 10)
    scan = Scan("supervisor_*.flag")
    first = scan.flags(descriptor, 4)
    assert [each["modified"] for each in first["entries"]] == [1000, 1001, 1002, 1003]
    assert first["more"]
    fill(path, 1, "supervisor_new{}.flag")
    (path / "supervisor_5.flag").unlink()
    (path / "supervisor_6.flag").write_text("grown")
    second = scan.flags(descriptor, 6)
    assert [each["name"][11] for each in second["entries"]] == ["4", "6", "7", "8", "9"]
    assert second["entries"][1]["size"] == 5, "as it is when it is given"
    assert not second["more"]
    assert len(scan.flags(descriptor, 200)["entries"]) == 10


def test_folders_of_ours_are_listed_the_newest_first(folder):
    path, descriptor = folder
    fill(path, 5)
    (path / ".hidden").touch()
    assert [each["name"] for each in names_in(descriptor, 2)] == [
        "supervisor_4.flag",
        "supervisor_3.flag",
    ]
