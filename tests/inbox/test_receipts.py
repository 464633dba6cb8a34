"""Names and contents of what is left on a share."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uphold.inbox.receipts import (
    heartbeat_content,
    heartbeat_name,
    pause_marker_name,
    receipt_content,
    receipt_name,
    report_name,
    stamp,
    watcher_heartbeat_name,
)

AT = 1_770_300_615.234


def test_a_moment_in_a_name_is_utc_to_the_millisecond():
    assert stamp(AT) == "20260205T141015234Z"
    assert stamp(0.9996) == "19700101T000000999Z"


def test_a_receipt_is_named_by_handler_task_and_time():
    assert receipt_name("pause_watcher", "t1", AT) == (
        "supervisor_result_pause_watcher_t1_20260205T141015234Z.json"
    )
    assert receipt_name(None, None, AT, "ab12") == (
        "supervisor_result_unknown_unknown_ab12_20260205T141015234Z.json"
    )


@given(st.text(max_size=30))
def test_no_file_name_of_a_stranger_gets_into_the_name_of_a_receipt(token):
    name = receipt_name(None, None, AT, token)
    assert re.fullmatch(r"supervisor_result_unknown_unknown[A-Za-z0-9_-]*\.json", name)


@pytest.mark.accepts("E-28")
def test_a_receipt_has_its_keys_in_their_order():
    raw = receipt_content(
        wall=AT,
        supervisor_id="s1",
        worker_id="web",
        task_id="t1",
        job_id=None,
        handler="pause_watcher",
        label="evening",
        success=False,
        error="it broke.",
        details={"held": True},
        log_path="/share/05_LOGS/supervisor.log",
    )
    assert raw.endswith(b"}\n")
    found = json.loads(raw)
    assert (
        list(found)
        == (
            "timestamp supervisor_id worker_id task_id job_id handler label success error details log_path"
        ).split()
    )
    assert found["timestamp"] == "2026-02-05T14:10:15.234Z"
    assert (found["success"], found["error"], found["details"]) == (
        False,
        "it broke.",
        {"held": True},
    )


@pytest.mark.accepts("C-127", "C-128", "C-023", "C-047", "S13")
def test_a_heartbeat_tells_of_the_pass_also_when_it_failed():
    action = {"handler": "pause_watcher", "label": None, "error": None}
    raw = heartbeat_content(
        supervisor_id="s1",
        wall=AT,
        worker_id="web",
        success=False,
        error="no share.",
        actions=[action],
    )
    found = json.loads(raw)
    assert list(found) == "supervisor_id timestamp worker_id success error actions".split()
    assert (found["success"], found["error"], found["actions"]) == (False, "no share.", [action])


@pytest.mark.accepts("C-021", "C-022", "C-023")
def test_the_files_of_the_state_folder_carry_the_worker():
    assert heartbeat_name("web") == "supervisor_heartbeat_web.json"
    assert watcher_heartbeat_name("web") == "watcher_heartbeat_web.json"
    assert pause_marker_name("web") == "supervisor_pause_web.flag"


@pytest.mark.parametrize(
    ("label", "tail"), [(None, ""), ("a b", "_a_b"), ("  ", ""), ("x-1_y", "_x-1_y")]
)
def test_a_report_takes_the_label_into_its_name(label, tail):
    name = report_name("diagnostics", "web", AT, label)
    assert name == f"diagnostics_web_20260205T141015234Z{tail}.json"


@given(st.text(max_size=100))
def test_no_label_makes_a_report_lie_anywhere_else(label):
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", report_name("db_verification", "web", AT, label))
