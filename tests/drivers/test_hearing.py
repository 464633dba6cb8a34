"""Hearing workers that really run, and nobody else."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from uphold.core.events import Exited, Gone, Started, StartFailed
from uphold.core.notices import Beat, Notice, Refused
from uphold.core.statuses import Exit, Fault, Identity
from uphold.drivers.hearing import Hearing
from uphold.drivers.senders import Senders
from uphold.host import notifying
from uphold.host.notifying import NotifySocket
from uphold.testing.waiting import eventually

SAY = """
import os, socket, sys, time
def say(*lines):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.connect(os.environ["NOTIFY_SOCKET"])
    s.send("\\n".join(lines).encode())
"""


@pytest.fixture
def runtime(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="uph", dir="/tmp") as folder:
        monkeypatch.setattr(notifying, "_folders", lambda _: iter([f"{folder}/uphold"]))
        yield Path(folder)


class Ears:
    """A stage whose driver gives its workers a socket, and what is heard on it."""

    def __init__(self, stage):
        self.stage = stage
        self.told = []
        self.socket = NotifySocket(stage.home)

    async def open(self):
        await self.stage.driver.close()
        self.stage.open(notify=self.socket.path)
        driver = self.stage.driver
        self.hearing = Hearing(self.socket, driver.senders)
        driver.subscribe(self.hearing.hear)
        self.hearing.begin(lambda *told: self.told.append(told))
        return self

    async def start(self, slot, program, **terms):
        launch = self.stage.launch(slot, sys.executable, "-ISc", SAY + program, **terms)
        await self.stage.driver.start(launch)
        return await self.stage.told("Started", slot)

    def said_by(self, slot):
        return [notice for who, _, notice in self.told if who == slot]


@pytest.fixture
def play(act, runtime):
    def run(scene):
        async def on_stage(stage):
            ears = await Ears(stage).open()
            try:
                await scene(ears)
            finally:
                ears.socket.close()

        act(on_stage)

    return run


@pytest.mark.accepts("S05")
def test_what_a_worker_says_is_delivered_for_its_slot_and_run(play):
    async def scene(ears):
        program = (
            "say('READY=1', 'STATUS=up'); say('UPHOLD_BEAT={\"progress\": 3}'); time.sleep(600)"
        )
        await ears.start("web", program, generation=4)
        await eventually(lambda: len(ears.told) == 2, 60.0)
        assert ears.told == [
            ("web", 4, Notice(ready=True, status="up")),
            ("web", 4, Notice(beat=Beat(progress=3.0))),
        ]
        assert (ears.hearing.heard, dict(ears.hearing.refused)) == (2, {})

    play(scene)


def test_the_last_words_of_a_short_life_are_heard_before_its_end_is_told(play):
    async def scene(ears):
        order = []
        deliver = ears.hearing._deliver
        ears.hearing._deliver = lambda *told: (order.append("said"), deliver(*told))
        ears.stage.driver.subscribe(lambda fact: order.append(type(fact).__name__))
        await ears.start("job", "say('STATUS=done')")
        await ears.stage.told("Exited", "job", 60.0)
        assert ears.said_by("job") == [Notice(status="done")]
        assert order == ["Started", "said", "Exited"]

    play(scene)


def test_a_child_that_has_ended_by_the_time_it_is_heard_speaks_for_its_worker(play):
    async def scene(ears):
        program = (
            "pid = os.fork()\nif not pid: say('STATUS=from a child'); os._exit(0)\ntime.sleep(600)"
        )
        await ears.start("web", program)
        await eventually(lambda: ears.told, 60.0)
        assert ears.said_by("web") == [Notice(status="from a child")]

    play(scene)


@pytest.mark.accepts("S05")
def test_a_process_of_nobody_is_counted_and_not_believed(play):
    async def scene(ears):
        await ears.start("web", "time.sleep(600)")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            stranger.connect(ears.socket.path)
            stranger.send(b"READY=1")
            stranger.send(b"STATUS=believe me")
        await eventually(lambda: ears.hearing.refused)
        await eventually(lambda: ears.hearing.refused.get("foreign") == 2)
        assert ears.told == []

    play(scene)


@pytest.mark.accepts("S26")
def test_nonsense_of_a_worker_is_counted_and_delivered_as_refused(play):
    async def scene(ears):
        program = "say('UPHOLD_BEAT={\"progress\": NaN}'); say('x' * 9000); time.sleep(600)"
        await ears.start("web", program)
        await eventually(lambda: len(ears.told) == 2, 60.0)
        assert [notice.reason for notice in ears.said_by("web")] == ["not-a-number", "too-large"]
        assert dict(ears.hearing.refused) == {"not-a-number": 1, "too-large": 1}

    play(scene)


@pytest.mark.accepts("S05")
def test_a_worker_may_name_its_own_child_as_main_process_and_nobody_else(play):
    async def scene(ears):
        program = (
            "pid = os.fork()\n"
            "if not pid: time.sleep(600)\n"
            "say(f'MAINPID={pid}')\n"
            "say(f'MAINPID={os.getppid()}')\n"
            "time.sleep(600)"
        )
        await ears.start("web", program)
        await eventually(lambda: len(ears.told) == 2, 60.0)
        first, second = ears.said_by("web")
        assert isinstance(first, Notice)
        assert first.main_pid > 1
        assert isinstance(second, Refused)
        assert second.reason == "foreign-main"

    play(scene)


def test_an_adopted_worker_is_heard_where_it_has_always_spoken(play):
    async def scene(ears):
        flag = ears.stage.folder / "go"
        program = (
            f"while not os.path.exists({str(flag)!r}): time.sleep(0.02)\n"
            "say('STATUS=still here')\n"
            "time.sleep(600)"
        )
        started = await ears.start("web", program)
        launch = ears.stage.launch("web", sys.executable, "-ISc", SAY + program)
        path = ears.socket.path
        ears.socket.close()
        ears.socket = NotifySocket(ears.stage.home)
        assert ears.socket.path == path
        await ears.open()
        await ears.stage.driver.adopt((ears.stage.trace(launch, started.identity),))
        flag.touch()
        await eventually(lambda: ears.told, 60.0)
        assert ears.told == [("web", 1, Notice(status="still here"))]

    play(scene)


class Mouth:
    """A source that says what the test says."""

    def __init__(self):
        self.waiting = []

    def listen(self, hear):
        self.hear = hear

    def drain(self):
        while self.waiting:
            self.hear(self.waiting.pop(0), os.getpid(), 0)
        return True


class Anybody(Senders):
    """Takes this process for the run that was expected or introduced last."""

    def find(self, pid):
        return next((known.sender for known in self._by_slot.values()), "foreign")


def began(generation=1):
    identity = Identity(pid=os.getpid(), start_ticks=1, boot_id="b", inode=0, nonce="n")
    return Started(slot="web", generation=generation, identity=identity)


def test_what_is_said_before_the_start_is_told_comes_after_it():
    async def scene():
        mouth, senders, told = Mouth(), Anybody(lambda _: True), []
        hearing = Hearing(mouth, senders)
        hearing.begin(lambda *each: told.append(each))
        senders.expect("web", 1, "n")
        for number in range(30):
            mouth.waiting.append(b"STATUS=%d" % number)
        mouth.drain()
        assert told == []
        hearing.hear(began())
        assert told == [], "others hear of the start in this very moment"
        await asyncio.sleep(0)
        assert [notice.status for _, _, notice in told] == [str(number) for number in range(16)]

    asyncio.run(scene())


@pytest.mark.parametrize("how", ["failed", "exited", "gone"])
def test_what_was_kept_for_a_run_that_never_came_is_dropped(how):
    async def scene():
        mouth, senders, told = Mouth(), Anybody(lambda _: True), []
        hearing = Hearing(mouth, senders)
        hearing.begin(lambda *each: told.append(each))
        senders.expect("web", 1, "n")
        mouth.waiting.append(b"READY=1")
        mouth.drain()
        end = {
            "failed": StartFailed(slot="web", generation=1, fault=Fault(code="X", message="x")),
            "exited": Exited(slot="web", generation=1, exit=Exit(code=0, signal=None, at=0.0)),
            "gone": Gone(slot="web", generation=1, proof="p"),
        }[how]
        hearing.hear(end)
        hearing.hear(began(2))
        await asyncio.sleep(0)
        assert told == []
        assert hearing._early == {}

    asyncio.run(scene())
