from __future__ import annotations

import asyncio

import pytest

from uphold.core.specs import StopRule, WorkerSpec
from uphold.host.clock import MachineClock
from uphold.ports.drivers import Launch, Trace
from uphold.testing.drivers import FakeDriver


class Scene:
    def __init__(self):
        self.driver = FakeDriver(MachineClock())
        self.facts = []
        self.driver.subscribe(self.facts.append)

    def launch(self, slot="web", generation=1):
        spec = WorkerSpec(name=slot.partition(".")[0])
        return Launch(slot=slot, generation=generation, nonce=f"n{generation}", spec=spec)

    async def start(self, slot="web", generation=1):
        await self.driver.start(self.launch(slot, generation))

    def kinds(self):
        return [type(fact).__name__ for fact in self.facts]


@pytest.fixture
def play():
    def run(scene):
        asyncio.run(scene(Scene()))

    return run


def test_a_start_fails_as_often_as_told(play):
    async def scene(s):
        s.driver.fail_start("web", "first")
        s.driver.fail_start("web", "second", hopeless=True)
        for generation in (1, 2, 3):
            await s.start(generation=generation)
        assert s.kinds() == ["StartFailed", "StartFailed", "Started"]
        assert [fact.hopeless for fact in s.facts[:2]] == [False, True]
        assert [fact.fault.message for fact in s.facts[:2]] == ["first", "second"]

    play(scene)


def test_a_hanging_start_waits_and_keeps_no_other_waiting(play):
    async def scene(s):
        s.driver.hang_start("web")
        both = asyncio.create_task(s.driver.start_all([s.launch("web"), s.launch("db")]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [(type(fact).__name__, fact.slot) for fact in s.facts] == [("Started", "db")]
        s.driver.release_start("web")
        await both
        assert s.facts[-1].slot == "web"

    play(scene)


def test_one_that_vanishes_is_noticed_only_by_looking(play):
    async def scene(s):
        await s.start()
        s.driver.drop("web")
        assert s.kinds() == ["Started"]
        assert not s.driver.state("web").connected

    play(scene)


def test_one_that_ignores_the_stop_needs_a_kill(play):
    async def scene(s):
        s.driver.ignore_stop("web")
        await s.start()
        await s.driver.stop("web", StopRule(signal="INT"))
        assert s.kinds() == ["Started"]
        await s.driver.kill("web")
        assert s.kinds() == ["Started", "Exited", "Gone"]
        assert s.facts[1].exit.signal == 9
        assert s.driver.signals == [("web", "INT")]

    play(scene)


def test_one_that_survives_a_kill_is_told_so_until_it_dies(play):
    async def scene(s):
        s.driver.survive_kill("web")
        await s.start()
        await s.driver.kill("web")
        assert s.kinds() == ["Started", "StopFailed"]
        assert s.facts[-1].fault.code == "UPH_STOP_UNKILLABLE"
        s.driver.let_die("web")
        assert s.kinds()[2:] == ["Exited", "Gone"]

    play(scene)


def test_left_overs_end_later_than_the_main_process(play):
    async def scene(s):
        await s.start()
        s.driver.end("web", code=1, left_overs=True)
        assert s.facts[-1].left_overs
        s.driver.empty("web")
        assert s.kinds() == ["Started", "Exited", "Gone"]

    play(scene)


def test_calls_remember_everything_that_would_change_the_world(play):
    async def scene(s):
        s.driver.add(WorkerSpec(name="web"))
        assert s.driver.states()["web"].connected is False
        assert s.driver.calls == []
        await s.start()
        s.driver.signal("web", "HUP")
        await s.driver.stop("web", StopRule())
        await s.driver.kill("web")
        assert [verb for verb, _ in s.driver.calls] == ["start", "signal", "stop", "kill"]

    play(scene)


def test_the_world_outlives_the_driver_and_forgets_what_died(play):
    async def scene(s):
        await s.start("web")
        await s.start("db")
        traces = [
            Trace(
                slot=fact.slot,
                generation=1,
                nonce="n1",
                identity=fact.identity,
                spec=WorkerSpec(name=fact.slot),
            )
            for fact in s.facts
        ]
        s.driver.drop("db")
        await s.driver.close()
        following = s.driver.successor()
        heard = []
        following.subscribe(heard.append)
        await following.adopt(traces)
        assert [(type(fact).__name__, fact.slot) for fact in heard] == [
            ("Adopted", "web"),
            ("Gone", "db"),
        ]

    play(scene)
