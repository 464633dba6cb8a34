"""Whose flags are obeyed, where the owner of a file says who wrote it."""

from __future__ import annotations

import os
import pwd

import pytest

from inbox.sharing import lay_out, with_share
from inbox.test_receiving import RULES, at, order
from uphold.core.specs import InboxSpec
from uphold.inbox.receiving import Receiver
from uphold.inbox.trusting import trusted_of, user_of

TRUSTED, STRANGER = 45_001, 45_002


def test_without_names_anybody_is_trusted():
    assert trusted_of(()) is None


def test_root_and_ourselves_are_always_trusted_and_an_unknown_name_stands_for_nobody():
    somebody = pwd.getpwall()[-1]
    for users, numbers in (
        (["no-such-user-here", "²", "٣"], set()),
        ([somebody.pw_name, str(TRUSTED)], {somebody.pw_uid, TRUSTED}),
    ):
        trusted = trusted_of(users)
        tried = {0, os.geteuid(), 2, 3, somebody.pw_uid, TRUSTED, STRANGER}
        assert {each for each in tried if each in trusted} == {0, os.geteuid(), *numbers}


@pytest.mark.accepts("S07")
def test_a_name_nobody_knew_is_looked_up_again_before_a_stranger_is_refused(monkeypatch):
    known = {}
    monkeypatch.setattr(pwd, "getpwnam", lambda name: pwd.struct_passwd(known[name]))
    trusted = trusted_of(["late", "never"])
    assert TRUSTED not in trusted
    known["late"] = ("late", "x", TRUSTED, TRUSTED, "", "/", "/bin/sh")
    assert TRUSTED in trusted
    known.clear()
    assert TRUSTED in trusted, "and that is remembered"
    assert STRANGER not in trusted


def test_a_user_is_named_as_people_know_it():
    assert user_of(0) == "user 'root'"
    assert user_of(STRANGER) == f"user {STRANGER}"


@pytest.mark.accepts("S07")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("padding", [0, 10_000], ids=["small", "large"])
def test_flags_of_strangers_are_refused_by_name_and_those_of_others_are_left(tmp_path, padding):
    root = lay_out(tmp_path / "share")
    spec = InboxSpec(share=str(root), owners=(str(TRUSTED),))

    async def work(tools):
        for number, (task, owner) in enumerate(
            (("ours", 0), ("friend", TRUSTED), ("stranger", STRANGER))
        ):
            flag = {**order(task, label="nightly"), "params": {}}
            raw = str(flag).replace("'", '"').encode() + b" " * padding
            os.chown(tools.drop(f"supervisor_{number}.flag", raw), owner, owner)
        theirs = tools.drop("supervisor_9.flag", order("nine", worker_id="theirs"))
        os.chown(theirs, STRANGER, STRANGER)
        poll = await Receiver(tools.inbox).poll(RULES, at())
        assert [each.flag.task_id for each in poll.claimed] == ["ours", "friend"]
        ((refused, _),) = poll.refused
        assert (refused.task_id, refused.label) == ("stranger", "nightly")
        assert refused.code == "UPH_FLAG_NOT_PERMITTED"
        assert refused.reason == (
            f"the file belongs to user {STRANGER}, who is not among inbox.owners."
        )
        assert theirs.exists(), "whose it is, is for its own supervisor to judge"
        again = await Receiver(tools.inbox).interrupted("tester", RULES, at())
        assert len(again.claimed) == 2, "nor is it obeyed after a crash"

    with_share(root, work, spec=spec)


@pytest.mark.accepts("S07", "S08")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_counts_is_the_owner_of_what_was_read(tmp_path):
    root = lay_out(tmp_path / "share")

    async def work(tools):
        path = tools.drop("supervisor_1.flag", order("one"))
        listing = await tools.inbox.flags()
        assert listing.entries[0].content.stranger == ""
        path.unlink()
        os.chown(tools.drop("supervisor_1.flag", order("other")), STRANGER, STRANGER)
        claimed = await tools.inbox.claim("supervisor_1.flag")
        assert claimed.stranger == f"user {STRANGER}"

    with_share(root, work, spec=InboxSpec(share=str(root), owners=(str(TRUSTED),)))
