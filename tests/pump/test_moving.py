"""Trouble with the disk: nothing is lost when workers wait, and what is dropped is counted."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pump.homes import PumpHome, eventually

SIZE = 256 * 1024
WRITER = """
import os
for number in range(10000):
    line = b"%06d %s\\n" % (number, b"d" * 92)
    while line:
        line = line[os.write(1, line):]
"""
LINES = b"".join(b"%06d %s\n" % (number, b"d" * 92) for number in range(10_000))


@pytest.fixture
def small_disk(home: PumpHome) -> Iterator[Path]:
    """Let the logs lie on a disk of 256 KiB, filled by half."""
    options = f"size={SIZE},mode=0700"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(home.logs)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can only be mounted by root")
    ballast = home.logs / "ballast"
    ballast.write_bytes(bytes(SIZE // 2))
    yield ballast
    home.close()
    subprocess.run(["umount", str(home.logs)], check=True)


def is_full(home: PumpHome) -> bool:
    found = os.statvfs(home.logs)
    return found.f_bfree == 0


def give_space(home: PumpHome, ballast: Path) -> None:
    ballast.unlink(missing_ok=True)
    subprocess.run(["mount", "-o", "remount,size=16m", str(home.logs)], check=True)


@pytest.mark.accepts("P13", "P14", "T10")
def test_a_full_disk_slows_the_worker_and_loses_nothing(home: PumpHome, small_disk: Path) -> None:
    home.configure(overflow="block")
    worker = home.worker(home.fifo("w.out"), WRITER)
    quiet = home.fifo("quiet.out")
    pump = home.started()
    eventually(lambda: "its worker waits" in home.said)
    assert is_full(home)
    assert worker.poll() is None
    give_space(home, small_disk)
    assert worker.wait(30) == 0
    os.write(quiet, b"fine\n")
    eventually(lambda: home.text("quiet.log") == b"fine\n")
    assert pump.poll() is None
    home.stop()
    assert home.text("w.log") == LINES
    assert "can be written again" in home.said


@pytest.mark.accepts("P13", "T10")
def test_a_full_disk_that_interrupts_rotation_loses_nothing(
    home: PumpHome, small_disk: Path
) -> None:
    home.configure(overflow="block", max_size=20_001, keep=1000)
    worker = home.worker(home.fifo("w.out"), WRITER)
    home.started()
    eventually(lambda: "its worker waits" in home.said)
    give_space(home, small_disk)
    assert worker.wait(30) == 0
    home.stop()
    assert home.text("w.log") == LINES


@pytest.mark.accepts("P13", "T10")
def test_a_worker_that_must_not_wait_loses_a_counted_surplus(
    home: PumpHome, small_disk: Path
) -> None:
    home.configure(overflow="drop")
    fifo = home.fifo("w.out")
    worker = home.worker(fifo, WRITER)
    home.started()
    assert worker.wait(30) == 0, "it must not be held up"
    eventually(lambda: "its output is dropped" in home.said)
    give_space(home, small_disk)
    marker = re.compile(rb"^\[uphold: (\d+) bytes dropped\]\n", re.MULTILINE)
    eventually(lambda: marker.search(home.text("w.log")))
    os.write(fifo, b"after\n")
    eventually(lambda: home.text("w.log").endswith(b"after\n"))
    home.stop()
    text = home.text("w.log")
    dropped = sum(int(count) for count in marker.findall(text))
    kept = marker.sub(b"", text.removesuffix(b"after\n"))
    # A marker that follows half a line is given a line end of its own.
    assert 0 <= len(kept) + dropped - len(LINES) <= len(marker.findall(text))
    assert dropped > 0


@pytest.mark.accepts("P13")
def test_settings_that_change_while_the_disk_is_full_take_effect(
    home: PumpHome, small_disk: Path
) -> None:
    home.configure(overflow="block")
    worker = home.worker(home.fifo("w.out"), WRITER)
    home.started()
    eventually(lambda: "its worker waits" in home.said)
    assert worker.poll() is None
    home.configure(overflow="drop")
    home.tell("settings")
    assert worker.wait(30) == 0


def test_hundreds_of_fifos_are_no_trouble(home: PumpHome) -> None:
    home.configure()
    fifos = [home.fifo(f"w{number}.out") for number in range(300)]
    home.started()
    for number, fifo in enumerate(fifos):
        os.write(fifo, b"%d\n" % number)
    assert home.stop() == 0
    for number in range(300):
        assert home.text(f"w{number}.log") == b"%d\n" % number


def test_a_fifo_nobody_holds_is_forgotten_at_once(home: PumpHome) -> None:
    home.configure()
    home.let_go(home.fifo("stale.out"))
    live = home.fifo("live.out")
    pump = home.started()
    os.write(live, b"x\n")
    eventually(lambda: home.text("live.log") == b"x\n")

    def opened() -> list[str]:
        return [os.readlink(link) for link in Path(f"/proc/{pump.pid}/fd").iterdir()]

    eventually(lambda: str(home.run / "stale.out") not in opened())
    assert str(home.run / "live.out") in opened()


FLOOD = "import os, time\nwhile not os.path.exists('{0}'): os.write(1, b'x' * 65535 + b'\\n')"


def test_a_flood_gets_a_wider_pipe_while_it_lasts(home: PumpHome) -> None:
    home.configure(max_size=1_048_576, keep=1)
    flooded, quiet = home.fifo("flood.out"), home.fifo("quiet.out")
    home.started()
    home.worker(quiet, "print('said')")
    enough = home.path / "enough"
    flood = home.worker(flooded, FLOOD.format(enough))
    eventually(lambda: room(flooded) == 262_144)
    eventually(lambda: home.text("quiet.log") == b"said\n")
    assert room(quiet) == 65_536
    enough.touch()
    assert flood.wait(30) == 0
    # Again and again: the first may be taken together with the end of the flood.
    eventually(lambda: os.write(flooded, b"a word\n") and room(flooded) == 65_536)
    eventually(lambda: home.text("flood.log").endswith(b"a word\n"))


def test_few_floods_are_wide_at_a_time(home: PumpHome) -> None:
    home.configure(max_size=1_048_576, keep=1)
    floods = [home.fifo(f"flood{number}.out") for number in range(6)]
    home.started()
    for fifo in floods:
        home.worker(fifo, FLOOD.format(home.path / "never"))
    seen = 0
    for _ in range(2_000):
        wide = sum(room(fifo) > 65_536 for fifo in floods)
        seen = max(seen, wide)
        time.sleep(0.001)
    assert 1 <= seen <= 4


def room(fifo: int) -> int:
    return fcntl.fcntl(fifo, fcntl.F_GETPIPE_SZ)
