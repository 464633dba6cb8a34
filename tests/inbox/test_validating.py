"""Judging a share: every missing thing is an issue of its own."""

from __future__ import annotations

import shutil

import pytest

from inbox.sharing import lay_out, with_share
from uphold.core.specs import InboxSpec
from uphold.errors import HostFailure
from uphold.inbox.validating import judge

SPEC = InboxSpec(share="/mnt/orion")


def seen(**changes):
    found = {
        "paths": dict.fromkeys(SPEC.paths),
        "inbox": None,
        "kept_by": None,
        "outbox": None,
        "logs": None,
        "space": {"total": 100, "used": 50, "free": 50, "percent_free": 50.0},
    }
    return found | changes


def surveyed(root):
    async def look(tools):
        return await tools.share.survey()

    return judge(with_share(root, look), InboxSpec(share=str(root)))


@pytest.mark.accepts("C-136", "C-137")
def test_a_whole_share_is_valid(tmp_path):
    judged = surveyed(lay_out(tmp_path))
    assert judged.valid
    assert {issue.what for issue in judged.issues} <= {"space"}  # this disk may be full


@pytest.mark.accepts("C-136", "C-137")
def test_each_missing_folder_yields_its_own_issue(tmp_path):
    lay_out(tmp_path)
    for name in ("Worker_Inbox", "Worker_Outbox", "05_LOGS", "02_WORK", "04_PUBLISH"):
        shutil.rmtree(tmp_path / name)
    judged = surveyed(tmp_path)
    assert not judged.valid
    wrong = ["inbox", "outbox", "logs", "path 02_WORK", "path 04_PUBLISH", "path 05_LOGS"]
    issues = [issue for issue in judged.issues if issue.grave]
    assert [issue.what for issue in issues] == wrong
    for issue in issues:
        assert "No such file or directory" in issue.text
        assert str(tmp_path) in issue.remedy


@pytest.mark.accepts("C-136")
def test_without_its_state_folder_a_share_is_not_there(tmp_path):
    lay_out(tmp_path)
    shutil.rmtree(tmp_path / "00_STATE")
    with pytest.raises(HostFailure) as caught:
        surveyed(tmp_path)
    assert caught.value.code == "UPH_SHARE_NOT_MOUNTED"


@pytest.mark.parametrize(
    ("free", "words"),
    [(50.0, None), (10.0, None), (9.9, "little room"), (5.0, "little room"), (4.9, "very little")],
)
def test_little_room_is_worth_a_warning_and_does_not_make_a_share_invalid(free, words):
    judged = judge(seen(space={"percent_free": free}), SPEC)
    assert judged.valid
    texts = [issue.text for issue in judged.issues]
    assert (not texts) if words is None else texts[0].startswith(words)


def test_a_share_that_does_not_say_how_much_room_it_has_is_valid():
    for space in (None, {"percent_free": None}):
        judged = judge(seen(space=space), SPEC)
        assert judged.valid
        assert [issue.what for issue in judged.issues] == ["space"]


def test_a_folder_that_may_not_be_written_to_is_grave():
    judged = judge(seen(logs="Permission denied"), SPEC)
    assert not judged.valid
    assert "05_LOGS" in judged.issues[0].text
    assert "(Permission denied)" in judged.issues[0].text


def test_a_sticky_inbox_of_somebody_else_is_worth_a_warning():
    judged = judge(seen(kept_by="user 'ann'"), SPEC)
    assert judged.valid
    (issue,) = judged.issues
    assert "sticky and belongs to user 'ann'" in issue.text
    assert "/mnt/orion/Worker_Inbox" in issue.remedy
