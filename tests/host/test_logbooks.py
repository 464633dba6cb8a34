from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading

import pytest

from uphold.host.logbooks import KEEP, MAX_SIZE, Entry, Level, Logbook, RotatingFile

WALL = 1770301815.234


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "deep" / "logs"


@pytest.fixture
def make(folder):
    books = []

    def open_book(**settings):
        book = Logbook(folder, wall=lambda: WALL, **settings)
        books.append(book)
        return book

    yield open_book
    for book in books:
        book.close()


def records(folder):
    return [json.loads(line) for line in (folder / "runtime.log").read_bytes().splitlines()]


def lines(folder, name="supervisor.log"):
    """Give all lines, over all files, oldest first."""
    files = [folder / f"{name}.{number}" for number in range(20, 0, -1)] + [folder / name]
    return [line for file in files if file.exists() for line in file.read_text().splitlines()]


@pytest.mark.accepts("C-141", "D-35")
def test_a_record_has_its_fixed_shape_in_both_logs(make, folder):
    make().info("worker adopted", event="worker.adopted", worker="api")
    assert (folder / "runtime.log").read_text() == (
        '{"timestamp": "2026-02-05T14:30:15.234Z", "level": "INFO", "event": "worker.adopted",'
        ' "message": "worker adopted", "worker": "api", "task_id": null, "label": null}\n'
    )
    assert lines(folder) == ["[2026-02-05T14:30:15.234Z] [SUPERVISOR] [INFO] worker adopted"]


@pytest.mark.accepts("C-143", "C-154")
def test_a_record_about_a_task_names_task_and_label(make, folder):
    book = make()
    book.info("done", task_id="task_20260205_143015_ab12", label="nightly run")
    book.info("done", task_id="task_1")
    book.info("done", label="only a label")
    told = [line.partition("[INFO] ")[2] for line in lines(folder)]
    assert told == [
        "[task_20260205_143015_ab12 - nightly run] done",
        "[task_1] done",
        "[only a label] done",
    ]
    assert records(folder)[0]["task_id"] == "task_20260205_143015_ab12"
    assert records(folder)[0]["label"] == "nightly run"


@pytest.mark.accepts("C-142")
def test_there_are_five_levels_and_those_below_the_wanted_one_are_left_out(make, folder):
    for book in (make(level=Level.DEBUG), make(level=Level.WARNING)):
        book.debug("m")
        book.info("m")
        book.warning("m")
        book.error("m")
        book.critical("m")
    everything = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    assert [record["level"] for record in records(folder)] == [*everything, *everything[2:]]


@pytest.mark.accepts("S21", "B-73")
@pytest.mark.parametrize("field", ["message", "event", "worker", "task_id", "label"])
def test_nothing_in_a_field_makes_a_new_record_or_moves_a_cursor(make, folder, field):
    nasty = "".join(map(chr, range(0xA0))) + "\u2028\u2029\u202e\u200b\ufeff\U000e0041\ud800 ü"
    fields = {"message": "m", field: f"a\nforged{nasty}b"}
    make().write(Level.INFO, **fields)
    for name in ("runtime.log", "supervisor.log"):
        raw = (folder / name).read_bytes()
        assert raw.count(b"\n") == 1
        text = raw.decode()[:-1]
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202e\u200b\ufeff\U000e0041]", text)
    assert len(records(folder)) == 1


@pytest.mark.accepts("S43")
def test_secrets_are_taken_out_of_messages(make, folder):
    make(scrub=lambda texts: [text.replace("hunter2", "[redacted]") for text in texts]).error(
        "login hunter2 failed"
    )
    for name in ("runtime.log", "supervisor.log"):
        assert b"hunter2" not in (folder / name).read_bytes()
        assert b"[redacted]" in (folder / name).read_bytes()


def test_a_message_has_a_longest_length(make, folder):
    make().info("x" * 1_000_000)
    assert len(records(folder)[0]["message"]) == 8192


@pytest.mark.accepts("C-139", "B-75")
def test_nothing_is_lost_or_torn_over_many_rotations(make, folder):
    book = make(max_size=4_000)
    for number in range(150):
        book.info(f"line {number:06d} " + "x" * (number % 90))
    for name in ("supervisor.log", "runtime.log"):
        told = [int(re.search(r"line (\d{6})", line)[1]) for line in lines(folder, name)]
        assert told == list(range(told[0], 150)), "the newest, in order, without a hole"
        files = sorted(folder.glob(f"{name}*"))
        assert len(files) <= KEEP + 1
        assert all(file.stat().st_size <= 4_000 for file in files)
    assert (
        int(re.search(r"line (\d{6})", lines(folder)[0])[1]) == 0
        or len(list(folder.glob("supervisor.log*"))) == KEEP + 1
    )


@pytest.mark.accepts("C-139")
def test_it_rotates_at_ten_megabytes_and_keeps_five(tmp_path):
    assert (MAX_SIZE, KEEP) == (10_000_000, 5)
    file = RotatingFile(tmp_path / "a.log")
    chunk = b"x" * 999_999 + b"\n"
    for _ in range(10 * 7 + 1):
        file.write(chunk)
    file.close()
    sizes = {each.name: each.stat().st_size for each in tmp_path.iterdir()}
    assert sizes == {"a.log": 1_000_000, **{f"a.log.{n}": 10_000_000 for n in range(1, 6)}}


def test_a_line_longer_than_a_file_is_still_written(tmp_path):
    file = RotatingFile(tmp_path / "a.log", max_size=10)
    for line in (b"short\n", b"much longer than ten\n", b"short\n"):
        file.write(line)
    file.close()
    assert (tmp_path / "a.log").read_bytes() == b"short\n"
    assert (tmp_path / "a.log.1").read_bytes() == b"much longer than ten\n"


@pytest.mark.accepts("B-75")
def test_a_rotation_that_is_impossible_only_makes_the_file_grow(make, folder):
    (folder / "supervisor.log.5").mkdir(parents=True)
    (folder / "supervisor.log.5" / "in the way").write_text("")
    book = make(max_size=500)
    for number in range(90):
        book.info(f"line {number}")
    (folder / "supervisor.log.5").rename(folder / "moved")
    assert (folder / "supervisor.log").stat().st_size > 500
    told = [int(line.rpartition(" ")[2]) for line in lines(folder)]
    assert told == list(range(90))


@pytest.mark.accepts("B-75")
def test_the_folder_is_made_and_a_removed_file_is_made_again(make, folder):
    book = make()
    book.info("one")
    for file in folder.iterdir():
        file.unlink()
    book.info("two")
    assert [record["message"] for record in records(folder)] == ["two"]
    assert len(lines(folder)) == 1


@pytest.mark.accepts("B-75")
def test_a_file_that_was_moved_away_is_made_again_and_the_old_one_left_alone(make, folder):
    book = make()
    book.info("one")
    for file in list(folder.iterdir()):
        file.rename(file.with_suffix(".old"))
    book.info("two")
    assert [record["message"] for record in records(folder)] == ["two"]
    assert len(lines(folder)) == 1
    assert lines(folder, "supervisor.old")[-1].endswith(" one")


def test_a_file_that_was_emptied_has_all_its_room_again(tmp_path):
    file = RotatingFile(tmp_path / "a.log", max_size=100)
    file.write(b"x" * 89 + b"\n")
    os.truncate(tmp_path / "a.log", 0)
    file.write(b"after it was emptied\n")
    file.close()
    assert (tmp_path / "a.log").read_bytes() == b"after it was emptied\n"
    assert not (tmp_path / "a.log.1").exists()


def test_a_log_that_is_there_is_continued(make, folder):
    make().info("one")
    make().info("two")
    assert [record["message"] for record in records(folder)] == ["one", "two"]


@pytest.mark.accepts("S02", "S03")
def test_only_the_owner_can_read_the_logs_and_links_are_not_followed(make, folder, tmp_path):
    folder.mkdir(parents=True)
    (folder / "runtime.log").symlink_to(tmp_path / "victim")
    before = os.umask(0)
    try:
        make().info("m")
    finally:
        os.umask(before)
    assert not (tmp_path / "victim").exists()
    assert stat.S_IMODE((folder / "supervisor.log").stat().st_mode) == 0o600


@pytest.mark.accepts("P14", "T10")
def test_a_full_disk_costs_whole_records_which_are_counted(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        book = Logbook(folder / "logs", wall=lambda: WALL)
        book.info("before")
        with (folder / "ballast").open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b"x" * 4096)
            except OSError:
                pass
        for number in range(200):
            book.info(f"during {number}")
        full = {
            name: (folder / "logs" / name).read_bytes()
            for name in ("runtime.log", "supervisor.log")
        }
        (folder / "ballast").unlink()
        book.info("after")
        book.close()
        for name, raw in full.items():
            assert raw.endswith(b"\n"), "no half record stays"
            whole = (folder / "logs" / name).read_bytes()
            assert whole.startswith(raw)
            told = [line for line in whole.decode().splitlines() if "during" in line]
            lost = re.search(r"(\d+) records were lost here", whole.decode())
            assert lost
            assert len(told) + int(lost[1]) == 200
            assert "after" in whole.decode().splitlines()[-1]
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_folder_that_cannot_be_made_stops_nobody(tmp_path):
    (tmp_path / "logs").write_text("a file is in the way")
    book = Logbook(tmp_path / "logs", wall=lambda: WALL)
    book.info("lost")
    (tmp_path / "logs").unlink()
    book.info("kept")
    book.close()
    assert [record["message"] for record in records(tmp_path / "logs")] == [
        "1 record was lost here: the disk did not take them.",
        "kept",
    ]


@pytest.mark.accepts("C-140")
def test_lines_for_people_are_repeated_on_stderr_until_nobody_reads_it(make, folder):
    reader, writer = os.pipe()
    try:
        book = make(echo=writer)
        book.warning("seen by both")
        assert os.read(reader, 4096) == (folder / "supervisor.log").read_bytes()
        book.info("ü" * 5000)
        long = os.read(reader, 65536)
        assert len(long) <= 4096
        assert long.endswith(b"...\n")
        for _ in range(2000):
            book.info("nobody reads this, and nobody waits " + "x" * 200)
        assert len(lines(folder)) == 2002
        os.close(reader)
        reader = -1
        book.info("the reader is gone")
        assert len(lines(folder)) == 2003
    finally:
        os.close(writer)
        if reader >= 0:
            os.close(reader)


def test_several_threads_write_whole_lines(make, folder):
    book = make(max_size=20_000)

    def write(name):
        for number in range(100):
            book.info(f"{name} {number:03d}")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = [line.partition("[INFO] ")[2] for line in lines(folder)]
    assert sorted(told) == sorted(f"{name} {n:03d}" for name in "abcd" for n in range(100))


WRITER = """
import sys
from uphold.host.logbooks import Logbook
book = Logbook(sys.argv[1], wall=lambda: 0.0, max_size=100_000)
for number in range(10**9):
    book.info(f"line {number}")
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.accepts("C-139", "T06")
def test_what_was_written_before_a_crash_is_in_the_log(folder):
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(1500):
            told = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        told = max([told, *map(int, writer.stdout.read().split("\n")[:-1])])
    there = [int(line.rpartition(" ")[2]) for line in lines(folder)]
    assert there == list(range(there[0], there[-1] + 1))
    assert there[-1] >= told


def test_records_of_one_moment_are_lines_of_their_own_with_their_own_times(make, folder):
    book = make(level=Level.INFO)
    book.write_all(
        [
            Entry(Level.INFO, "one", worker="a", at=0.0),
            Entry(Level.DEBUG, "nobody asked"),
            Entry(Level.ERROR, "two", event="x.y", at=WALL),
        ]
    )
    assert [(each["message"], each["timestamp"][:4]) for each in records(folder)] == [
        ("one", "1970"),
        ("two", "2026"),
    ]
    assert [line.partition("] ")[2] for line in lines(folder)] == [
        "[SUPERVISOR] [INFO] one",
        "[SUPERVISOR] [ERROR] two",
    ]
