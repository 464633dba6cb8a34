"""What every driver must do. Subclass `DriverContract` and provide a `bench` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Protocol, TypeVar

import pytest

from uphold.core.events import Adopted, Exited, Gone, SlotFact, Started, StartFailed
from uphold.core.specs import StopRule, WorkerSpec
from uphold.ports.drivers import Driver, Launch, Trace
from uphold.testing.waiting import eventually

Fact = TypeVar("Fact", bound=SlotFact)


class DriverBench(Protocol):
    """One kind of driver on a workbench: its workers can be told how to behave."""

    def open(self) -> Driver:
        """Open a driver; opened again, it is the one of the next supervisor."""
        ...

    def spec(self, name: str, *, stubborn: bool = False, hopeless: bool = False) -> WorkerSpec:
        """Make a worker: one that ignores the stop signal, or one that can never be started."""
        ...

    async def settled(self, slot: str) -> None:
        """Wait until a worker behaves as told."""
        ...

    async def end(self, slot: str, code: int) -> None:
        """Let a worker end by itself with this code."""
        ...

    async def clean_up(self) -> None:
        """End whatever still lives."""
        ...


class Play:
    """One driver with everything it has told so far."""

    def __init__(self, bench: DriverBench) -> None:
        self.bench = bench
        self.driver = bench.open()
        self.facts: list[SlotFact] = []
        self.driver.subscribe(self.facts.append)

    def launch(self, slot: str, generation: int = 1, **traits: bool) -> Launch:
        """Make a start of a slot."""
        spec = self.bench.spec(slot.partition(".")[0], **traits)
        nonce = token_hex(16)
        return Launch(slot=slot, generation=generation, nonce=nonce, spec=spec)

    async def told(self, kind: type[Fact], slot: str, generation: int = 1) -> Fact:
        """Wait until such a fact is told about this run."""

        def look() -> Fact | None:
            for fact in self.facts:
                about = (fact.slot, getattr(fact, "generation", None))
                if isinstance(fact, kind) and about == (slot, generation):
                    return fact
            return None

        found = await eventually(look, what=f"{kind.__name__} of {slot} ({self.facts})")
        assert found is not None
        return found

    def kinds(self, slot: str) -> list[str]:
        """Name what was told about a slot, in order."""
        return [type(fact).__name__ for fact in self.facts if fact.slot == slot]

    async def next_supervisor(self) -> None:
        """Close this driver and go on with that of the next supervisor."""
        await self.driver.close()
        self.facts.clear()
        self.driver = self.bench.open()
        self.driver.subscribe(self.facts.append)


def play(bench: DriverBench, scene: Callable[[Play], Awaitable[None]]) -> None:
    """Run one scene and clean up after it, whatever happens."""

    async def run() -> None:
        stage = Play(bench)
        try:
            await scene(stage)
        finally:
            await stage.driver.close()
            await bench.clean_up()

    asyncio.run(run())


def trace_of(launch: Launch, started: Started | Adopted | None) -> Trace:
    """Write down what the books would say about a run."""
    return Trace(
        slot=launch.slot,
        generation=launch.generation,
        nonce=launch.nonce,
        identity=None if started is None else started.identity,
        spec=launch.spec,
    )


class DriverContract:
    """Inherited by one test class for each driver."""

    @pytest.mark.accepts("M-27", "M-30", "B-31")
    def test_a_started_slot_is_told_and_seen(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            launch = stage.launch("api", 3)
            await stage.driver.start(launch)
            started = await stage.told(Started, "api", 3)
            assert started.identity.nonce == launch.nonce
            sighting = stage.driver.state("api")
            assert (sighting.slot, sighting.generation, sighting.connected) == ("api", 3, True)

        play(bench, scene)

    @pytest.mark.accepts("M-28")
    def test_an_unknown_name_is_an_error(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            with pytest.raises(KeyError):
                stage.driver.state("nobody")
            assert dict(stage.driver.states()) == {}

        play(bench, scene)

    @pytest.mark.accepts("M-27", "M-28")
    def test_an_added_worker_is_known_until_it_is_removed(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            stage.driver.add(bench.spec("api"))
            assert {slot: seen.connected for slot, seen in stage.driver.states().items()} == {
                "api": False
            }
            assert not stage.driver.state("api").connected
            stage.driver.remove("api")
            stage.driver.remove("api")
            with pytest.raises(KeyError):
                stage.driver.state("api")

        play(bench, scene)

    def test_one_that_cannot_start_keeps_no_other_from_starting(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            launches = [stage.launch("a"), stage.launch("b", hopeless=True), stage.launch("c")]
            await stage.driver.start_all(launches)
            failed = await stage.told(StartFailed, "b")
            assert failed.hopeless
            assert failed.fault.code.startswith("UPH_START_")
            assert failed.fault.message
            assert stage.kinds("a") == stage.kinds("c") == ["Started"]
            assert stage.kinds("b") == ["StartFailed"]

        play(bench, scene)

    def test_a_start_after_its_deadline_touches_nothing(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start_all([stage.launch("api")], deadline=0.0)
            failed = await stage.told(StartFailed, "api")
            assert not failed.hopeless
            assert stage.kinds("api") == ["StartFailed"]

        play(bench, scene)

    @pytest.mark.accepts("P5")
    def test_a_running_slot_is_never_started_twice(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api", 1))
            first = await stage.told(Started, "api", 1)
            await stage.driver.start(stage.launch("api", 2))
            again = await stage.told(Adopted, "api", 2)
            assert again.identity == first.identity
            await bench.end("api", 7)
            assert (await stage.told(Exited, "api", 2)).exit.code == 7

        play(bench, scene)

    @pytest.mark.accepts("P3", "B-13")
    def test_a_stopped_slot_exits_and_is_then_proved_gone(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api"))
            await stage.driver.stop("api", StopRule())
            gone = await stage.told(Gone, "api")
            assert gone.proof
            assert stage.kinds("api") == ["Started", "Exited", "Gone"]
            assert (await stage.told(Exited, "api")).exit.signal == 15
            assert not stage.driver.state("api").connected

        play(bench, scene)

    @pytest.mark.accepts("D-12")
    def test_stopping_what_does_not_run_is_gone_at_once(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.stop("api", StopRule())
            await stage.told(Gone, "api", 0)
            await stage.driver.kill("api")
            await eventually(lambda: stage.kinds("api") == ["Gone", "Gone"])

        play(bench, scene)

    @pytest.mark.accepts("D-12", "E-05")
    def test_ending_what_does_not_run_answers_for_the_run_asked_about(
        self, bench: DriverBench
    ) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.stop("stopped", StopRule(), generation=4)
            await stage.told(Gone, "stopped", 4)
            await stage.driver.kill("killed", generation=5)
            await stage.told(Gone, "killed", 5)
            assert stage.kinds("stopped") == stage.kinds("killed") == ["Gone"]

        play(bench, scene)

    @pytest.mark.accepts("D-12", "E-05")
    def test_a_slot_whose_later_starts_failed_is_gone_for_the_last_of_them(
        self, bench: DriverBench
    ) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api", 1))
            await bench.end("api", 1)
            await stage.told(Exited, "api", 1)
            await stage.driver.start(stage.launch("api", 2, hopeless=True))
            await stage.told(StartFailed, "api", 2)
            await stage.driver.stop("api", StopRule(), generation=2)
            await stage.told(Gone, "api", 2)
            await stage.driver.kill("api", generation=3)
            await stage.told(Gone, "api", 3)

        play(bench, scene)

    def test_a_slot_that_ended_by_itself_can_be_stopped(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api"))
            await bench.end("api", 0)
            await stage.told(Exited, "api")
            await stage.driver.stop("api", StopRule())
            await stage.told(Gone, "api")
            assert stage.kinds("api") == ["Started", "Exited", "Gone"]

        play(bench, scene)

    @pytest.mark.accepts("P4")
    def test_one_that_ignores_the_signal_ends_when_killed(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api", stubborn=True))
            await bench.settled("api")
            await stage.driver.stop("api", StopRule())
            assert stage.driver.state("api").connected
            await stage.driver.kill("api")
            assert (await stage.told(Exited, "api")).exit.signal == 9
            await stage.told(Gone, "api")
            assert stage.kinds("api") == ["Started", "Exited", "Gone"]

        play(bench, scene)

    def test_an_exit_is_told_with_code_and_generation(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api", 5))
            await stage.told(Started, "api", 5)
            await bench.end("api", 7)
            exited = await stage.told(Exited, "api", 5)
            assert (exited.exit.code, exited.exit.signal) == (7, None)
            assert not exited.left_overs
            assert not stage.driver.state("api").connected

        play(bench, scene)

    def test_a_slot_that_ended_can_be_started_again(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            await stage.driver.start(stage.launch("api", 1))
            first = await stage.told(Started, "api", 1)
            await bench.end("api", 1)
            await stage.told(Exited, "api", 1)
            await stage.driver.start(stage.launch("api", 2))
            second = await stage.told(Started, "api", 2)
            assert second.identity != first.identity
            assert stage.driver.state("api").generation == 2

        play(bench, scene)

    def test_a_signal_reaches_only_what_runs(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            assert not stage.driver.signal("api", "CONT")
            await stage.driver.start(stage.launch("api"))
            assert stage.driver.signal("api", "CONT")
            await bench.end("api", 0)
            await stage.told(Exited, "api")
            assert not stage.driver.signal("api", "CONT")

        play(bench, scene)

    @pytest.mark.accepts("P6", "B-83")
    def test_workers_outlive_the_driver_and_are_adopted(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            launch = stage.launch("api", 4)
            await stage.driver.start(launch)
            started = await stage.told(Started, "api", 4)
            await stage.next_supervisor()
            await stage.driver.adopt([trace_of(launch, started)])
            adopted = await stage.told(Adopted, "api", 4)
            assert adopted.identity == started.identity
            assert stage.driver.state("api").connected
            await stage.driver.stop("api", StopRule())
            await stage.told(Gone, "api", 4)
            assert stage.kinds("api") == ["Adopted", "Exited", "Gone"]

        play(bench, scene)

    @pytest.mark.accepts("P2")
    def test_an_intent_without_a_fact_is_enough_to_find_a_run(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            launch = stage.launch("api", 4)
            await stage.driver.start(launch)
            started = await stage.told(Started, "api", 4)
            await stage.next_supervisor()
            await stage.driver.adopt([trace_of(launch, None)])
            assert (await stage.told(Adopted, "api", 4)).identity == started.identity

        play(bench, scene)

    def test_what_ended_while_nobody_looked_is_gone(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            launch = stage.launch("api", 4)
            await stage.driver.start(launch)
            started = await stage.told(Started, "api", 4)
            await bench.end("api", 7)
            await stage.told(Exited, "api", 4)
            await stage.next_supervisor()
            never = stage.launch("never", 1)
            await stage.driver.adopt([trace_of(launch, started), trace_of(never, None)])
            gone = await stage.told(Gone, "api", 4)
            assert gone.exit is not None
            assert (gone.exit.code, gone.exit.signal) == (None, None)
            assert (await stage.told(Gone, "never", 1)).exit is None

        play(bench, scene)

    def test_only_those_who_listen_are_told(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            heard: list[SlotFact] = []
            stage.driver.subscribe(heard.append)
            await stage.driver.start(stage.launch("api"))
            assert heard == stage.facts
            stage.driver.unsubscribe(heard.append)
            stage.driver.unsubscribe(heard.append)
            await stage.driver.stop("api", StopRule())
            await stage.told(Gone, "api")
            assert [type(fact) for fact in heard] == [Started]

        play(bench, scene)

    def test_a_listener_that_fails_keeps_nobody_from_hearing(self, bench: DriverBench) -> None:
        async def scene(stage: Play) -> None:
            complaints: list[object] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
            heard: list[SlotFact] = []

            def fail(_: SlotFact) -> None:
                raise LookupError

            stage.driver.subscribe(fail)
            stage.driver.subscribe(heard.append)
            await stage.driver.start(stage.launch("api"))
            assert heard == stage.facts
            assert [type(complaint) for complaint in complaints] == [LookupError]

        play(bench, scene)
