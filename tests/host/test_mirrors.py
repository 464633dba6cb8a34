from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from uphold.host.mirrors import ORDER, RuntimeMirror, checksum, previous, read_mirror, render
from uphold.testing.waiting import until


def state(number=1, workers=3):
    return {
        "workers": {
            f"w{n}": {"state": "running", "health": "healthy", "pid": number, "restarts": n}
            for n in reversed(range(workers))
        },
        "overrides": {"w1": "{}"},
        "supervisor": {"id": "s-1", "number": number},
        "pid": 42,
        "running": True,
        "started_at": "2026-02-05T14:30:15.000Z",
        "stopped_at": None,
        "last_error": None,
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runtime.json"


@pytest.fixture
def mirror(path):
    mirror = RuntimeMirror(path, retry=0.05)
    yield mirror
    mirror.close()


def number_in(path):
    found, _ = read_mirror(path)
    return None if found is None else found["supervisor"]["number"]


@pytest.mark.accepts("D-02", "D-03")
def test_keys_come_in_a_fixed_order_whatever_the_order_they_were_given_in():
    turned = dict(reversed(state().items()))
    assert render(turned) == render(state())
    read = json.loads(render(state()))
    assert list(read) == [*ORDER, "overrides", "checksum"]
    assert list(read["workers"]) == ["w0", "w1", "w2"]
    assert list(json.loads(render({}))) == [*ORDER, "checksum"]


def test_people_find_one_worker_per_line_and_no_sign_that_moves_a_cursor():
    shown = render(state() | {"last_error": {"code": "X", "message": "\x1b[31m\u202eü\ud800"}})
    assert shown.isascii()
    assert b"\x1b" not in shown
    assert sum(b'"state":"running"' in line for line in shown.splitlines()) == 3


def test_what_is_shown_is_there_soon_and_only_its_owner_can_read_it(mirror, path):
    mirror.show(state(7))
    until(lambda: number_in(path) == 7)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found, problem = read_mirror(path)
    assert problem is None
    assert found == json.loads(render(state(7)))


def test_a_burst_is_written_a_few_times_and_the_last_one_wins(path):
    made = []
    mirror = RuntimeMirror(path)
    for number in range(3000):

        def make(number=number):
            made.append(number)
            return state(number)

        mirror.show(make)
    mirror.close()
    assert number_in(path) == 2999
    assert made[-1] == 2999
    assert len(made) < 300


def test_closing_writes_the_last_state_at_once_and_ends_the_thread(path):
    before = set(threading.enumerate())
    mirror = RuntimeMirror(path)
    for number in range(5):
        mirror.show(state(number))
    mirror.close()
    assert number_in(path) == 4
    assert set(threading.enumerate()) <= before
    mirror.close()


def test_a_mirror_that_never_showed_anything_writes_nothing(path):
    RuntimeMirror(path).close()
    assert not path.exists()


@pytest.mark.accepts("R-02", "B-10")
def test_readers_never_see_an_empty_partial_or_damaged_file(mirror, path):
    mirror.show(state(0))
    until(path.exists)
    done = threading.Event()
    seen: set[int] = set()
    wrong: list[str] = []

    def hammer():
        while not done.is_set():
            found = json.loads(path.read_bytes())
            if found["checksum"] != checksum(found):
                wrong.append(found["checksum"])
            seen.add(found["supervisor"]["number"])

    readers = [threading.Thread(target=hammer) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, 12):
            mirror.show(state(number, workers=40 * number))
            until(lambda number=number: number_in(path) == number)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert wrong == []
    assert len(seen) > 1


@pytest.mark.accepts("P9")
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: os.truncate(path, path.stat().st_size // 2),
        lambda path: path.write_bytes(path.read_bytes().replace(b'"pid": 42', b'"pid": 43')),
        lambda path: path.write_bytes(b"[1, 2]"),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: path.write_bytes(b"[" * 100_000),
        lambda path: path.write_bytes(path.read_bytes().replace(b"checksum", b"Checksum")),
        lambda path: path.unlink(),
    ],
)
def test_a_damaged_state_gives_way_to_the_one_before(path, damage):
    mirror = RuntimeMirror(path)
    for number in (1, 2):
        mirror.show(state(number))
        until(lambda number=number: number_in(path) == number)
    mirror.close()
    damage(path)
    found, problem = read_mirror(path)
    assert found is not None
    assert found["supervisor"]["number"] == 1
    assert "runtime.json" in problem
    assert "runtime.json.prev" in problem


@pytest.mark.accepts("P9")
def test_a_damaged_file_never_pushes_out_the_good_one_before_it(path):
    path.write_bytes(render(state(1)))
    path.rename(previous(path))
    path.write_bytes(b"damaged")
    mirror = RuntimeMirror(path)
    mirror.show(state(2))
    mirror.close()
    assert number_in(path) == 2
    path.write_bytes(b"damaged again")
    assert number_in(path) == 1


def test_without_any_good_state_nothing_is_invented(path):
    assert read_mirror(path) == (None, f"there is no {path}.")
    path.write_bytes(b"{}")
    previous(path).write_bytes(b"nonsense")
    found, problem = read_mirror(path)
    assert found is None
    assert "checksum" in problem


@pytest.mark.accepts("P14", "T10")
def test_a_full_disk_is_waited_out_and_never_reaches_the_caller(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        path = folder / "runtime.json"
        mirror = RuntimeMirror(path, retry=0.02)
        mirror.show(state(1))
        until(lambda: number_in(path) == 1)
        (folder / "ballast").write_bytes(b"x" * 40_000)
        mirror.show(state(2, workers=500))
        until(lambda: mirror.problem)
        assert "No space left" in mirror.problem
        assert number_in(path) == 1, "the old state stays whole"
        (folder / "ballast").unlink()
        mirror.show(state(3))
        until(lambda: number_in(path) == 3)
        until(lambda: mirror.problem is None)
        mirror.close()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_failed_write_is_tried_again_without_being_shown_again(mirror, tmp_path, path):
    path.mkdir()
    mirror.show(state(5))
    until(lambda: mirror.problem)
    path.rmdir()
    until(lambda: number_in(path) == 5)
    until(lambda: mirror.problem is None)


def test_a_state_that_cannot_be_made_is_a_problem_and_not_the_end(mirror, path):
    mirror.show(lambda: 1 / 0)
    until(lambda: mirror.problem)
    mirror.show(state(6))
    until(lambda: number_in(path) == 6)


WRITER = """
import sys
from uphold.host.mirrors import RuntimeMirror
mirror = RuntimeMirror(sys.argv[1])
print("up", flush=True)
for number in range(10**9):
    mirror.show({"supervisor": {"number": number}, "workers": {f"w{n}": {} for n in range(200)}})
"""


@pytest.mark.accepts("R-01", "R-05", "P9")
def test_a_writer_that_is_killed_leaves_a_whole_state_and_no_heap_of_temporary_files(path):
    for turn in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            inode = path.stat().st_ino if path.exists() else 0
            until(lambda inode=inode: path.exists() and path.stat().st_ino != inode)
            os.kill(writer.pid, signal.SIGKILL)
        found, problem = read_mirror(path)
        assert problem is None, (turn, problem)
        assert found is not None
    RuntimeMirror(path).close()
    final = RuntimeMirror(path)
    final.show(state(1))
    final.close()
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "runtime.json",
        "runtime.json.prev",
    ]
