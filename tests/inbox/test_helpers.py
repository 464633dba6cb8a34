"""One helper process: asked, given up, ended."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from inbox.sharing import lay_out
from inbox.test_answering import SETTINGS
from uphold.errors import HostFailure
from uphold.inbox.helpers import start_helper
from uphold.testing.waiting import eventually


def with_helper(root, work):
    async def go():
        helper = await start_helper(str(root), SETTINGS)
        try:
            await work(helper)
        finally:
            helper.abandon(HostFailure("over."))
            await eventually(helper.over, within=60.0)

    asyncio.run(go())


def test_answers_go_to_whoever_asked_and_nobody_has_to_wait_for_his(tmp_path):
    async def work(helper):
        lost = helper.ask({"do": "sweep"})
        lost.cancel()
        asked = [helper.ask({"do": "look", "path": f"00_STATE/{number}"}) for number in range(20)]
        answers = await asyncio.gather(*asked)
        assert [answer["ok"] for answer in answers] == [None] * 20
        assert helper.usable
        assert not helper.over()

    with_helper(lay_out(tmp_path), work)


def test_whoever_waits_for_a_helper_that_ends_is_told(tmp_path):
    heard = []

    async def work(helper):
        helper.when_over(lambda: heard.append(helper.pid))
        await helper.ask({"do": "sweep"})
        os.kill(helper.pid, signal.SIGSTOP)
        asked = helper.ask({"do": "sweep"})
        os.kill(helper.pid, signal.SIGKILL)
        with pytest.raises(HostFailure, match="ended"):
            await asked
        await asyncio.wait_for(helper.ended(), 60)
        assert not helper.usable

    with_helper(lay_out(tmp_path), work)
    assert len(heard) == 1


def test_a_helper_that_nobody_will_ask_ends_by_itself(tmp_path):
    async def work(helper):
        await helper.ask({"do": "sweep"})
        helper.hang_up()
        await asyncio.wait_for(helper.ended(), 60)
        helper.let_go()

    with_helper(lay_out(tmp_path), work)


def test_an_answer_that_is_no_json_is_no_end_of_the_supervisor(tmp_path):
    async def work(helper):
        await helper.ask({"do": "sweep"})
        asked = helper.ask({"do": "sweep"})
        helper.data_received(b"nonsense\n")
        with pytest.raises(HostFailure):
            await asked

    with_helper(lay_out(tmp_path), work)
