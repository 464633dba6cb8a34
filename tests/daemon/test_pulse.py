"""The supervisor's own pulse."""

from __future__ import annotations

import asyncio
import json

import pytest

from uphold.core.events import Note, Recorded
from uphold.core.notices import Beat
from uphold.core.specs import WorkerSpec
from uphold.daemon.pulse import Pulse
from uphold.host.beats import read_file, understand
from uphold.host.looping import WatchedSelector
from uphold.testing.stages import Stage
from uphold.testing.waiting import eventually
from uphold.wire.notices import decode_beat

ABOUT = {"id": "u-1", "name": "orion", "pid": 4242, "health": "healthy"}


def beat(kind="supervisor.heartbeat", at=1_800_000_000.0):
    note = Note(type=kind, entity_type="supervisor", entity_id="supervisor")
    return Recorded(seq=17, id="x-17", at=at, event=note)


def on_stage(scene):
    async def play():
        stage = Stage(WorkerSpec(name="web", command=("web",)))
        await stage.start()
        try:
            await scene(stage)
        finally:
            await stage.supervisor.abandon()

    asyncio.run(play())


@pytest.mark.accepts("O-16", "B-80")
def test_each_heartbeat_is_written_to_a_file_that_can_be_watched_in_turn(tmp_path):
    async def scene(stage):
        pulse = Pulse(tmp_path, stage.supervisor, lambda: ABOUT, WatchedSelector())
        path = tmp_path / "heartbeat.json"
        pulse.hear(beat("order.accepted"))
        pulse.hear(beat())
        await eventually(path.exists)
        told = json.loads(path.read_text())
        assert (told["supervisor_id"], told["worker_id"], told["pid"]) == ("u-1", "orion", 4242)
        assert told["utc"] == "2027-01-15T08:00:00.000Z"
        assert told["longest_turn"] >= 0.0
        written = read_file(str(path))
        found = understand(str(path), written, lambda text: decode_beat(text, 1_800_000_001.0))
        assert found.beat == Beat(
            status="healthy", summary=told["summary"], seq=17, at=1_800_000_000.0
        )
        await pulse.close()

    on_stage(scene)


def test_what_is_being_written_is_finished_before_the_end(tmp_path):
    async def scene(stage):
        pulse = Pulse(tmp_path, stage.supervisor, lambda: ABOUT, None)
        pulse.hear(beat())
        await pulse.close()
        assert [path.name for path in tmp_path.iterdir()] == ["heartbeat.json"]

    on_stage(scene)


@pytest.mark.accepts("B-80")
def test_a_home_that_takes_no_file_does_not_matter(tmp_path):
    async def scene(stage):
        pulse = Pulse(tmp_path / "gone", stage.supervisor, lambda: ABOUT, None)
        pulse.hear(beat())
        await eventually(lambda: not pulse._tasks)
        pulse.begin()
        await pulse.close()

    on_stage(scene)


@pytest.mark.accepts("P26")
def test_a_blocked_turn_is_an_event_from_the_moment_on_that_we_are_up(tmp_path):
    async def scene(stage):
        selector = WatchedSelector()
        pulse = Pulse(tmp_path, stage.supervisor, lambda: ABOUT, selector)
        assert selector.blocked is None
        pulse.begin()
        news = stage.supervisor.subscribe()
        selector.blocked(1.23456)
        async for recorded in news:
            if recorded.event.type == "supervisor.loop_blocked":
                break
        assert recorded.event.payload == {"seconds": 1.235}
        assert recorded.event.severity == "warning"
        await pulse.close()
        assert selector.blocked is None

    on_stage(scene)
