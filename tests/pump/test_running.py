"""The pump as a process: driven by its socket and by signals, killed, and looked at from outside."""

from __future__ import annotations

import json
import os
import random
import stat
from pathlib import Path
from subprocess import TimeoutExpired

import pytest

from pump.homes import PROGRAM, PumpHome, eventually

COUNTING = """
import os, sys
first, last = int(sys.argv[1]), int(sys.argv[2])
out = b""
for number in range(first, last):
    out += b"%08d %s\\n" % (number, b"x" * (number * 7 % 90))
    if len(out) > 3000:
        while out:
            out = out[os.write(1, out):]
while out:
    out = out[os.write(1, out):]
"""
FLOOD = """
import os
line = b"f" * 99 + b"\\n"
while True:
    os.write(1, line * 600)
"""


def numbered(text: bytes) -> list[int]:
    """Read the numbers back; any torn line breaks this."""
    numbers = []
    for line in text.splitlines():
        number, _, padding = line.partition(b" ")
        assert len(number) == 8
        assert padding == b"x" * (int(number) * 7 % 90)
        numbers.append(int(number))
    return numbers


@pytest.mark.accepts("P13", "T06", "E-10", "C-139")
@pytest.mark.parametrize("compress", [False, True])
def test_nothing_is_lost_doubled_or_torn_when_the_pump_is_killed_at_random(
    home: PumpHome, seeded: random.Random, compress: bool
) -> None:
    home.configure(max_size=20_000, keep=1000, compress=compress)
    worker = home.worker(home.fifo("w.out"), COUNTING, 0, 90_000)
    for _ in range(30):
        # Most die at work, some while they begin and mend what the last one left.
        pump = home.started() if seeded.random() < 0.8 else home.start()
        with pytest.raises(TimeoutExpired):
            pump.wait(seeded.uniform(0.0, 0.06))
        pump.kill()
        pump.wait()
    home.started()
    assert worker.wait() == 0, "a writer must not notice"
    home.stop()
    assert numbered(home.text("w.log")) == list(range(90_000))
    assert len(home.places("w.log")) > 200


@pytest.mark.accepts("P13")
def test_every_file_ends_at_a_line_end_and_none_is_larger_than_allowed(home: PumpHome) -> None:
    home.configure(max_size=5000, keep=1000)
    fifo = home.fifo("w.out")
    home.started()
    home.worker(fifo, COUNTING, 0, 5000).wait()
    home.stop()
    files = home.places("w.log")
    assert len(files) > 40
    for path in files:
        assert path.stat().st_size <= 5000
        assert path.read_bytes().endswith(b"\n")
    assert numbered(home.text("w.log")) == list(range(5000))


def test_only_so_many_files_are_kept_and_the_newest_lines_are_in_them(home: PumpHome) -> None:
    home.configure(max_size=5000, keep=3)
    fifo = home.fifo("w.out")
    home.started()
    home.worker(fifo, COUNTING, 0, 3000).wait()
    home.stop()
    assert [path.name for path in home.places("w.log")] == [
        "w.log.3",
        "w.log.2",
        "w.log.1",
        "w.log",
    ]
    numbers = numbered(home.text("w.log"))
    assert numbers == list(range(numbers[0], 3000))


def test_with_keep_0_only_the_current_file_exists(home: PumpHome) -> None:
    home.configure(max_size=5000, keep=0)
    fifo = home.fifo("w.out")
    home.started()
    home.worker(fifo, COUNTING, 0, 1000).wait()
    home.stop()
    assert sorted(os.listdir(home.logs)) == ["w.log", "w.log.idx"]
    numbers = numbered(home.text("w.log"))
    assert numbers == list(range(numbers[0], 1000))


@pytest.mark.accepts("S22")
def test_an_endless_line_is_cut_and_nothing_of_it_is_lost(home: PumpHome) -> None:
    home.configure(max_size=200_000, keep=1000)
    fifo = home.fifo("w.out")
    home.started()
    code = "import os\nfor i in range(1000): os.write(1, b'%04d' % i * 500)"
    home.worker(fifo, code).wait()
    home.stop()
    assert home.text("w.log") == b"".join(b"%04d" % i * 500 for i in range(1000))
    assert len(home.places("w.log")) == 10


@pytest.mark.accepts("S22")
def test_binary_output_is_kept_byte_for_byte(home: PumpHome, seeded: random.Random) -> None:
    home.configure(max_size=50_000, keep=1000)
    fifo = home.fifo("w.out")
    home.started()
    payload = seeded.randbytes(700_000)
    (home.path / "payload").write_bytes(payload)
    code = "import os, sys; d = open(sys.argv[1], 'rb').read()\nwhile d: d = d[os.write(1, d):]"
    home.worker(fifo, code, home.path / "payload").wait()
    home.stop()
    assert home.text("w.log") == payload


@pytest.mark.accepts("E-10")
def test_rotated_files_are_compressed_and_read_back_the_same(home: PumpHome) -> None:
    home.configure(max_size=50_000, keep=20, compress=True)
    fifo = home.fifo("w.out")
    home.started()
    home.worker(fifo, COUNTING, 0, 8000).wait()
    rotated = eventually(lambda: len(home.places("w.log")) > 5)
    eventually(lambda: all(path.suffix == ".gz" for path in home.places("w.log")[:-1]))
    home.stop()
    assert rotated
    assert numbered(home.text("w.log")) == list(range(8000))
    assert not list(home.logs.glob(".*"))


def test_sigterm_moves_what_waits_and_ends_with_0(home: PumpHome) -> None:
    home.configure()
    fifos = [home.fifo(f"w{number}.out") for number in range(20)]
    home.started()
    for fifo in fifos:
        os.write(fifo, b"last words\n" * 5000)
    assert home.stop() == 0
    for number in range(20):
        assert home.text(f"w{number}.log") == b"last words\n" * 5000


def test_sigterm_ends_it_while_a_worker_floods(home: PumpHome) -> None:
    home.configure(max_size=1_000_000, keep=1)
    home.worker(home.fifo("w.out"), FLOOD)
    pump = home.started()
    eventually((home.logs / "w.log.1").exists)
    pump.terminate()
    assert pump.wait(10) == 0


@pytest.mark.accepts("S22")
def test_a_flood_starves_nobody(home: PumpHome) -> None:
    home.configure(max_size=1_000_000, keep=1)
    flood = home.worker(home.fifo("flood.out"), FLOOD)
    quiet = home.fifo("quiet.out")
    home.started()
    for number in range(30):
        os.write(quiet, b"%d\n" % number)
        eventually(lambda: home.text("quiet.log").endswith(b"%d\n" % number), within=5)  # noqa: B023
    assert flood.poll() is None


def test_without_an_owner_it_ends_when_every_fifo_is_hung_up_and_empty(home: PumpHome) -> None:
    (home.path / "lock").write_text(json.dumps({"pid": 2**22 - 1, "start_ticks": 1}))
    home.configure()
    fifo = home.fifo("w.out")
    pump = home.started()
    worker = home.worker(fifo, "import os, sys; sys.stdin.read(); os.write(1, b'end\\n')")
    home.let_go(fifo)
    assert worker.wait() == 0
    assert pump.wait(20) == 0
    assert home.text("w.log") == b"end\n"


def test_it_goes_on_without_its_supervisor_and_can_be_given_a_new_one(home: PumpHome) -> None:
    owner = home.worker(home.fifo("owner.out"), "import time; time.sleep(60)")
    ticks = int(Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[19])
    (home.path / "lock").write_text(json.dumps({"pid": owner.pid, "start_ticks": ticks}))
    home.configure()
    fifo = home.fifo("w.out")
    pump = home.started()
    os.write(fifo, b"begun\n")
    eventually(lambda: home.text("w.log") == b"begun\n")
    owner.kill()
    eventually(lambda: "supervisor is gone" in home.said)
    os.write(fifo, b"still kept\n")
    eventually(lambda: home.text("w.log").endswith(b"still kept\n"))
    home.tell(f"owner {os.getpid()}")
    os.write(fifo, b"more\n")
    eventually(lambda: home.text("w.log").endswith(b"more\n"))
    for fd in list(home._held):
        home.let_go(fd)
    # Without FIFOs it lives on, because it has an owner: it still hears.
    home.fifo("late.out")
    home.tell("add late.out")
    os.write(home._held[0], b"late\n")
    eventually(lambda: home.text("late.log") == b"late\n")
    assert pump.poll() is None


def test_words_add_fifos_and_change_settings_and_nonsense_is_passed_over(home: PumpHome) -> None:
    home.configure(max_size=1_000_000)
    home.started()
    one, two = home.fifo("one.out"), home.fifo("two.err")
    home.tell("shout\nadd one.out\nadd ../lock\nadd\nadd no-such.out\nowner x\n\xff")
    os.write(one, b"1\n")
    eventually(lambda: home.text("one.log") == b"1\n")
    os.write(two, b"2\n")
    home.tell("scan")
    eventually(lambda: home.text("two.err.log") == b"2\n")
    home.configure(max_size=2000, keep=50)
    home.tell("settings")

    def rotates_now() -> bool:
        os.write(one, b"x" * 999 + b"\n")
        return (home.logs / "one.log.3").exists()

    eventually(rotates_now)


def test_a_fifo_that_was_made_anew_is_opened_too(home: PumpHome) -> None:
    home.configure()
    old = home.fifo("w.out")
    home.started()
    os.write(old, b"old\n")
    eventually(lambda: home.text("w.log") == b"old\n")
    (home.run / "w.out").unlink()
    new = home.fifo("w.out")
    home.tell("add w.out")
    os.write(new, b"new\n")
    os.write(old, b"old again\n")
    eventually(lambda: sorted(home.text("w.log").split()) == [b"again", b"new", b"old", b"old"])


def test_wrong_settings_are_reported_and_output_is_kept_all_the_same(home: PumpHome) -> None:
    (home.run / "logs.json").write_text('{"default": {"keep": -1')
    fifo = home.fifo("w.out")
    home.started()
    os.write(fifo, b"kept\n")
    eventually(lambda: home.text("w.log") == b"kept\n")
    assert "logs.json is wrong" in home.said


@pytest.mark.accepts("S01")
def test_its_socket_is_private_and_a_long_path_does_not_matter(tmp_path: Path) -> None:
    home = PumpHome(tmp_path / ("deep" * 30) / ("deeper" * 20))
    try:
        home.configure()
        home.started()
        found = (home.run / "pump.sock").lstat()
        assert stat.S_IMODE(found.st_mode) == 0o600
        fifo = home.fifo("w.out")
        home.tell("add w.out")
        os.write(fifo, b"far away\n")
        eventually(lambda: home.text("w.log") == b"far away\n")
        assert stat.S_IMODE((home.logs / "w.log").stat().st_mode) == 0o600
    finally:
        home.close()


@pytest.mark.accepts("S03")
def test_planted_links_are_not_followed(home: PumpHome) -> None:
    home.configure(max_size=2000, keep=2)
    victim = home.path / "victim"
    victim.write_bytes(b"precious\n")
    os.mkfifo(home.path / "elsewhere")
    elsewhere = os.open(home.path / "elsewhere", os.O_RDWR)
    os.write(elsewhere, b"not yours\n")
    (home.run / "linked.out").symlink_to(home.path / "elsewhere")
    (home.run / "file.out").write_bytes(b"no fifo\n")
    for name in ("w.log", "w.log.idx", ".w.log.rest", "w.log.1", ".w.log.gz", ".w.log.idx"):
        (home.logs / name).symlink_to(victim)
    fifo = home.fifo("w.out")
    home.started()
    home.worker(fifo, COUNTING, 0, 500).wait()
    eventually(lambda: b"00000499" in home.text("w.log"))
    home.stop()
    os.close(elsewhere)
    assert victim.read_bytes() == b"precious\n"
    assert not (home.logs / "linked.log").exists()
    assert not (home.logs / "file.log").exists()


def test_a_folder_that_others_can_write_to_is_refused(home: PumpHome) -> None:
    home.logs.chmod(0o777)
    assert home.start().wait(20) == 1
    assert "others may write" in home.said


@pytest.mark.parametrize("change", ["removed", "emptied", "moved away"])
def test_a_log_that_somebody_took_away_begins_anew(home: PumpHome, change: str) -> None:
    home.configure()
    fifo = home.fifo("w.out")
    home.started()
    os.write(fifo, b"one\n")
    eventually(lambda: home.text("w.log") == b"one\n")

    def begins_anew() -> bool:
        os.write(fifo, b"line\n")
        text = home.text("w.log")
        return text != b"" and set(text.split()) == {b"line"} and b"\0" not in text

    if change == "removed":
        (home.logs / "w.log").unlink()
    elif change == "emptied":
        os.truncate(home.logs / "w.log", 0)
    else:
        (home.logs / "w.log").rename(home.logs / "old.txt")
    eventually(begins_anew)


@pytest.mark.accepts("P13")
def test_it_imports_nothing_but_small_modules() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.path.append(sys.argv[1]); import uphold.pump.running;"
        "print(' '.join(sys.modules))"
    )
    source = str(PROGRAM.parent.parent.parent)
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, source], capture_output=True, text=True, check=True
    )
    heavy = {"re", "enum", "typing", "json", "signal", "socket", "threading", "subprocess"}
    assert not heavy & set(run.stdout.split())


def test_a_home_that_is_none_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-I", "-S", str(PROGRAM), str(tmp_path / "nowhere")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "cannot start in" in run.stderr
    run = subprocess.run(command[:-1], capture_output=True, text=True, check=False)
    assert run.returncode == 2
