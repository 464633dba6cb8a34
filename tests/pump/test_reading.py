"""Reading a log's files: the right ones, in order, whatever the pump was doing."""

from __future__ import annotations

import gzip
import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from uphold.pump.indexes import RECORD
from uphold.pump.reading import LINE_CAP, Piece, Times, open_pieces, split_lines


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def texts(pieces: list[Piece]) -> list[bytes]:
    found = [line.text for piece in pieces for line in piece.lines()]
    for piece in pieces:
        piece.close()
    return found


def test_files_come_oldest_first_and_the_readable_form_counts(tmp_path: Path, folder: int) -> None:
    (tmp_path / "w.log.3.gz").write_bytes(gzip.compress(b"3\n"))
    (tmp_path / "w.log.1.gz").write_bytes(b"half")
    (tmp_path / "w.log.1").write_bytes(b"1\n")
    (tmp_path / "w.log").write_bytes(b"0\nunfinished")
    (tmp_path / "w.log.1.idx").write_bytes(b"")
    assert texts(open_pieces(folder, "w.log")) == [b"3", b"1", b"0", b"unfinished"]


def test_there_may_be_nothing(folder: int) -> None:
    assert open_pieces(folder, "w.log") == []


@pytest.mark.parametrize(
    ("current", "rest", "lines"),
    [
        (b"a\nb", b"b", [b"a", b"b"]),
        (b"a\n", b"b", [b"a", b"b"]),
        (None, b"b", [b"b"]),
    ],
)
def test_an_interrupted_rotation_is_seen_through(
    tmp_path: Path, folder: int, current: bytes | None, rest: bytes, lines: list[bytes]
) -> None:
    if current is not None:
        (tmp_path / "w.log").write_bytes(current)
    (tmp_path / ".w.log.rest").write_bytes(rest)
    assert texts(open_pieces(folder, "w.log")) == lines


@pytest.mark.accepts("S03")
def test_links_are_not_followed(tmp_path: Path, folder: int) -> None:
    (tmp_path / "secret").write_bytes(b"secret\n")
    (tmp_path / "w.log").symlink_to("secret")
    (tmp_path / "w.log.1").write_bytes(b"ours\n")
    assert texts(open_pieces(folder, "w.log")) == [b"ours"]


@pytest.mark.accepts("S22")
def test_an_endless_line_comes_in_pieces_and_nothing_is_missing() -> None:
    text = b"x" * (3 * LINE_CAP + 5) + b"\nshort\n" + b"y" * LINE_CAP + b"\nz"
    blocks = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    lines = list(split_lines(blocks, 100))
    assert [len(line.text) for line in lines] == [LINE_CAP] * 3 + [5, 5, LINE_CAP, 1]
    assert b"".join(line.text for line in lines) == text.replace(b"\n", b"")
    assert [line.whole for line in lines] == [True] * 6 + [False]
    for line in lines:
        assert text[line.offset - 100 :].startswith(line.text)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("ended", [False, True])
def test_the_last_lines_are_found_from_behind(
    tmp_path: Path, folder: int, packed: bool, ended: bool
) -> None:
    text = b"\n".join(b"%d" % number * 50 for number in range(20_000)) + (b"\n" if ended else b"")
    if packed:
        (tmp_path / "w.log.1.gz").write_bytes(gzip.compress(text, 1))
    else:
        (tmp_path / "w.log").write_bytes(text)
    (piece,) = open_pieces(folder, "w.log")
    expected = text.splitlines()
    for count in (1, 2, 10, 19_999, 20_000):
        begin, found = piece.last_lines(count)
        assert found == count
        assert [line.text for line in piece.lines(begin)] == expected[-count:]
    assert piece.last_lines(30_000) == (0, 20_000)
    piece.close()


def test_a_damaged_compressed_file_is_an_error_not_silence(tmp_path: Path, folder: int) -> None:
    whole = gzip.compress(random.Random(1).randbytes(100_000))
    (tmp_path / "w.log.1.gz").write_bytes(whole[: len(whole) // 2])
    (piece,) = open_pieces(folder, "w.log")
    with pytest.raises(zlib.error):
        list(piece.lines())
    piece.close()


def test_times_follow_the_records_and_nonsense_is_passed_over() -> None:
    records = [(1_000_000_000, 0), (2_000_000_000, 50), (3_000_000_000, 50), (9, 40), (2**63, 60)]
    times = Times(b"".join(RECORD.pack(*record) for record in records) + b"torn")
    assert times.at(0) == 1000.0
    assert times.at(49) == 1000.0
    assert times.at(50) == 3000.0
    assert times.at(10**9) == 3000.0
    assert times.first_since(1500.0) == 50
    assert times.first_since(5000.0) is None
    assert Times(b"").at(5) is None
    assert not Times(b"short").known()


def test_random_bytes_as_an_index_break_nothing(seeded: random.Random) -> None:
    for _ in range(50):
        times = Times(seeded.randbytes(seeded.randrange(500)))
        at = times.at(seeded.randrange(10**6))
        assert at is None or at > 0
