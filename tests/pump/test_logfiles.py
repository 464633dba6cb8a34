"""One log file: moved into by splice or by copying, with the same result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uphold.pump.chains import Chain
from uphold.pump.indexes import LEAST, RECORD
from uphold.pump.logfiles import LogFile
from uphold.pump.settings import LogSettings

NOW = 1_700_000_000_000_000
Make = Callable[..., LogFile]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def make(folder: int) -> Iterator[Make]:
    made: list[LogFile] = []

    def one(*, copying: bool = False, **settings: int) -> LogFile:
        terms = LogSettings(**settings)  # type: ignore[arg-type]
        made.append(LogFile(Chain(folder, "w.log"), terms, copying=copying))
        return made[-1]

    yield one
    for log in made:
        log.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    os.set_blocking(ends[0], False)
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass


def take_all(log: LogFile, fifo: int, now: int = NOW) -> int:
    total = 0
    try:
        while count := log.take(fifo, 1_000_000, now):
            total += count
    except BlockingIOError:
        pass
    return total


@pytest.mark.parametrize("copying", [False, True])
def test_both_ways_of_moving_give_the_same_files(
    make: Make, pipe: tuple[int, int], tmp_path: Path, copying: bool
) -> None:
    log = make(copying=copying, max_size=2000, keep=50)
    text = b"".join(b"%05d %s\n" % (n, b"y" * (n * 17 % 120)) for n in range(200))
    os.write(pipe[1], text)
    assert take_all(log, pipe[0]) == len(text)
    files = sorted(
        (path for path in tmp_path.iterdir() if path.suffix != ".idx"),
        key=lambda path: -int(path.suffix[1:]) if path.suffix != ".log" else 0,
    )
    assert len(files) > 5
    assert b"".join(path.read_bytes() for path in files) == text
    assert all(path.read_bytes().endswith(b"\n") for path in files)


@pytest.mark.parametrize("copying", [False, True])
def test_an_empty_pipe_and_a_closed_one_are_told_apart(
    make: Make, pipe: tuple[int, int], copying: bool
) -> None:
    log = make(copying=copying)
    with pytest.raises(BlockingIOError):
        log.take(pipe[0], 100, NOW)
    os.close(pipe[1])
    assert log.take(pipe[0], 100, NOW) == 0


def test_a_full_log_is_not_rotated_for_a_pipe_that_is_empty_or_over(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make(max_size=1024)
    os.write(pipe[1], b"z" * 1023 + b"\n")
    assert log.take(pipe[0], 5000, NOW) == 1024
    with pytest.raises(BlockingIOError):
        log.take(pipe[0], 5000, NOW)
    os.close(pipe[1])
    assert log.take(pipe[0], 100, NOW) == 0
    assert not (tmp_path / "w.log.1").exists()


def test_the_unfinished_line_keeps_its_time_across_a_rotation(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make(max_size=1024, keep=3)
    os.write(pipe[1], b"a" * 1000 + b"\n" + b"b" * 23)
    take_all(log, pipe[0])
    os.write(pipe[1], b"b\n")
    take_all(log, pipe[0], NOW + 60_000_000)
    assert (tmp_path / "w.log").read_bytes() == b"b" * 24 + b"\n"
    found = list(RECORD.iter_unpack((tmp_path / "w.log.idx").read_bytes()))
    assert found == [(NOW, 0), (NOW + 60_000_000, 23)]


@pytest.mark.accepts("P13")
def test_dropped_output_is_marked_on_a_line_of_its_own(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make()
    os.write(pipe[1], b"half a li")
    take_all(log, pipe[0])
    log.mark_dropped(1234, NOW)
    os.write(pipe[1], b"next\n")
    take_all(log, pipe[0])
    assert (tmp_path / "w.log").read_bytes() == (b"half a li\n[uphold: 1234 bytes dropped]\nnext\n")


@pytest.mark.parametrize("change", ["removed", "moved away", "emptied", "appended to"])
def test_a_file_that_somebody_touched_is_continued_without_a_hole(
    make: Make, pipe: tuple[int, int], tmp_path: Path, change: str
) -> None:
    log = make()
    os.write(pipe[1], b"before\n" * 100)
    take_all(log, pipe[0])
    path = tmp_path / "w.log"
    if change == "removed":
        path.unlink()
    elif change == "moved away":
        path.rename(tmp_path / "old.txt")
    elif change == "emptied":
        os.truncate(path, 0)
    else:
        with path.open("ab") as other:
            other.write(b"by hand\n")
    os.write(pipe[1], b"after\n")
    take_all(log, pipe[0], NOW + 2_000_000)
    begin = b"before\n" * 100 + b"by hand\n" if change == "appended to" else b""
    assert path.read_bytes() == begin + b"after\n"
    if change == "moved away":
        assert (tmp_path / "old.txt").read_bytes() == b"before\n" * 100


@pytest.mark.parametrize("copying", [False, True])
def test_emptying_a_busy_log_is_noticed_with_the_next_output(
    make: Make, pipe: tuple[int, int], tmp_path: Path, copying: bool
) -> None:
    """Later it could not be seen: bytes written behind a hole give the expected size again."""
    log = make(copying=copying)
    for step in range(10):
        os.write(pipe[1], b"line %d\n" % step)
        take_all(log, pipe[0], NOW + step * 50_000)
        if step == 6:
            os.truncate(tmp_path / "w.log", 0)
    log.write_times()
    assert (tmp_path / "w.log").read_bytes() == b"line 7\nline 8\nline 9\n"
    found = list(RECORD.iter_unpack((tmp_path / "w.log.idx").read_bytes()))
    assert found == [(NOW + step * 50_000, (step - 7) * 7) for step in (7, 8, 9)]


def test_emptying_a_log_that_is_about_to_be_rotated_leaves_no_hole(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make(max_size=1024)
    os.write(pipe[1], b"z" * 1023 + b"\n")
    take_all(log, pipe[0])
    os.truncate(tmp_path / "w.log", 0)
    os.write(pipe[1], b"after\n")
    take_all(log, pipe[0])
    assert (tmp_path / "w.log").read_bytes() == b"after\n"
    assert not (tmp_path / "w.log.1").exists()


def test_a_file_that_another_one_took_the_place_of_is_let_go(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    """As `sed -i` does it; here even the size is the same."""
    log = make()
    os.write(pipe[1], b"secret\n")
    take_all(log, pipe[0])
    (tmp_path / "new").write_bytes(b"******\n")
    (tmp_path / "new").rename(tmp_path / "w.log")
    os.write(pipe[1], b"after\n")
    take_all(log, pipe[0], NOW + 1_000_000)
    assert (tmp_path / "w.log").read_bytes() == b"******\nafter\n"


@pytest.mark.parametrize("name", ["w.log", "w.log.idx"])
def test_a_change_after_a_long_calm_is_noticed_too(
    make: Make, pipe: tuple[int, int], tmp_path: Path, name: str
) -> None:
    """While the folder is as it was nothing is looked up in it; its time may be set back."""
    log, later = make(), time.time_ns() // 1000 + 3_600_000_000
    for step in range(5):
        os.write(pipe[1], b"before\n")
        take_all(log, pipe[0], later + step * 1_000_000)
    before = tmp_path.stat()
    (tmp_path / name).rename(tmp_path / "old")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.write(pipe[1], b"after\n")
    take_all(log, pipe[0], later + 5_000_000)
    begin = b"before\n" * 5 if name == "w.log.idx" else b""
    assert (tmp_path / "w.log").read_bytes() == begin + b"after\n"
    found = list(RECORD.iter_unpack((tmp_path / "w.log.idx").read_bytes()))
    assert found[-1] == (later + 5_000_000, len(begin))


@pytest.mark.parametrize("change", ["removed", "moved away"])
def test_an_index_that_somebody_took_away_is_made_anew_within_a_second(
    make: Make, pipe: tuple[int, int], tmp_path: Path, change: str
) -> None:
    log = make()
    for step in range(3):
        os.write(pipe[1], b"before\n")
        take_all(log, pipe[0], NOW + step * 100_000)
    log.write_times()
    index = tmp_path / "w.log.idx"
    if change == "removed":
        index.unlink()
    else:
        index.rename(tmp_path / "old.idx")
    for step in (10, 11):
        os.write(pipe[1], b"after\n")
        take_all(log, pipe[0], NOW + step * 100_000)
    log.write_times()
    found = list(RECORD.iter_unpack(index.read_bytes()))
    assert found == [(NOW + 200_000, 0), (NOW + 1_000_000, 21), (NOW + 1_100_000, 27)]
    assert (tmp_path / "w.log").read_bytes() == b"before\n" * 3 + b"after\n" * 2


def test_an_index_that_could_not_be_opened_is_tried_again(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    (tmp_path / "w.log.idx").mkdir()
    log = make()
    os.write(pipe[1], b"without\n")
    take_all(log, pipe[0])
    (tmp_path / "w.log.idx").rmdir()
    os.write(pipe[1], b"with\n")
    take_all(log, pipe[0], NOW + 1_000_000)
    found = list(RECORD.iter_unpack((tmp_path / "w.log.idx").read_bytes()))
    assert found[-1] == (NOW + 1_000_000, 8)


def test_an_index_that_was_thinned_is_still_the_same(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make(max_size=LEAST * 2)
    for step in range(1000):
        os.write(pipe[1], b"line\n")
        take_all(log, pipe[0], NOW + step * 20_000)
    log.write_times()
    found = list(RECORD.iter_unpack((tmp_path / "w.log.idx").read_bytes()))
    assert len(found) < 256, "it was thinned"
    assert found[0] == (NOW, 0)
    assert len(found) > 100, "and not begun anew after that"


@pytest.mark.accepts("P13")
@pytest.mark.parametrize("copying", [False, True])
def test_one_share_goes_over_rotations_and_ends_when_it_is_used_up(
    make: Make, pipe: tuple[int, int], tmp_path: Path, copying: bool
) -> None:
    log = make(copying=copying, max_size=20_000, keep=50)
    text = b"".join(b"%07d\n" % n for n in range(8000))
    os.write(pipe[1], text)
    taken = log.take(pipe[0], 50_000, NOW)
    assert 20_000 <= taken <= 50_000
    assert taken + take_all(log, pipe[0]) == len(text)
    assert [len(path.read_bytes()) for path in sorted(tmp_path.glob("w.log.?"))] == [20_000] * 3


def test_what_was_moved_before_an_error_is_told_first(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make(max_size=20_000, keep=1)
    (tmp_path / "w.log.1").mkdir()
    os.write(pipe[1], b"x" * 40_000)
    assert log.take(pipe[0], 100_000, NOW) == 20_000
    with pytest.raises(IsADirectoryError):
        log.take(pipe[0], 100_000, NOW)
    (tmp_path / "w.log.1").rmdir()
    assert log.take(pipe[0], 100_000, NOW) == 20_000


def test_times_reach_the_index_when_they_are_asked_for(
    make: Make, pipe: tuple[int, int], tmp_path: Path
) -> None:
    log = make()
    for step in range(3):
        os.write(pipe[1], b"line\n")
        log.take(pipe[0], 100, NOW + step * 20_000)
    log.write_times()
    found = list(RECORD.iter_unpack((tmp_path / "w.log.idx").read_bytes()))
    assert found == [(NOW, 0), (NOW + 20_000, 5), (NOW + 40_000, 10)]
