"""Heartbeat files, as workers and hostile neighbours leave them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from functools import partial

import pytest

from proofs.stuck import FrozenMount
from uphold.core.notices import UNANSWERED, Beat, FileBeat, Refused
from uphold.host.beats import LONGEST, BeatFiles, read_file, understand
from uphold.wire.notices import decode_beat

NOW = 1_800_000_000.0


def write(path, modified=NOW, **content):
    path.write_text(json.dumps(content))
    os.utime(path, (modified, modified))
    return str(path)


def read(path, now=NOW, nonce=None):
    decode = partial(decode_beat, now=now, nonce=nonce)
    return understand(str(path), read_file(str(path)), decode)


def reason(found):
    assert isinstance(found, Refused), found
    assert found.text.endswith("."), found
    return found.reason


@pytest.fixture
def path(tmp_path):
    return tmp_path / "beat.json"


@pytest.mark.accepts("C-109", "C-110", "C-111", "C-114")
def test_a_fresh_good_file_without_error_is_healthy(path):
    write(path, status="running", utc=NOW - 10, progress=3)
    found = read(path)
    assert found == FileBeat(beat=Beat(status="running", progress=3.0, at=NOW - 10), modified=NOW)
    assert found.trouble(NOW, 300.0) == ""


@pytest.mark.accepts("C-133")
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"status": 7}', b"[" * 9999]
)
def test_a_file_that_is_none_is_no_exception(path, content):
    path.write_bytes(content)
    reason(read(path))


@pytest.mark.accepts("C-112", "C-114", "C-133")
def test_a_missing_file_is_no_exception(path):
    assert reason(read(path)) == "missing"
    assert reason(read(path / "below")) == "missing"
    path.write_text("{}")
    assert reason(read(path / "below-a-file")) == "missing"


@pytest.mark.accepts("C-109", "C-119")
@pytest.mark.parametrize(
    ("modified", "said", "age"),
    [(NOW, NOW, 0), (NOW - 7, NOW, 7), (NOW, NOW - 9, 9), (NOW - 5, None, 5), (NOW + 3, NOW, 0)],
)
def test_its_age_is_that_of_the_older_of_file_and_content(path, modified, said, age):
    more = {} if said is None else {"utc": said}
    write(path, modified, status="ok", **more)
    assert read(path).age(NOW) == age


@pytest.mark.accepts("C-109")
def test_either_of_them_may_be_stale(path):
    write(path, NOW - 300, status="ok", utc=NOW)
    assert "300 s old" in read(path).trouble(NOW, 300.0)
    write(path, NOW, status="ok", utc=NOW - 400)
    assert "400 s old" in read(path).trouble(NOW, 300.0)
    assert read(path).trouble(NOW, 401.0) == ""


@pytest.mark.accepts("C-110", "C-111")
def test_a_bad_word_or_an_error_is_said(path):
    write(path, status="stuck")
    assert "'stuck'" in read(path).trouble(NOW, 300.0)
    write(path)
    assert "'nothing'" in read(path).trouble(NOW, 300.0)
    write(path, status="ok", last_error="disk full")
    assert "disk full" in read(path).trouble(NOW, 300.0)


def test_a_file_from_the_future_is_not_fresh_for_years(path):
    write(path, NOW + 86400, status="ok")
    assert "future" in read(path).trouble(NOW, 300.0)


@pytest.mark.accepts("S26")
def test_links_folders_pipes_and_sockets_are_not_read(tmp_path, path):
    target = tmp_path / "target"
    write(target, status="ok")
    path.symlink_to(target)
    assert reason(read(path)) == "unreadable"
    path.unlink()
    path.mkdir()
    assert reason(read(path)) == "not-a-file"
    path.rmdir()
    os.mkfifo(path)
    assert reason(read(path)) == "not-a-file"
    path.unlink()
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
            assert reason(read(path)) == "unreadable"
    finally:
        os.chdir(here)
    assert reason(read("/dev/zero")) == "not-a-file"


@pytest.mark.accepts("S26")
def test_ten_megabytes_are_not_even_read(path):
    path.write_bytes(b" " * 10_000_000)
    assert reason(read(path)) == "too-large"
    path.write_bytes(b" " * LONGEST)
    assert reason(read(path)) == "not-json"


@pytest.mark.accepts("S26", "C-114")
def test_what_it_says_wrongly_is_told_with_its_name(path):
    path.write_text('{"progress": NaN}')
    found = read(path)
    assert reason(found) == "not-a-number"
    assert str(path) in found.text


@pytest.mark.accepts("S05")
def test_the_heartbeat_of_another_run_is_foreign(path):
    write(path, status="ok", nonce="before")
    assert reason(read(path, nonce="now")) == "foreign"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_one_that_may_not_be_read_is_said(path):
    write(path, status="ok")
    path.chmod(0)
    assert reason(read(path)) == "unreadable"


async def read_again(files, path):
    """Read until somebody answers: on a busy machine a thread may be late."""
    async with asyncio.timeout(60):
        while True:
            found = await files.read(str(path), partial(decode_beat, now=NOW, nonce=None))
            if not isinstance(found, Refused) or found.reason != UNANSWERED:
                return found


@pytest.mark.accepts("P17")
def test_a_file_that_hangs_holds_one_thread_and_nobody_else(path):
    write(path, status="ok")
    hung, begun, free = str(path.with_name("hung.json")), [], threading.Event()

    def slowly(name):
        begun.append(name)
        if name == hung:
            free.wait(100)
        return read_file(str(path))

    async def scene():
        files = BeatFiles(read=slowly, patience=0.1)
        decode = partial(decode_beat, now=NOW, nonce=None)
        try:
            for _ in range(50):
                found = await files.read(hung, decode)
                assert reason(found) == UNANSWERED
                assert "does not answer" in found.text
            together = await asyncio.gather(*(files.read(hung, decode) for _ in range(50)))
            assert {reason(each) for each in together} == {UNANSWERED}
            assert begun == [hung]
            assert isinstance(await read_again(files, path), FileBeat)
            assert await asyncio.to_thread(os.getpid) == os.getpid()
        finally:
            free.set()
        assert isinstance(await read_again(files, hung), FileBeat)

    asyncio.run(scene())


def test_whoever_stops_waiting_takes_nothing_from_the_others(path):
    write(path, status="ok")
    free = threading.Event()

    def slowly(name):
        free.wait(100)
        return read_file(name)

    async def scene():
        files = BeatFiles(read=slowly, patience=60.0)
        read = partial(files.read, str(path), partial(decode_beat, now=NOW, nonce=None))
        first, second = asyncio.create_task(read()), asyncio.create_task(read())
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        free.set()
        assert isinstance(await second, FileBeat)

    asyncio.run(scene())


@pytest.mark.accepts("P17", "T12")
def test_a_file_system_that_hangs_delays_no_other_file_and_no_other_thread(tmp_path, path):
    write(path, status="ok")
    silent = FrozenMount(tmp_path / "share")
    names = [silent.folder / f"{number}.json" for number in range(40)]

    async def scene():
        files = BeatFiles(patience=0.2)
        try:
            silent.__enter__()
        except PermissionError:
            pytest.skip("nothing may be mounted here")
        try:
            decode = partial(decode_beat, now=NOW, nonce=None)
            for _ in range(3):
                found = await asyncio.gather(*(files.read(str(name), decode) for name in names))
                assert {reason(each) for each in found} == {UNANSWERED}
            assert isinstance(await read_again(files, path), FileBeat)
            assert await asyncio.to_thread(os.getpid) == os.getpid()
        finally:
            silent.__exit__()
        for name in names:
            write(name, status="ok")
        async with asyncio.timeout(60):
            for name in names:
                # Whoever was waiting may have been told only now that the old one is gone.
                while isinstance(found := await read_again(files, name), Refused):
                    assert reason(found) == "unreadable"
                assert isinstance(found, FileBeat)

    asyncio.run(scene())
