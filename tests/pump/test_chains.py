"""Rotation by renames: what stands where, and that no kill in the middle loses or doubles a byte."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pump.homes import PROGRAM
from uphold.pump.chains import Chain, log_name


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    folder = os.open(tmp_path, os.O_RDONLY)
    yield Chain(folder, "w.log")
    os.close(folder)


def fill(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name.replace("_", ".")).write_text(text)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("fifo", "log"),
    [
        ("web.out", "web.log"),
        ("web.2.out", "web.2.log"),
        ("@bridge.err", "@bridge.err.log"),
        ("logs.json", None),
        ("pump.sock", None),
        (".out", None),
        ("out", None),
        ("../web.out", None),
        (".web.out", None),
        ("w" * 200 + ".out", None),
    ],
)
def test_a_fifo_has_one_log(fifo: str, log: str | None) -> None:
    assert log_name(fifo) == log


def test_every_file_moves_up_with_its_index_and_the_oldest_falls_off(
    chain: Chain, tmp_path: Path
) -> None:
    fill(tmp_path, w_log="0", w_log_idx="i0", w_log_1="1", w_log_1_idx="i1", w_log_2_gz="2")
    chain.shift(2)
    assert contents(tmp_path) == {
        "w.log.1": "0",
        "w.log.1.idx": "i0",
        "w.log.2": "1",
        "w.log.2.idx": "i1",
    }


def test_nothing_above_a_gap_moves(chain: Chain, tmp_path: Path) -> None:
    fill(tmp_path, w_log="0", w_log_1_gz="1", w_log_3="3")
    chain.shift(3)
    assert contents(tmp_path) == {"w.log.1": "0", "w.log.2.gz": "1", "w.log.3": "3"}


def test_what_is_beyond_a_smaller_limit_goes(chain: Chain, tmp_path: Path) -> None:
    fill(tmp_path, w_log="0", w_log_1="1", w_log_2="2", w_log_3="3", w_log_3_idx="i3", w_log_4="4")
    chain.shift(2)
    assert contents(tmp_path) == {"w.log.1": "0", "w.log.2": "1"}


def test_where_both_forms_exist_the_readable_one_counts(chain: Chain, tmp_path: Path) -> None:
    fill(tmp_path, w_log="0", w_log_1="1", w_log_1_gz="half?")
    chain.shift(3)
    assert contents(tmp_path) == {"w.log.1": "0", "w.log.2": "1"}


def test_a_copy_made_before_the_cut_is_forgotten(chain: Chain, tmp_path: Path) -> None:
    fill(tmp_path, w_log="line\nunfin", _w_log_rest="unf")
    chain.settle(3)
    assert contents(tmp_path) == {"w.log": "line\nunfin"}


@pytest.mark.parametrize("moved", [False, True])
def test_after_the_cut_the_rotation_is_finished(chain: Chain, tmp_path: Path, moved: bool) -> None:
    fill(tmp_path, _w_log_rest="unfin", **{"w_log_1" if moved else "w_log": "line\n"})
    chain.settle(3)
    assert contents(tmp_path) == {"w.log": "unfin", "w.log.1": "line\n"}


def test_a_file_is_found_again_by_its_inode(chain: Chain, tmp_path: Path) -> None:
    fill(tmp_path, w_log="0", w_log_1="1")
    inode = (tmp_path / "w.log.1").stat().st_ino
    assert chain.place_of(inode, 5) == 1
    chain.shift(5)
    assert chain.place_of(inode, 5) == 2
    chain.drop(2)
    assert chain.place_of(inode, 5) is None


MOVING = """
import os, sys
sys.path.append(sys.argv[1])
from uphold.pump.chains import Chain
from uphold.pump.logfiles import LogFile
from uphold.pump.settings import LogSettings

fifo = os.open(sys.argv[2], os.O_RDONLY | os.O_NONBLOCK)
folder = os.open(sys.argv[3], os.O_RDONLY)
log = LogFile(Chain(folder, "w.log"), LogSettings(max_size=1024, keep=int(sys.argv[5])))
left = int(sys.argv[4])

def dying(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.truncate"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(dying)
try:
    while True:
        log.take(fifo, 65536, 1_700_000_000_000_000)
except BlockingIOError:
    pass
"""


@pytest.mark.accepts("P13", "T06")
def test_a_kill_before_any_file_operation_of_a_rotation_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    """Every open, rename, unlink and truncate is one place to die; each is tried."""
    text = b"".join(b"line %04d %s\n" % (n, b"-" * (n * 13 % 70)) for n in range(90))
    died = 0
    for point in range(1, 400):
        place = tmp_path / str(point)
        (place / "logs").mkdir(parents=True)
        os.mkfifo(place / "fifo")
        held = os.open(place / "fifo", os.O_RDWR)
        os.write(held, text)
        for left in (point, -1):
            words = [str(PROGRAM.parents[2]), place / "fifo", place / "logs", str(left), "50"]
            run = subprocess.run([sys.executable, "-I", "-S", "-c", MOVING, *words], check=False)
            if left > 0:
                died += run.returncode == -signal.SIGKILL
        os.close(held)
        assert run.returncode == 0
        found = sorted(
            (path for path in (place / "logs").glob("w.log*") if path.suffix != ".idx"),
            key=lambda path: -int(path.suffix[1:]) if path.suffix != ".log" else 0,
        )
        assert b"".join(path.read_bytes() for path in found) == text, f"killed at point {point}"
        if died < point:
            break
    assert died > 30
