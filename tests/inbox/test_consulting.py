"""Plug-ins asked in processes of their own: the example's, and one for each mishap."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from threading import Barrier, Event

import pytest

from uphold.core import orders
from uphold.errors import UpholdError
from uphold.inbox import consulting
from uphold.inbox.consulting import AGAIN, Consultants, admit, ask, describe, survey
from uphold.inbox.flags import Flag
from uphold.plugins import Handler, Urgency
from uphold.testing.clocks import FakeClock
from uphold.testing.waiting import eventually

ALLOWED = frozenset({"OrionMX", "Copier"})


def flag(handler, **params):
    return Flag(
        file="f.flag", task_id="task_1", handler=handler, worker_id="OrionMX", params=params
    )


def wished(handler, **params):
    consultants = Consultants((handler,), FakeClock())
    return asyncio.run(consultants.wish(flag(handler, **params), ALLOWED))


def test_a_plug_in_gives_its_row_and_its_wish(plugged):
    (stop, resize), unusable = survey(("stop_watcher", "resize"))
    assert unusable == {}
    assert stop[:4] == ("stop_watcher", Urgency.OPERATIONAL, 40, ("stop",))
    assert list(resize.params) == ["slots"]
    assert wished("stop_watcher") == orders.StopWorkers(names=("OrionMX",))
    assert wished("resize", slots=3) == orders.ScaleWorker(name="OrionMX", replicas=3)


def test_what_a_plug_in_prints_does_not_spoil_its_answer(plugged):
    assert wished("talks") == orders.PauseWorkers(names=("OrionMX",))


@pytest.mark.parametrize(
    ("params", "code", "text"),
    [
        ({}, "ORION_SLOTS_MISSING", "resize needs the parameter slots."),
        ({"slots": 99}, "UPH_FLAG_PARAMS", "slots must be a whole number from 0 to 8."),
    ],
)
def test_a_plug_in_may_refuse_a_flag_in_its_own_words(plugged, params, code, text):
    with pytest.raises(UpholdError) as caught:
        wished("resize", **params)
    assert (caught.value.code, caught.value.message) == (code, text)


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        ("raises", "it raised LookupError: nobody told me of OrionMX"),
        ("leaves", "it raised SystemExit: 3"),
        ("dies", "its process ended with 7"),
        ("fills", "it needs more than 1024 MiB of memory"),
        ("greedy", "it wished for 'somebody', whom no flag can be for here"),
        ("nobody", "its wish names no worker"),
        ("wild", "cannot be read"),
        ("ending", "a ShutDown is no wish of a plug-in"),
        ("waving", "there is no signal 'WAVE'"),
    ],
)
@pytest.mark.accepts("P23")
def test_a_plug_in_that_goes_wrong_is_an_error_of_its_flag(plugged, handler, why):
    with pytest.raises(UpholdError, match=f"the plug-in of {handler} failed: .*{why}") as caught:
        wished(handler)
    assert caught.value.code == "UPH_PLUGIN_FAILED"


def test_a_check_of_a_parameter_that_raises_is_one_too(plugged):
    with pytest.raises(UpholdError, match="RuntimeError: this check is broken"):
        wished("careful", size=1)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere", "no installed package offers a 'nowhere' in the group uphold.handlers"),
        ("broken", "broken:handler cannot be loaded: ImportError: half of it is missing"),
        ("absent", "mishaps:absent cannot be loaded: AttributeError"),
        ("silent", "'silent' is offered more than once .* by mishaps, second"),
        ("plain", "it must be an uphold.plugins.Handler, and is a function"),
        ("misnamed", "called 'misnamed' and the handler itself 'another'"),
        ("shouting", "'LOUD' is no name"),
        ("late", "its number must be from 0 to 999, not -1"),
        ("idle", "its wish must be a function"),
        ("clash", "'pause' is taken by the handler pause_watcher"),
        ("pause_watcher", "a handler of uphold itself"),
    ],
)
def test_what_cannot_be_used_says_why_and_keeps_nobody_else_out(plugged, name, why):
    rows, unusable = survey((name, "stop_watcher"))
    assert [row.name for row in rows] == ["stop_watcher"]
    assert re.search(why, unusable[name])


def test_of_two_that_clash_the_first_is_taken(plugged):
    rows, unusable = survey(("talks", "again"))
    assert [row.name for row in rows] == ["talks"]
    assert unusable == {"again": "'talks' is taken by the handler talks."}


def test_one_that_hangs_is_ended_and_not_asked_again_for_a_while(plugged, monkeypatch):
    clock = FakeClock()
    asked = []

    def counting(question):
        asked.append(question)
        return ask(question)

    async def story():
        consultants = Consultants(("hangs", "talks"), clock, counting)
        assert await consultants.look() == {}
        monkeypatch.setattr(consulting, "LIMIT", 1.0)
        with pytest.raises(UpholdError, match="did not answer within 1 s"):
            await consultants.wish(flag("hangs"), ALLOWED)
        before = len(asked)
        with pytest.raises(UpholdError) as caught:
            await consultants.wish(flag("hangs"), ALLOWED)
        assert (caught.value.code, len(asked)) == ("UPH_PLUGIN_UNUSABLE", before)
        assert [row.name for row in consultants.survey.rows] == ["talks"]
        await clock.advance(AGAIN + 1)
        monkeypatch.setattr(consulting, "LIMIT", 60.0)
        await consultants.look()
        await eventually(lambda: len(consultants.survey.rows) == 2, within=60)
        assert [row.name for row in consultants.survey.rows] == ["hangs", "talks"]

    asyncio.run(story())


def test_one_that_hangs_ends_by_itself_when_whoever_asked_is_gone(interpreter):
    question = {"handler": "hangs", "limit": 0}
    about = {"task_id": "t", "handler": "hangs", "worker_id": "w", "label": None, "sender": None}
    ended = subprocess.run(
        [interpreter.python, "-I", "-m", "uphold.inbox.advising"],
        input=json.dumps({**question, "flag": {**about, "params": {}}}).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGALRM, b"")


def test_a_mistake_of_our_own_reaches_whoever_waits():
    async def story():
        await Consultants(("x",), FakeClock(), lambda _: 1 / 0).wish(flag("x"), ALLOWED)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(story())


ROW = {"name": "late_comer", "urgency": 2, "number": 44, "aliases": [], "params": []}


def test_one_that_was_missing_is_found_once_it_is_installed_and_told_of_once():
    clock = FakeClock()
    answers = [{"unusable": "not there."}, {"unusable": "not there."}, ROW]

    async def story():
        consultants = Consultants(("late_comer",), clock, lambda _: answers.pop(0))
        assert await consultants.look() == {"late_comer": "not there."}
        assert await consultants.look() == {}
        await clock.advance(AGAIN + 1)
        assert await consultants.look() == {}
        await eventually(lambda: len(answers) == 1)
        await clock.advance(AGAIN + 1)
        assert await consultants.look() == {}
        await eventually(lambda: consultants.survey.rows)
        assert [row.name for row in consultants.survey.rows] == ["late_comer"]
        await clock.advance(AGAIN + 1)
        assert await consultants.look() == {}

    asyncio.run(story())
    assert answers == []


def test_a_reason_that_differs_by_an_address_is_told_once():
    clock = FakeClock()
    object_at = "it must be a Handler, and is a <Thing object at 0x7f{} of process {}>."
    reasons = ["3", "not there.", object_at.format("3b02", 5), object_at.format("a9f0c", 17)]
    told = []

    async def story():
        left = iter(reasons)
        consultants = Consultants(("thing",), clock, lambda _: {"unusable": next(left)})
        for why in reasons:
            told.append(await consultants.look())
            await eventually(lambda why=why: consultants.survey.unusable["thing"] == why)
            told.append(await consultants.look())
            await clock.advance(AGAIN + 1)

    asyncio.run(story())
    assert [each["thing"] for each in told if each] == reasons[:3]


class Slow:
    """Plug-ins that answer when they are let."""

    def __init__(self):
        self.asked = []
        self.let = Event()

    def __call__(self, question):
        self.asked.append(question["handler"])
        assert self.let.wait(60)
        return ROW


def test_whoever_looks_while_another_does_waits_for_the_same_answers():
    clock, slow = FakeClock(), Slow()

    async def story():
        consultants = Consultants(("late_comer",), clock, slow)
        first, second = (asyncio.create_task(consultants.look()) for _ in range(2))
        await clock.settle()
        assert not second.done()
        slow.let.set()
        await second
        assert [row.name for row in consultants.survey.rows] == ["late_comer"]
        await first

    asyncio.run(story())
    assert slow.asked == ["late_comer"]


def test_one_who_gives_up_looking_leaves_the_answers_to_the_next():
    clock, slow = FakeClock(), Slow()

    async def story():
        consultants = Consultants(("late_comer",), clock, slow)
        first = asyncio.create_task(consultants.look())
        await clock.settle()
        first.cancel()
        await clock.settle()
        slow.let.set()
        assert await consultants.look() == {}
        assert [row.name for row in consultants.survey.rows] == ["late_comer"]

    asyncio.run(story())
    assert slow.asked == ["late_comer"]


def test_all_are_asked_side_by_side():
    together = Barrier(3)

    def asked(_):
        together.wait(30)
        return {"unusable": "all of them came."}

    async def story():
        return await Consultants(("a", "b", "c"), FakeClock(), asked).look()

    assert set(asyncio.run(story())) == {"a", "b", "c"}


@pytest.mark.accepts("P17")
def test_only_the_first_answers_are_waited_for():
    clock, slow = FakeClock(), Slow()

    def asked(question):
        return slow(question) if question["handler"] in known else {"unusable": "not there."}

    async def story():
        consultants = Consultants(("late_comer", "gone"), clock, asked)
        assert set(await consultants.look()) == {"late_comer", "gone"}
        known.append("late_comer")
        await clock.advance(AGAIN + 1)
        for _ in range(2):
            look = asyncio.create_task(consultants.look())
            await clock.settle()
            assert look.done()
            assert set(consultants.survey.unusable) == {"late_comer", "gone"}, "as they were"
        slow.let.set()
        await eventually(lambda: consultants.survey.rows)
        assert set(consultants.survey.unusable) == {"gone"}

    known = []
    asyncio.run(story())
    assert slow.asked == ["late_comer"]


def test_nobody_is_waited_for_at_the_end():
    clock, slow = FakeClock(), Slow()

    async def story():
        consultants = Consultants(("late_comer",), clock, slow)
        consultants.close()
        look = asyncio.create_task(consultants.look())
        await clock.settle()
        consultants.close()
        assert await look == {}
        assert consultants.survey.rows == ()

    asyncio.run(story())
    slow.let.set()


def test_who_is_not_named_is_not_asked():
    async def story():
        consultants = Consultants((), FakeClock(), lambda _: pytest.fail("asked"))
        assert await consultants.look() == {}
        return await consultants.wish(flag("stop_watcher"), ALLOWED)

    assert asyncio.run(story()) is None


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"name": "x"},
        {**ROW, "urgency": 9},
        {**ROW, "number": "many"},
        {**ROW, "number": True},
        {**ROW, "number": 44.0},
        {**ROW, "number": 1000},
        {**ROW, "urgency": True},
        {**ROW, "name": "pause_watcher"},
        {**ROW, "name": ["late_comer"]},
        {**ROW, "aliases": 5},
        {**ROW, "aliases": "stop"},
        {**ROW, "aliases": [5]},
        {**ROW, "aliases": ["Stop it\n"]},
        {**ROW, "aliases": [f"a{number}" for number in range(33)]},
        {**ROW, "params": "size"},
        {**ROW, "params": [["size"]]},
        {**ROW, "params": ["\x1b[31m"]},
        {**ROW, "params": [f"a{number}" for number in range(33)]},
        {**ROW, "wish": "StopWorkers"},
        {**ROW, "params": None},
        {"failed": None},
        {"unusable": ["\x1b[31m"]},
        {"wish": "RestartWorkers"},
        {"wish": {"wish": []}},
        {"refused": {"code": None}},
    ],
)
def test_no_answer_is_too_strange(answer):
    reason = describe("late_comer", lambda _: answer)
    assert isinstance(reason, str)
    assert reason.isprintable()

    async def story():
        return await Consultants(("x",), FakeClock(), lambda _: answer).wish(flag("x"), ALLOWED)

    with pytest.raises(UpholdError):
        asyncio.run(story())


def test_a_process_that_cannot_be_started_is_an_answer(monkeypatch):
    monkeypatch.setattr("sys.executable", os.devnull)
    assert "cannot be run" in ask({"handler": "x"})["failed"]


def test_admitting_needs_no_plug_in():
    row = Handler("late_comer", Urgency.CODE, 5, aliases=("update_code",))
    assert admit({"late_comer": row, "gone": "gone."}).rows == ()
