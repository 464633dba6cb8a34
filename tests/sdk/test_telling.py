"""What programs say, to whom, and that saying it never disturbs them."""

from __future__ import annotations

import json
import os
import re
import socket

import pytest

import uphold
from uphold.sdk.telling import Line


@pytest.fixture
def heard(monkeypatch, tmp_path):
    """A supervisor's ear in a path that is short enough; gives the messages so far."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        address = f"@uphold-ear-{os.getpid()}-{tmp_path.name}"
        ear.bind("\0" + address[1:])
        ear.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", address)

        def messages():
            found = []
            try:
                while True:
                    found.append(ear.recv(1 << 20).decode().split("\n"))
            except BlockingIOError:
                return found

        yield messages


def test_a_program_says_that_it_is_ready_and_that_it_ends(heard):
    assert uphold.ready()
    assert uphold.ready("listening\non 80")
    uphold.stopping()
    assert heard() == [["READY=1"], ["READY=1", "STATUS=listening on 80"], ["STOPPING=1"]]


@pytest.mark.accepts("D-16")
def test_a_beat_is_a_line_of_json_with_a_rising_number(heard):
    line = Line()
    line.beat("running", 1, None, None)
    line.beat("degraded", 2.5, "two\nlines", 'a "quoted" reason')
    first, second = heard()
    assert first[0] == "WATCHDOG=1"
    assert json.loads(first[1].removeprefix("UPHOLD_BEAT=")) == {
        "status": "running", "progress": 1, "error": None, "seq": 1,
    }  # fmt: skip
    assert second[1] == "STATUS=two lines"
    told = json.loads(second[2].removeprefix("UPHOLD_BEAT="))
    assert (told["summary"], told["error"], told["seq"]) == ("two lines", 'a "quoted" reason', 2)


def test_mere_progress_is_not_sent_more_often_than_anybody_needs(heard):
    line = Line()
    for number in range(200):
        line.beat("running", number, None, None)
    sent = len(heard())
    assert 1 <= sent < 200
    assert line.progress == 199
    line.beat("error", 200, None, "now")
    line.beat("running", 200, None, None)
    assert len(heard()) == 2


@pytest.mark.accepts("B-79")
@pytest.mark.parametrize("letter", ["x", "é", "€", "😀", "\x01", "\ud800", '"', "\\"])
def test_a_message_stays_small_whatever_is_in_it(heard, letter):
    line = Line()
    line.beat("error", 1e15, letter * 100_000, letter * 100_000)
    [message] = heard()
    assert len("\n".join(message).encode()) < 4096
    told = json.loads(message[-1].removeprefix("UPHOLD_BEAT="))
    assert len(told["summary"]) <= 255
    assert len(told["error"]) <= 500


def test_an_error_has_a_code_and_a_message(heard):
    Line().fail("UPH_X", "it broke\nbadly")
    assert heard() == [['UPHOLD_ERROR={"code": "UPH_X", "message": "it broke badly"}']]


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/at/all", "@nobody-listens"])
def test_with_nobody_to_tell_nothing_happens(monkeypatch, address):
    if address is None:
        monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    else:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    monkeypatch.setenv("UPHOLD_BEAT_FILE", "/nowhere/at/all")
    uphold.beat(1)
    uphold.stopping()
    assert uphold.ready() is (address in (None, "", "relative"))


def test_a_supervisor_that_does_not_listen_never_makes_a_worker_wait(monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        address = f"@uphold-deaf-{os.getpid()}"
        deaf.bind("\0" + address[1:])
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        line = Line()
        said = [line.say("STATUS=" + "x" * 1000) for _ in range(10_000)]
    assert said[0]
    assert not said[-1]


@pytest.mark.accepts("B-80")
def test_the_heartbeat_file_is_written_even_if_nobody_hears(monkeypatch, tmp_path):
    path = tmp_path / "beat.json"
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/at/all")
    monkeypatch.setenv("UPHOLD_BEAT_FILE", str(path))
    Line().beat("busy", 3, "reading", None)
    told = json.loads(path.read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told.pop("utc"))
    assert told == {
        "pid": os.getpid(), "hostname": os.uname().nodename[:64],
        "status": "busy", "progress": 3, "error": None, "seq": 1,
    }  # fmt: skip
    assert os.listdir(tmp_path) == ["beat.json"]


@pytest.mark.parametrize(
    "wrong", [{"status": "fine"}, {"progress": float("nan")}, {"progress": -1}]
)
def test_a_beat_that_makes_no_sense_is_the_callers_mistake(wrong):
    with pytest.raises(ValueError):
        uphold.beat(**wrong)
