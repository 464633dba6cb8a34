"""Making flags: what is sent is what the reader accepts."""

from __future__ import annotations

import json
import re

import pytest

from inbox.sharing import lay_out, with_share
from uphold.core.specs import SenderSpec
from uphold.errors import HostFailure, UpholdError
from uphold.inbox.creating import draft_flag, list_flags, new_task_id, send
from uphold.inbox.flags import Flag, Rules, read_flag

NOW = 1_770_300_615.0
SENDER = SenderSpec(name="console", key="a key of sixteen letters or more", may=("rollback_code",))


@pytest.mark.accepts("E-27")
def test_a_task_id_holds_the_moment_and_four_characters():
    assert new_task_id(NOW, 0) == "task_20260205_141015_aaaa"
    assert re.fullmatch(r"job_20260205_141015_[a-z0-9]{4}", new_task_id(NOW, 2**32 - 1, "job"))


@pytest.mark.accepts("E-27")
def test_a_flag_lives_a_quarter_of_an_hour_and_a_blank_label_is_the_handler():
    draft = draft_flag("pause_watcher", "web", task_id="t1", now=NOW, label="  ")
    assert draft.name == "supervisor_pause_watcher_web_t1.flag"
    assert json.loads(draft.content) == {
        "task_id": "t1",
        "handler": "pause_watcher",
        "label": "pause watcher",
        "worker_id": "web",
        "params": {},
        "issued_at": "2026-02-05T14:10:15.000Z",
        "expires_at": "2026-02-05T14:25:15.000Z",
    }
    assert (draft.flag.label, draft.flag.expires_at) == ("pause watcher", NOW + 900)


def test_a_flag_can_be_made_to_hold_for_ever():
    assert draft_flag("pause", "web", task_id="t1", now=NOW, life=None).flag.expires_at is None


@pytest.mark.accepts("S10")
def test_a_signed_flag_is_believed_by_whoever_has_the_key():
    draft = draft_flag(
        "rollback_code",
        "web",
        task_id="t1",
        now=NOW,
        params={"commits_back": 2},
        sender=SENDER,
    )
    rules = Rules(workers=frozenset({"web"}), require_signature=True, senders=(SENDER,))
    found = read_flag(draft.name, draft.content, rules=rules, now=NOW + 60)
    assert isinstance(found, Flag)
    assert found.sender == "console"
    assert SENDER.key.encode() not in draft.content


@pytest.mark.accepts("C-107")
@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"handler": "halt"}, "UPH_FLAG_HANDLER_UNKNOWN"),
        ({"label": "x" * 101}, "UPH_LABEL_INVALID"),
        ({"label": "a\nb"}, "UPH_LABEL_INVALID"),
        ({"params": {"commits": 1}}, "UPH_FLAG_PARAMS"),
        ({"worker_id": "../web"}, "UPH_FLAG_ADDRESSEE"),
        ({"worker_id": "api"}, "UPH_FLAG_INVALID"),
        ({"sender": SENDER}, "UPH_FLAG_NOT_PERMITTED"),
    ],
)
def test_what_would_be_refused_is_not_sent(wish, code):
    rules = Rules(workers=frozenset({"web"}), senders=(SENDER,))
    given = {"handler": "pause_watcher", "worker_id": "web", **wish}
    with pytest.raises(UpholdError) as refused:
        draft_flag(**given, task_id="t1", now=NOW, rules=rules)
    assert refused.value.code == code
    assert refused.value.exit_code == 2


@pytest.mark.accepts("E-26")
def test_what_is_sent_lies_in_the_inbox_and_what_becomes_of_it_can_be_seen(tmp_path):
    root = lay_out(tmp_path / "share")

    async def work(tools):
        before = sorted(path.name for path in root.rglob("*"))
        assert await list_flags(tools.inbox) == ((), (), ())
        assert sorted(path.name for path in root.rglob("*")) == before, "looking makes nothing"
        drafts = [draft_flag("pause", "web", task_id=f"t{n}", now=NOW) for n in range(3)]
        for draft in drafts:
            path = await send(tools.share, draft)
            assert path == str(root / "Worker_Inbox" / draft.name)
        with pytest.raises(HostFailure, match="exists"):
            await send(tools.share, drafts[0])
        tools.drop("task_of_the_worker.flag")
        claimed = await tools.inbox.claim(drafts[1].name)
        await tools.inbox.reject(drafts[2].name, "it came too late.", now=NOW)
        found = await list_flags(tools.inbox)
        assert [each.name for each in found.pending] == [drafts[0].name]
        assert [each.name for each in found.processing] == [claimed.claimed]
        assert [reason for _, reason in found.rejected] == ["it came too late."]

    with_share(root, work)
