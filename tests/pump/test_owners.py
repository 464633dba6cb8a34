"""Who the owner is: never a process that only has the same number."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from uphold.pump.owners import boot_id, find_owner, start_ticks, watch


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def own(place: Path, **changes: object) -> None:
    me = {"pid": os.getpid(), "start_ticks": start_ticks(os.getpid()), "boot_id": boot_id()}
    (place / "lock").write_text(json.dumps(me | changes).ljust(1023) + "\n")


def test_the_lock_names_the_owner(tmp_path: Path, folder: int) -> None:
    own(tmp_path)
    owner = find_owner(folder)
    assert owner is not None
    os.close(owner)


@pytest.mark.accepts("P7", "B-08")
@pytest.mark.parametrize(
    "changes",
    [
        {"start_ticks": 1},
        {"boot_id": "another boot"},
        {"pid": None},
        {"pid": -5},
        {"pid": 2**22 - 1},
        {"pid": 10**30},
    ],
)
def test_one_that_only_looks_like_the_owner_is_none(
    tmp_path: Path, folder: int, changes: dict[str, object]
) -> None:
    own(tmp_path, **changes)
    assert find_owner(folder) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "7"])
def test_an_unreadable_lock_names_nobody(tmp_path: Path, folder: int, text: str) -> None:
    (tmp_path / "lock").write_text(text)
    assert find_owner(folder) is None


def test_without_a_lock_the_parent_is_the_owner(folder: int) -> None:
    owner = find_owner(folder)
    assert (owner is not None) == (os.getppid() > 1)
    if owner is not None:
        os.close(owner)


def test_a_process_that_is_gone_is_not_watched() -> None:
    assert watch(2**22 - 1) is None
    assert start_ticks(2**22 - 1) is None
