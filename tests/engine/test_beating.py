"""The supervisor's own heartbeat, on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from uphold.core.specs import WorkerSpec
from uphold.testing.stages import Stage
from uphold.wire.envelopes import envelope

WEB = WorkerSpec(name="web", command=("web",))
DB = WorkerSpec(name="db", command=("db",), enabled=False)


class Lines:
    """A log that keeps the words about heartbeats."""

    def __init__(self):
        self.written = []

    def write(self, level, event, message, **_):
        if event == "supervisor.heartbeat_failed":
            self.written.append((level, message))


def beats(stage):
    return [
        shown
        for batch in stage.journal.appended
        for recorded in batch.events
        if (shown := envelope(recorded))["type"] == "supervisor.heartbeat"
    ]


@pytest.mark.accepts("O-26", "O-40")
def test_a_heartbeat_tells_how_often_it_comes_and_how_the_workers_are():
    async def go():
        stage = await Stage(WEB, DB).start()
        await stage.clock.advance(31)
        first, second = beats(stage)
        assert second["payload"]["heartbeat_every"] == 30.0
        assert second["payload"]["workers"] == {"running": 1}
        assert second["payload"]["loop_lag"] == 0.0
        assert first["timestamp"] < second["timestamp"]
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("O-29")
def test_a_journal_that_takes_none_is_logged_and_five_seconds_later_the_next_one_comes():
    async def go():
        log = Lines()
        stage = await Stage(WEB, log=log).start()
        stage.journal.unavailable = True
        await stage.clock.advance(31)
        ((level, message),) = log.written
        assert level == "WARNING"
        assert message.startswith("supervisor stage-1 could not write its heartbeat: ")
        stage.journal.unavailable = False
        await stage.clock.advance(5.1)
        assert len(log.written) == 1
        assert len(beats(stage)) == 3, "the late one and the next one"
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("O-29", "C-132", "B-80")
def test_a_mistake_in_telling_ends_neither_the_heartbeat_nor_the_supervisor():
    async def go():
        log = Lines()
        stage = await Stage(WEB, log=log).start()
        heart = stage.supervisor._heart
        tell = heart._tell

        async def broken(_event):
            raise RuntimeError("a bug")

        heart._tell = broken
        await stage.clock.advance(31)
        assert [message for _, message in log.written] == [
            "supervisor stage-1 could not write its heartbeat: RuntimeError('a bug')"
        ]
        heart._tell = tell
        await stage.clock.advance(5.1)
        assert len(beats(stage)) == 2
        assert stage.supervisor.running
        await stage.supervisor.abandon()

    asyncio.run(go())
