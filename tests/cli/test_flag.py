"""`uphold flag`: files on a real folder, with and without a supervisor that hears of them first."""

from __future__ import annotations

import json
import re

import pytest


@pytest.fixture
def share(home):
    top = home.parent / "share"
    for name in ("00_STATE", "05_LOGS", "Worker_Inbox", "Worker_Outbox"):
        (top / name).mkdir(parents=True)
    config = home.parent / "uphold.toml"
    config.write_text('[workers.api]\ncommand = ["sleep", "60"]\n[inbox]\nshare = "share"\n')
    return top


def pending(share):
    return sorted((share / "Worker_Inbox").iterdir())


@pytest.mark.accepts("E-26", "E-27")
def test_a_flag_is_announced_then_written_whole(uphold, supervisor, share):
    heard = []

    def announce(params):
        heard.append((params, pending(share)))
        return {"job_id": "job_1", "task_id": params["task_id"]}

    supervisor.answers["announce"] = announce
    told = uphold("flag", "create", "pause_watcher", "--label", "disk swap", "--json").json
    assert re.fullmatch(r"task_\d{8}_\d{6}_[a-z0-9]{4}", told["task_id"])
    assert told["job_id"] == "job_1"
    ((params, there),) = heard
    assert there == [], "on record before the file is there"
    assert (params["handler"], params["worker_id"]) == ("pause_watcher", "api")
    (path,) = pending(share)
    assert str(path) == told["file"]
    content = json.loads(path.read_text())
    assert (content["task_id"], content["label"]) == (told["task_id"], "disk swap")
    assert content["expires_at"]


@pytest.mark.accepts("E-27", "C-039")
def test_without_a_supervisor_the_flag_is_written_all_the_same(uphold, share):
    result = uphold("flag", "create", "diagnostics")
    assert result.code == 0
    (path,) = pending(share)
    assert str(path) in result.out
    assert uphold("flag", "create", "restart_watcher", "--json").json["job_id"] is None
    content = json.loads(path.read_text())
    assert content["label"], "a blank label is filled"


@pytest.mark.accepts("C-107", "C-121", "C-122", "E-29")
@pytest.mark.parametrize(
    "words",
    [
        ("pause_watcher", "--label", "x" * 101),
        ("pause_watcher", "--label", "two\nlines"),
        ("format_disk",),
        ("rollback_code", "--commits-back", "11"),
        ("pause_watcher", "--commits-back", "1"),
        (),
    ],
)
def test_what_would_be_refused_is_not_written(uphold, share, words):
    result = uphold("flag", "create", *words)
    assert result.code == 2
    assert pending(share) == []
    assert "Traceback" not in result.err


def test_where_there_are_several_workers_one_must_be_named(uphold, home, share):
    with (home.parent / "uphold.toml").open("a") as file:
        file.write('[workers.web]\ncommand = ["sleep", "60"]\n')
    result = uphold("flag", "create", "pause_watcher")
    assert result.code == 2
    assert "--worker-id: api, web" in result.err
    assert uphold("flag", "create", "pause_watcher", "--worker-id", "web").code == 0
    assert json.loads(pending(share)[0].read_text())["worker_id"] == "web"


def test_an_unknown_sender_is_told_of(uphold, share):
    result = uphold("flag", "create", "pause_watcher", "--sender", "nobody")
    assert result.code == 5
    assert "no sender is called 'nobody'" in result.err


def test_a_share_that_is_away_is_told_of(uphold, share):
    (share / "00_STATE").rmdir()
    for words in (("create", "pause_watcher"), ("list",)):
        result = uphold("flag", *words)
        assert result.code == 1
        assert "UPH_SHARE_" in result.err


def test_without_an_inbox_there_is_nowhere_to_write_to(uphold, home):
    result = uphold("flag", "list")
    assert result.code == 6
    assert "there is no [inbox]" in result.err


def test_what_waits_is_under_way_and_was_refused_is_listed(uphold, share):
    inbox = share / "Worker_Inbox"
    (inbox / "supervisor_pause_api.flag").write_text("{}")
    (inbox / "invoice.task.json").write_text("{}")
    (inbox / "rejected").mkdir()
    (inbox / "rejected" / "old_supervisor_x.flag").write_text("{}")
    (inbox / "rejected" / "old_supervisor_x.flag.reason.txt").write_text("it expired.\n")
    assert uphold("flag", "list", "--json").json == {
        "schema": 1,
        "pending": ["supervisor_pause_api.flag"],
        "processing": [],
        "rejected": [{"file": "old_supervisor_x.flag", "reason": "it expired."}],
    }
    assert uphold("flag", "list").out.splitlines() == [
        *("pending: 1", "  supervisor_pause_api.flag", "processing: none"),
        *("rejected: 1", "  old_supervisor_x.flag: it expired."),
    ]
