"""Compression: any gzip reads the result, and a file that moved meanwhile is found again."""

from __future__ import annotations

import gzip
import os
import queue
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from uphold.pump.chains import Chain
from uphold.pump.compressing import CALM, Compressor, pack, packed_inode


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    folder = os.open(tmp_path, os.O_RDONLY)
    yield Chain(folder, "w.log")
    os.close(folder)


class Bench:
    """A compressor whose bell can be waited for."""

    def __init__(self) -> None:
        self.bell: queue.Queue[None] = queue.Queue()
        self.compressor = Compressor(ring=lambda: self.bell.put(None))

    def wait(self) -> None:
        self.bell.get(timeout=20)


def test_any_gzip_reads_what_was_packed(tmp_path: Path, seeded: random.Random) -> None:
    text = seeded.randbytes(200_000) + b"line\n" * 100_000
    (tmp_path / "plain").write_bytes(text)
    source = os.open(tmp_path / "plain", os.O_RDONLY)
    target = os.open(tmp_path / "packed.gz", os.O_RDWR | os.O_CREAT)
    pack(source, target)
    assert gzip.decompress((tmp_path / "packed.gz").read_bytes()) == text
    assert packed_inode(os.pread(target, 24, 0)) == os.fstat(source).st_ino
    assert packed_inode(b"\x1f\x8b\x08\x00" + bytes(20)) is None
    os.close(source)
    os.close(target)


def test_it_waits_for_calm_then_compresses_all_one_at_a_time(chain: Chain, tmp_path: Path) -> None:
    for place in (1, 2, 3):
        (tmp_path / f"w.log.{place}").write_text(f"{place}\n" * 1000)
    os.utime(tmp_path / "w.log.1", ns=(10**18, 10**18))
    bench = Bench()
    bench.compressor.want(chain, 5, now=100.0)
    bench.compressor.work(100.5)
    assert bench.compressor.next_due() == 100.0 + CALM
    for _ in range(3):
        bench.compressor.work(102.0)
        assert bench.compressor.next_due() is None
        bench.wait()
        bench.compressor.finish(102.0)
    bench.compressor.work(102.0)
    assert bench.compressor.next_due() is None
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["w.log.1.gz", "w.log.2.gz", "w.log.3.gz"]
    assert gzip.decompress((tmp_path / "w.log.2.gz").read_bytes()) == b"2\n" * 1000
    assert (tmp_path / "w.log.1.gz").stat().st_mtime_ns == 10**18


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_was_rotated_meanwhile_is_found_again_or_left_out(
    chain: Chain, tmp_path: Path, gone: bool
) -> None:
    (tmp_path / "w.log").write_text("new\n")
    (tmp_path / "w.log.1").write_text("old\n")
    bench = Bench()
    bench.compressor.want(chain, 2, now=0.0)
    bench.compressor.work(CALM)
    bench.wait()
    if gone:
        chain.drop(1)
    chain.shift(2)
    bench.compressor.finish(CALM)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == (["w.log.1"] if gone else ["w.log.1", "w.log.2.gz"])


def test_what_cannot_be_opened_is_reported_and_passed_over(
    chain: Chain, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w.log.1").symlink_to("/etc/hostname")
    bench = Bench()
    bench.compressor.want(chain, 2, now=0.0)
    bench.compressor.work(CALM)
    assert bench.compressor.next_due() is None
    assert "cannot compress an old file of w.log" in capfd.readouterr().err
