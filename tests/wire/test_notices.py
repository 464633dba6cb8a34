"""Reading what workers say: everything has a limit, and what is wrong has a stable word."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uphold.core.notices import NO_ERROR, Beat, Notice, Refused
from uphold.core.statuses import Fault
from uphold.core.times import parse_utc
from uphold.wire.notices import LONGEST_DATAGRAM, LONGEST_FILE, clean, decode_beat, decode_notice

NOW = parse_utc("2026-11-17T01:00:00Z")


def reason(answer):
    assert isinstance(answer, Refused), answer
    assert answer.text.endswith("."), answer
    return answer.reason


@pytest.mark.parametrize(
    ("data", "notice"),
    [
        (b"READY=1", Notice(ready=True)),
        (b"READY=1\n", Notice(ready=True)),
        (b"READY=0", Notice()),
        (b"STOPPING=1", Notice(stopping=True)),
        (b"RELOADING=1\nMONOTONIC_USEC=17", Notice(reloading=True)),
        (b"WATCHDOG=1", Notice(watchdog="alive")),
        (b"WATCHDOG=trigger", Notice(watchdog="trigger")),
        (b"WATCHDOG_USEC=20000000", Notice(watchdog_usec=20_000_000)),
        (b"WATCHDOG_USEC=0", Notice(watchdog_usec=0)),
        (b"MAINPID=4250", Notice(main_pid=4250)),
        (b"EXTEND_TIMEOUT_USEC=2500000", Notice(extend=2.5)),
        (b"STATUS=Waiting for the sun\nREADY=1", Notice(ready=True, status="Waiting for the sun")),
        (b"STATUS=a=b", Notice(status="a=b")),
        (b"STATUS=", Notice(status="")),
        (b"FDSTORE=1\nX_ANYTHING=\xff\xfe", Notice()),
        (b"BARRIER=1", Notice()),
        (b'UPHOLD_BEAT={"progress": 17}', Notice(beat=Beat(status="ok", progress=17.0))),
        (b"UPHOLD_BEAT={}", Notice(beat=Beat())),
        (
            b'UPHOLD_BEAT={"status":"Busy","error":"disk full","summary":"3 of 9","seq":4}',
            Notice(beat=Beat(status="busy", error="disk full", summary="3 of 9", seq=4)),
        ),
        (
            b'UPHOLD_ERROR={"code":"NO_TOKEN","message":"the token is missing"}',
            Notice(error=Fault(code="NO_TOKEN", message="the token is missing")),
        ),
        (b"UPHOLD_ERROR=null", Notice(error=NO_ERROR)),
        (b"UPHOLD_ERROR=", Notice(error=NO_ERROR)),
    ],
)
def test_what_a_worker_says_is_understood(data, notice):
    assert decode_notice(data) == notice


@pytest.mark.accepts("S26")
@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"READY", "not-a-notice"),
        (b"WATCHDOG_USEC=soon", "not-a-number"),
        (b"WATCHDOG_USEC=-1", "not-a-number"),
        (b"WATCHDOG_USEC=1e9", "not-a-number"),
        (b"WATCHDOG_USEC=" + b"9" * 400, "not-a-number"),
        (b"MAINPID=0", "out-of-range"),
        (b"MAINPID=99999999999", "out-of-range"),
        (b"EXTEND_TIMEOUT_USEC=inf", "not-a-number"),
        (b"UPHOLD_BEAT=nothing", "not-json"),
        (b"UPHOLD_BEAT=[]", "not-json"),
        (b"UPHOLD_BEAT=\xff", "not-json"),
        (b'UPHOLD_BEAT={"progress": NaN}', "not-a-number"),
        (b'UPHOLD_BEAT={"progress": -Infinity}', "not-a-number"),
        (b'UPHOLD_BEAT={"progress": 1e999}', "not-a-number"),
        (b'UPHOLD_BEAT={"progress": -1}', "out-of-range"),
        (b'UPHOLD_BEAT={"progress": 1e300}', "out-of-range"),
        (b'UPHOLD_BEAT={"progress": "17"}', "wrong-type"),
        (b'UPHOLD_BEAT={"progress": true}', "wrong-type"),
        (b'UPHOLD_BEAT={"seq": 1.5}', "wrong-type"),
        (b'UPHOLD_BEAT={"seq": ' + b"9" * 3000 + b"}", "out-of-range"),
        (b'UPHOLD_BEAT={"seq": 1, "seq": 2}', "duplicate-key"),
        (b'UPHOLD_ERROR={"code": 5}', "wrong-type"),
        (b"STATUS=" + b"x" * LONGEST_DATAGRAM, "too-large"),
    ],
)
def test_what_cannot_be_is_refused_with_a_stable_word(data, word):
    assert reason(decode_notice(data)) == word


def test_one_impossible_value_refuses_the_whole_message():
    assert reason(decode_notice(b"READY=1\nMAINPID=x")) == "not-a-number"


@pytest.mark.accepts("S26", "B-79")
def test_texts_are_cut_and_cannot_move_the_cursor():
    told = decode_notice(b"STATUS=\x1b[2J" + b"\t\x07red " * 200)
    assert len(told.status) <= 200
    assert told.status.isprintable()
    beat = decode_notice(b'UPHOLD_BEAT={"summary": "' + b"very " * 300 + b'"}').beat
    assert len(beat.summary) == 255
    assert clean("zero\u200bwidth \u202eback\ud800\nnext", 99) == "zerowidth back next"


def test_times_to_be_waited_for_are_at_most_a_day():
    assert decode_notice(b"EXTEND_TIMEOUT_USEC=99999999999999999999").extend == 86400.0
    assert decode_notice(b"WATCHDOG_USEC=99999999999999999999").watchdog_usec == 86400 * 10**6


@pytest.mark.accepts("S26")
@given(st.binary(max_size=300))
def test_no_datagram_breaks_the_reader(data):
    assert isinstance(decode_notice(data), Notice | Refused)
    assert isinstance(decode_notice(b"UPHOLD_BEAT=" + data), Notice | Refused)
    assert isinstance(decode_beat(data, NOW), Beat | Refused)


@pytest.mark.accepts("C-114")
def test_a_heartbeat_file_is_read():
    text = json.dumps(
        {
            "watcher_id": "press-1",
            "pid": 4250,
            "hostname": "orion",
            "status": "running",
            "utc": "2026-11-17T00:59:30.500Z",
            "poll_seconds": 5,
            "last_error": None,
            "unknown": {"is": ["ignored"]},
        }
    ).encode()
    assert decode_beat(text, NOW) == Beat(status="running", at=NOW - 29.5)


@pytest.mark.parametrize(
    "time",
    ["2026-11-17T01:00:00+00:00", "2026-11-17 01:00:00", "2026-11-17T02:00:00+01:00", NOW],
)
def test_its_time_may_be_written_in_several_ways(time):
    for key in ("utc", "timestamp"):
        assert decode_beat(json.dumps({key: time}).encode(), NOW).at == NOW


def test_a_byte_order_mark_and_windows_line_ends_are_fine():
    assert decode_beat(b'\xef\xbb\xbf{\r\n"status": "ok"\r\n}\r\n', NOW) == Beat(status="ok")


def test_a_file_without_a_status_says_nothing_good():
    assert not decode_beat(b"{}", NOW).good


@pytest.mark.accepts("C-111")
def test_error_and_last_error_are_the_same_to_a_reader():
    for key in ("error", "last_error"):
        assert decode_beat(json.dumps({"status": "ok", key: "no"}).encode(), NOW).error == "no"
    assert decode_beat(b'{"status": "ok", "error": ""}', NOW).good


@pytest.mark.accepts("S26", "C-114")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b"", "not-json"),
        (b"{", "not-json"),
        (b"3", "not-json"),
        (b'"text"', "not-json"),
        (b'{"status": "ok"} more', "not-json"),
        (b"\xff\xfe{\x00}\x00", "not-json"),
        (b'{"progress": NaN}', "not-a-number"),
        (b'{"anything": {"else": Infinity}}', "not-a-number"),
        (b'{"anything": [1e400]}', "not-a-number"),
        (b'{"status": "ok", "status": "ok"}', "duplicate-key"),
        (b'{"status": 1}', "wrong-type"),
        (b'{"hostname": []}', "wrong-type"),
        (b'{"pid": "4"}', "wrong-type"),
        (b'{"pid": -4}', "out-of-range"),
        (b'{"poll_seconds": "5"}', "wrong-type"),
        (b'{"utc": "1970-01-01T00:00:00Z"}', "from-1970"),
        (b'{"utc": 0}', "from-1970"),
        (b'{"utc": -1e300}', "from-1970"),
        (b'{"utc": "1999-12-31T23:59:59Z"}', "from-1970"),
        (b'{"utc": "2026-11-17T01:06:00Z"}', "from-the-future"),
        (b'{"utc": "2100-01-01T00:00:00Z"}', "from-the-future"),
        (b'{"utc": 1e300}', "from-the-future"),
        (b'{"utc": "yesterday"}', "not-a-time"),
        (b'{"utc": true}', "not-a-time"),
        (b'{"utc": "' + b"2" * 500 + b'"}', "not-a-time"),
        (b'{"a":' * 9 + b"1" + b"}" * 9, "too-deep"),
        (b'{"a":' + b"[" * 20_000 + b"]" * 20_000 + b"}", "too-deep"),
        (b'{"summary": "' + b"x" * LONGEST_FILE + b'"}', "too-large"),
    ],
)
def test_a_heartbeat_that_cannot_be_true_is_refused(text, word):
    assert reason(decode_beat(text, NOW)) == word


def test_a_clock_may_be_a_little_ahead_and_a_file_eight_levels_deep():
    assert decode_beat(b'{"utc": "2026-11-17T01:04:59Z"}', NOW).at == NOW + 299
    assert isinstance(decode_beat(b'{"a":' * 8 + b"1" + b"}" * 8, NOW), Beat)


@pytest.mark.accepts("S05")
def test_a_heartbeat_of_another_run_is_foreign():
    text = b'{"status": "ok", "nonce": "abc"}'
    assert decode_beat(text, NOW, nonce="abc") == Beat(status="ok")
    assert decode_beat(text, NOW) == Beat(status="ok")
    assert decode_beat(b'{"status": "ok"}', NOW, nonce="abc") == Beat(status="ok")
    assert reason(decode_beat(text, NOW, nonce="def")) == "foreign"
