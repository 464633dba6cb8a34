"""The time index: what is written when, and how large it may become."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from uphold.pump.chains import Chain
from uphold.pump.indexes import BURST, GAP, HOLD, LEAST, MOST, RECORD, Index, limit_for, thinned

START = 1_700_000_000_000_000


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    folder = os.open(tmp_path, os.O_RDONLY)
    yield Chain(folder, "w.log")
    os.close(folder)


def records(folder: Path) -> list[tuple[int, int]]:
    return list(RECORD.iter_unpack((folder / "w.log.idx").read_bytes()))


def test_records_are_not_written_more_often_than_every_10_ms(chain: Chain, tmp_path: Path) -> None:
    index = Index(chain, MOST)
    index.open(0, START)
    for step in range(30):
        index.note(START + step * 1000, step * 100)
    index.close()
    assert records(tmp_path) == [(START, 0), (START + 10_000, 1000), (START + 20_000, 2000)]


@pytest.mark.parametrize("gap", [GAP, 2 * GAP, 10 * GAP])
def test_a_log_that_goes_on_and_on_has_its_records_written_together(
    chain: Chain, tmp_path: Path, gap: int
) -> None:
    index = Index(chain, MOST)
    index.open(0, START)
    written = []
    for step in range(400):
        index.note(START + step * gap, step)
        written.append(len(records(tmp_path)))
    first = BURST // HOLD
    assert written[:first] == list(range(1, first + 1)), "after a silence each at once"
    behind = [step + 1 - count for step, count in enumerate(written)]
    assert 0 < max(behind) * gap <= HOLD
    assert len(set(written)) <= first + 2 + 400 * gap // HOLD
    index.flush()
    assert records(tmp_path) == [(START + step * gap, step) for step in range(400)]
    index.close()


def test_the_rhythm_stays_when_it_is_written_in_between(chain: Chain, tmp_path: Path) -> None:
    """As once a second, before the log is brought to the disk."""
    index = Index(chain, MOST)
    index.open(0, START)
    written = set()
    for step in range(1000):
        if step % 100 == 37:
            index.flush()
        index.note(START + step * GAP, step)
        written.add(len(records(tmp_path)))
    index.close()
    assert len(written) <= 24, "once each second by itself at most, and as often from outside"


def test_after_a_silence_records_are_written_at_once_again(chain: Chain, tmp_path: Path) -> None:
    index = Index(chain, MOST)
    index.open(0, START)
    for step in range(100):
        index.note(START + step * 2 * GAP, step)
    for later in (3_600_000_000, -3_600_000_000):
        index.note(START + later, 100)
        assert records(tmp_path)[-1] == (START + later, 100)
    index.close()


def test_a_clock_that_was_set_back_does_not_stop_the_index(chain: Chain, tmp_path: Path) -> None:
    index = Index(chain, MOST)
    index.open(0, START)
    index.note(START, 0)
    index.note(START - 3_600_000_000, 10)
    index.close()
    assert records(tmp_path)[-1] == (START - 3_600_000_000, 10)


def test_a_torn_record_at_the_end_is_cut_off(chain: Chain, tmp_path: Path) -> None:
    (tmp_path / "w.log.idx").write_bytes(RECORD.pack(START, 0) + b"torn")
    index = Index(chain, MOST)
    index.open(50, START)
    index.note(START + GAP, 50)
    index.close()
    assert records(tmp_path) == [(START, 0), (START + GAP, 50)]


def test_an_index_of_another_file_is_begun_anew(chain: Chain, tmp_path: Path) -> None:
    (tmp_path / "w.log.idx").write_bytes(RECORD.pack(START, 5000))
    index = Index(chain, MOST)
    index.open(50, START + 7)
    index.close()
    assert records(tmp_path) == [(START + 7, 0)]


def test_it_never_grows_beyond_its_limit_and_still_spans_the_whole_time(
    chain: Chain, tmp_path: Path
) -> None:
    index = Index(chain, LEAST)
    index.open(0, START)
    for step in range(5000):
        index.note(START + step * GAP, step)
        assert (tmp_path / "w.log.idx").stat().st_size <= LEAST
    index.close()
    found = records(tmp_path)
    assert found[0] == (START, 0)
    assert found[-1][1] > 4900
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(found)]
    assert max(gaps) <= 64 * GAP
    assert not list(tmp_path.glob(".*"))


def test_thinning_ends_even_if_the_clock_stood_still() -> None:
    left, _ = thinned(RECORD.pack(START, 0) * 1000, GAP, LEAST)
    assert left == RECORD.pack(START, 0)


def test_without_its_file_it_says_nothing_and_harms_nothing(chain: Chain, tmp_path: Path) -> None:
    (tmp_path / "w.log.idx").mkdir()
    index = Index(chain, MOST)
    index.open(10, START)
    index.note(START, 10)
    index.close()
    assert index.last == 0


@pytest.mark.parametrize(
    ("size", "limit"), [(1024, LEAST), (10_000_000, MOST), (2_000_000, 250_000), (10**12, MOST)]
)
def test_the_limit_follows_the_size_of_the_log(size: int, limit: int) -> None:
    assert limit_for(size) == limit
