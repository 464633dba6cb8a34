"""`uphold flag`: orders as files, written and listed through the share's helper."""

from __future__ import annotations

import json
import re

import pytest

from inbox.sharing import lay_out
from uphold.cli.commands import flag

KEY = "a-key-of-sixteen-or-more"


@pytest.fixture
def share(home, tmp_path):
    root = lay_out(tmp_path / "share")
    configure(tmp_path, root)
    return root


def configure(folder, root, more=""):
    (folder / "uphold.toml").write_text(
        f'[workers.api]\ncommand = ["sleep", "60"]\n[inbox]\nshare = "{root}"\n{more}'
    )


def lying(share):
    return sorted(path for path in (share / "Worker_Inbox").iterdir() if path.is_file())


@pytest.mark.accepts("E-20")
def test_a_flag_is_written_whole_with_a_task_of_its_own_and_fifteen_minutes(uphold, share):
    result = uphold("flag", "create", "pause_watcher", "--label", "disk swap")
    assert result.code == 0, result
    (path,) = lying(share)
    content = json.loads(path.read_text())
    assert str(path) in result.out
    assert content["task_id"] in path.name
    assert (content["handler"], content["worker_id"]) == ("pause_watcher", "api")
    assert content["label"] == "disk swap"
    assert content["expires_at"] > content["issued_at"]
    assert "signature" not in content


def test_each_has_another_task_and_none_replaces_another(uphold, share):
    told = [uphold("flag", "create", "diagnostics", "--json").json for _ in range(3)]
    assert len({each["task_id"] for each in told}) == 3
    assert sorted(each["file"] for each in told) == [str(path) for path in lying(share)]
    assert told[0]["job_id"] is None


def test_a_running_supervisor_has_it_on_record_first(uphold, share, supervisor):
    supervisor.answers["announce"] = {"job_id": "job_1", "task_id": "t"}
    told = uphold("flag", "create", "rollback_code", "--commits-back", "3", "--json").json
    assert told["job_id"] == "job_1"
    asked = supervisor.asked("announce")
    assert (asked["task_id"], asked["worker_id"]) == (told["task_id"], "api")
    (path,) = lying(share)
    assert json.loads(path.read_text())["params"] == {"commits_back": 3}


@pytest.mark.accepts("E-26", "E-27")
def test_it_is_on_record_before_the_file_is_there(uphold, share, supervisor):
    heard = []

    def announce(params):
        heard.append((params["task_id"], params["label"], lying(share)))
        return {"job_id": "job_1", "task_id": params["task_id"]}

    supervisor.answers["announce"] = announce
    told = uphold("flag", "create", "pause_watcher", "--json").json
    assert re.fullmatch(r"task_\d{8}_\d{6}_[a-z0-9]{4}", told["task_id"])
    assert told["label"], "a blank label is filled from the handler"
    assert heard == [(told["task_id"], told["label"], [])]
    assert [str(path) for path in lying(share)] == [told["file"]]


def test_a_sender_signs(uphold, share, tmp_path):
    configure(tmp_path, share, f'[inbox.senders.console]\nkey = "{KEY}"\n')
    assert uphold("flag", "create", "pause_watcher", "--sender", "console").code == 0
    (path,) = lying(share)
    assert json.loads(path.read_text())["signature"].startswith("console:")
    result = uphold("flag", "create", "pause_watcher", "--sender", "nobody")
    assert (result.code, len(lying(share))) == (5, 1)
    assert "UPH_FLAG_SIGNATURE" in result.err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("sing",),
        ("pause_watcher", "--label", "two\nlines"),
        ("pause_watcher", "--label", "x" * 101),
        ("rollback_code", "--commits-back", "11"),
        ("pause_watcher", "--commits-back", "1"),
    ],
)
def test_what_nobody_would_obey_is_not_written(uphold, share, words):
    assert uphold("flag", "create", *words).code == 2
    assert lying(share) == []


def test_for_whom_must_be_clear(uphold, share, tmp_path):
    configure(tmp_path, share, '[workers.web]\ncommand = ["sleep", "60"]\n')
    result = uphold("flag", "create", "pause_watcher")
    assert (result.code, lying(share)) == (2, [])
    assert "--worker-id" in result.err
    assert uphold("flag", "create", "pause_watcher", "--worker-id", "web").code == 0
    configure(
        tmp_path,
        share,
        '[workers.web]\ncommand = ["sleep", "60"]\n[deploy]\nrepo = "."\nworkers = ["web"]\n',
    )
    assert uphold("flag", "create", "resume_watcher", "--json").json["worker_id"] == "web"


def test_the_list_tells_what_waits_what_is_under_way_and_what_was_refused(uphold, share):
    inbox = share / "Worker_Inbox"
    (inbox / "supervisor_pause_api.flag").write_text("{}")
    (inbox / "task_1.task.json").write_text("{}")
    for name in ("processing", "rejected"):
        (inbox / name).mkdir()
    (inbox / "processing" / "orion.ab.supervisor_restart_api.flag").write_text("{}")
    (inbox / "rejected" / "20260205_x.flag").write_text("{}")
    (inbox / "rejected" / "20260205_x.flag.reason.txt").write_text("it is no JSON object.\n")
    lines = uphold("flag", "list").out.splitlines()
    assert lines == [
        "pending: 1",
        "  supervisor_pause_api.flag",
        "processing: 1",
        "  orion.ab.supervisor_restart_api.flag",
        "rejected: 1",
        "  20260205_x.flag: it is no JSON object.",
    ]
    told = uphold("flag", "list", "--json").json
    assert told["pending"] == ["supervisor_pause_api.flag"]
    refused = [{"file": "20260205_x.flag", "reason": "it is no JSON object."}]
    assert told["rejected"] == refused


@pytest.mark.parametrize("words", [("list",), ("create", "pause_watcher")])
def test_a_share_that_is_not_mounted_is_not_written_to(uphold, share, words):
    (share / "00_STATE").rmdir()
    result = uphold("flag", *words)
    assert result.code == 1
    assert "UPH_SHARE_NOT_MOUNTED" in result.err
    assert lying(share) == []


def test_without_an_inbox_there_is_nothing_to_write_to(uphold, home):
    assert uphold("flag", "list").code == 6
    assert flag.run.__doc__
