"""One look into an inbox: what is claimed, refused, waited for and left alone."""

from __future__ import annotations

import os

import pytest

from inbox.sharing import lay_out, tools_for, with_share
from uphold.core.events import Moment
from uphold.core.specs import Instant
from uphold.errors import HostFailure
from uphold.inbox.flags import Rules
from uphold.inbox.receiving import AT_ONCE, Receiver

NOW = 1_770_300_000.0
RULES = Rules(workers=frozenset({"web"}), fallback=("web",))


@pytest.fixture
def root(tmp_path):
    return lay_out(tmp_path / "share")


def at(seconds=0.0, wall=NOW):
    return Moment(mono=Instant(1000.0 + seconds), wall=wall + seconds)


def order(task, handler="pause_watcher", **more):
    return {"task_id": task, "handler": handler, **more}


@pytest.mark.accepts("C-033", "C-034", "C-035", "C-105", "C-040")
def test_a_look_claims_ours_in_order_refuses_the_wrong_and_leaves_the_rest(root):
    async def work(tools):
        tools.drop("supervisor_1.flag", order("one", "diagnostics"))
        tools.drop("supervisor_2.flag", order("two", "update_code"))
        tools.drop("supervisor_3.flag", order("three", "nonsense"))
        tools.drop("supervisor_4.flag", b"[]")
        theirs = tools.drop("supervisor_5.flag", order("five", worker_id="theirs"))
        tools.drop("supervisor_6.flag", order("six", "restart"))
        task = tools.drop("job_7.flag", order("seven"))
        poll = await Receiver(tools.inbox).poll(RULES, at())
        assert [each.flag.task_id for each in poll.claimed] == ["two", "six", "one"]
        assert [each.rejected.file for each in poll.refused] == [
            "supervisor_3.flag",
            "supervisor_4.flag",
        ]
        assert (poll.others, poll.unfinished, poll.failure) == (1, 0, None)
        assert theirs.exists()
        assert task.exists()

    with_share(root, work)


@pytest.mark.accepts("P21", "C-037")
def test_an_unfinished_file_is_waited_for_until_it_is_thirty_seconds_old(root):
    async def work(tools):
        receiver = Receiver(tools.inbox)
        path = tools.drop("supervisor_1.flag", b'{"task_id": ')
        os.utime(path, (NOW - 29, NOW - 29))
        assert (await receiver.poll(RULES, at())).unfinished == 1
        assert path.exists()
        poll = await receiver.poll(RULES, at(1))
        assert [each.rejected.code for each in poll.refused] == ["UPH_FLAG_UNREADABLE"]
        assert not path.exists()

    with_share(root, work)


@pytest.mark.accepts("P21")
def test_on_a_share_whose_clock_is_ahead_it_is_the_standstill_that_counts(root):
    async def work(tools):
        receiver = Receiver(tools.inbox)
        path = tools.drop("supervisor_1.flag", b"{")
        os.utime(path, (NOW + 9999, NOW + 9999))
        assert (await receiver.poll(RULES, at())).unfinished == 1
        assert (await receiver.poll(RULES, at(29))).unfinished == 1
        tools.drop("supervisor_1.flag", b'{"a": ')
        os.utime(path, (NOW + 9999, NOW + 9999))
        assert (await receiver.poll(RULES, at(31))).unfinished == 1, "it has grown"
        assert (await receiver.poll(RULES, at(60))).unfinished == 1
        assert len((await receiver.poll(RULES, at(61))).refused) == 1

    with_share(root, work)


def test_a_finished_file_is_taken_at_once_however_young(root):
    async def work(tools):
        receiver = Receiver(tools.inbox)
        tools.drop("supervisor_1.flag", b'{"task_id": ')
        assert (await receiver.poll(RULES, at())).claimed == ()
        tools.drop("supervisor_1.flag", order("one"))
        assert len((await receiver.poll(RULES, at())).claimed) == 1

    with_share(root, work)


@pytest.mark.accepts("S07")
def test_what_is_no_file_is_refused_unless_its_name_is_for_somebody_else(root):
    async def work(tools):
        os.mkfifo(root / "Worker_Inbox/supervisor_1.flag")
        os.mkfifo(root / "Worker_Inbox/supervisor_pause_theirs.flag")
        poll = await Receiver(tools.inbox).poll(RULES, at())
        (refused,) = poll.refused
        assert refused.rejected.reason == "the file is a pipe."
        assert poll.others == 1
        assert (root / "Worker_Inbox/supervisor_pause_theirs.flag").exists()

    with_share(root, work)


@pytest.mark.accepts("E-31", "C-036", "B-59")
def test_what_was_claimed_and_not_finished_is_found_again_by_its_owner_only(root):
    async def work(tools):
        other = tools_for(root, owner="other")
        try:
            tools.drop("supervisor_1.flag", order("one"))
            tools.drop("supervisor_2.flag", order("two", "nonsense"))
            tools.drop("supervisor_3.flag", b"half")
            for number in (1, 2, 3):
                await tools.inbox.claim(f"supervisor_{number}.flag")
            tools.drop("supervisor_1.flag", order("four"))
            await tools.inbox.claim("supervisor_1.flag")
            (root / "Worker_Inbox/processing/strange").write_text("x")
            found = await Receiver(tools.inbox).interrupted("tester", RULES, at())
            assert {each.flag.task_id for each in found.claimed} == {"one", "four"}
            assert {each.rejected.file for each in found.refused} == {
                "supervisor_2.flag",
                "supervisor_3.flag",
            }
            for each in (*found.claimed, *found.refused):
                assert (root / "Worker_Inbox/processing" / each.claimed).exists()
            assert (await Receiver(other.inbox).interrupted("other", RULES, at())).claimed == ()
        finally:
            await other.reach.close()

    with_share(root, work)


@pytest.mark.accepts("C-038")
def test_without_an_inbox_there_is_nothing_to_do(root):
    (root / "Worker_Inbox").rmdir()

    async def work(tools):
        poll = await Receiver(tools.inbox).poll(RULES, at())
        assert (poll.claimed, poll.missing) == ((), True)

    with_share(root, work)


@pytest.mark.accepts("S08", "C-035")
def test_a_flag_that_becomes_somebody_elses_before_it_is_claimed_is_put_back(root):
    async def work(tools):
        inbox = tools.inbox
        claim = inbox.claim_each

        async def late(names):
            tools.drop(names[0], order("one", worker_id="theirs"))
            return await claim(names)

        inbox.claim_each = late
        path = tools.drop("supervisor_1.flag", order("one"))
        poll = await Receiver(inbox).poll(RULES, at())
        assert (poll.claimed, poll.refused, poll.others) == ((), (), 1)
        assert b"theirs" in path.read_bytes()
        assert list((root / "Worker_Inbox/processing").iterdir()) == []

    with_share(root, work)


def test_a_share_that_goes_away_in_the_middle_takes_nothing_back_that_was_claimed(root):
    async def work(tools):
        inbox = tools.inbox
        claim = inbox.claim_each

        async def once(names):
            if list((root / "Worker_Inbox/processing").glob("*")):
                raise HostFailure("it is away.", code="UPH_SHARE_UNREACHABLE")
            return await claim(names)

        inbox.claim_each = once
        for number in range(AT_ONCE + 5):
            tools.drop(f"supervisor_{number}.flag", order(f"task{number}"))
        poll = await Receiver(inbox).poll(RULES, at())
        assert len(poll.claimed) == AT_ONCE
        assert poll.failure is not None
        assert poll.failure.code == "UPH_SHARE_UNREACHABLE"

    with_share(root, work)


def test_one_file_that_cannot_be_claimed_hides_no_other(root):
    async def work(tools):
        inbox = tools.inbox
        claim = inbox.claim_each

        async def broken(names):
            return await claim(["../x" if name == "supervisor_1.flag" else name for name in names])

        inbox.claim_each = broken
        tools.drop("supervisor_1.flag", order("one"))
        tools.drop("supervisor_2.flag", order("two"))
        poll = await Receiver(inbox).poll(RULES, at())
        assert [each.flag.task_id for each in poll.claimed] == ["two"]
        assert poll.failure is not None
        assert poll.failure.code == "UPH_SHARE_FAILED"

    with_share(root, work)
