"""Heartbeat files, as workers and hostile neighbours leave them."""

from __future__ import annotations

import json
import os
import socket

import pytest

from uphold.core.notices import Beat, FileBeat, Refused
from uphold.host.beats import LONGEST, read_beat
from uphold.wire.notices import decode_beat

NOW = 1_800_000_000.0


def write(path, modified=NOW, **content):
    path.write_text(json.dumps(content))
    os.utime(path, (modified, modified))
    return str(path)


def read(path, now=NOW, nonce=None):
    return read_beat(str(path), lambda text: decode_beat(text, now, nonce=nonce))


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
