"""The life of a supervisor: every transition, the ones that are none, and how it ends."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

from uphold.core import orders
from uphold.core.orders import Refusal
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import SupervisorStatus
from uphold.core.times import utc_text
from uphold.errors import HostFailure
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.testing.stages import Stage
from uphold.wire.envelopes import envelope

WEB = WorkerSpec(name="web", command=("web",))


class Lines:
    """A log that keeps what is written into it."""

    def __init__(self):
        self.written = []

    def write(self, level, event, message, **_):
        self.written.append((level, event, message))

    def of(self, event):
        return [(level, message) for level, kind, message in self.written if kind == event]


def told(stage, prefix="supervisor."):
    """Name the events about the supervisor itself, heartbeats apart."""
    return [
        shown["type"]
        for batch in stage.journal.appended
        for recorded in batch.events
        if (shown := envelope(recorded))["type"].startswith(prefix)
        and shown["type"] != "supervisor.heartbeat"
    ]


def tasks():
    return {task.get_name() for task in asyncio.all_tasks()}


@pytest.mark.accepts("O-03")
def test_at_first_it_does_not_run_and_spawns_and_has_no_heartbeat():
    async def go():
        stage = Stage(WEB)
        assert not stage.supervisor.running
        assert stage.supervisor.snapshot().status is SupervisorStatus.SPAWNING
        assert "heartbeat" not in tasks()
        assert stage.journal.appended == []

    asyncio.run(go())


@pytest.mark.accepts("O-04", "O-06", "O-07", "O-09")
def test_a_start_makes_it_active_with_a_heartbeat_an_event_and_words_in_the_log():
    async def go():
        log = Lines()
        stage = Stage(WEB, log=log)
        news = stage.supervisor.subscribe()
        await stage.start()
        assert stage.supervisor.running
        assert stage.supervisor.snapshot().status is SupervisorStatus.ACTIVE
        assert "heartbeat" in tasks()
        heard = [envelope(each) for each in news.take_waiting(1000)]
        (started,) = [each for each in heard if each["type"] == "supervisor.started"]
        assert started["timestamp"] == utc_text(stage.clock.now().wall)
        assert started["timestamp"].endswith("Z")
        assert started["entity_type"] == "supervisor"
        assert log.of("supervisor.starting") == [("INFO", "supervisor stage-1 starts")]
        assert log.of("supervisor.active") == [("INFO", "supervisor stage-1 is active")]
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("O-08", "O-41")
def test_a_second_start_is_a_warning_and_nothing_else():
    async def go():
        log = Lines()
        stage = await Stage(WEB, log=log).start()
        before, batches = tasks(), len(stage.journal.appended)
        snapshot = stage.supervisor.snapshot()
        await stage.start()
        assert log.of("supervisor.start_ignored") == [
            ("WARNING", "supervisor stage-1 has been started already")
        ]
        assert tasks() == before
        assert len(stage.journal.appended) == batches
        assert stage.supervisor.snapshot() is snapshot
        await stage.supervisor.stop()
        await stage.start()
        assert not stage.supervisor.running, "one that has ended is not started again either"
        assert told(stage)[-1] == "supervisor.stopped"

    asyncio.run(go())


@pytest.mark.accepts("O-10", "O-11", "O-13")
def test_a_stop_ends_the_heartbeat_first_and_no_cancellation_surfaces():
    async def go():
        stage = await Stage(WEB).start()
        assert await stage.supervisor.stop() == 0
        assert not stage.supervisor.running
        assert stage.supervisor.snapshot().status is SupervisorStatus.TERMINATED
        assert "heartbeat" not in tasks()
        assert told(stage)[-1] == "supervisor.stopped"

    asyncio.run(go())


@pytest.mark.accepts("O-14", "O-41")
def test_a_stop_of_one_that_does_not_run_is_a_warning_and_nothing_else():
    async def go():
        log = Lines()
        stage = Stage(WEB, log=log)
        assert await stage.supervisor.stop() == 0
        assert stage.supervisor.snapshot().status is SupervisorStatus.SPAWNING
        assert stage.journal.appended == []
        await stage.start()
        await stage.supervisor.stop()
        batches = len(stage.journal.appended)
        assert await stage.supervisor.stop() == 0
        assert len(stage.journal.appended) == batches
        assert [level for level, _ in log.of("supervisor.stop_ignored")] == ["WARNING", "WARNING"]

    asyncio.run(go())


@pytest.mark.accepts("O-35", "O-41", "O-15", "O-18")
def test_every_transition_is_told_exactly_once():
    async def go():
        stage = await Stage(WEB).start()
        await stage.order(orders.PauseSupervisor())
        await stage.order(orders.PauseSupervisor())
        await stage.order(orders.ResumeSupervisor())
        await stage.order(orders.ResumeSupervisor())
        await stage.supervisor.stop()
        assert told(stage) == [
            "supervisor.started",
            "supervisor.paused",
            "supervisor.resumed",
            "supervisor.stopped",
        ]

    asyncio.run(go())


@pytest.mark.accepts("O-35")
def test_transitions_happen_although_nobody_can_be_told():
    async def go():
        stage = await Stage(WEB).start()
        stage.supervisor._board.bus.close()
        await stage.order(orders.PauseSupervisor())
        assert stage.supervisor.snapshot().status is SupervisorStatus.PAUSED
        await stage.order(orders.ResumeSupervisor())
        assert stage.supervisor.snapshot().status is SupervisorStatus.ACTIVE
        await stage.supervisor.stop()
        assert stage.supervisor.snapshot().status is SupervisorStatus.TERMINATED

    asyncio.run(go())


@pytest.mark.accepts("O-19", "O-41")
def test_after_the_end_no_pause_is_taken():
    async def go():
        stage = await Stage(WEB).start()
        await stage.supervisor.stop()
        batches = len(stage.journal.appended)
        answer = await stage.order(orders.PauseSupervisor())
        assert isinstance(answer, Refusal)
        assert stage.supervisor.snapshot().status is SupervisorStatus.TERMINATED
        assert len(stage.journal.appended) == batches

    asyncio.run(go())


@pytest.mark.accepts("E-33", "O-41")
def test_one_that_ends_by_a_mistake_has_failed_and_says_why():
    async def go():
        stage = await Stage(WEB).start()

        async def broken(*_):
            raise RuntimeError("a bug")

        stage.supervisor.desk._intake._take = broken
        made = stage.supervisor.desk.order(orders.PauseSupervisor(), author="a", origin="t")
        with pytest.raises(asyncio.CancelledError):
            await stage.supervisor.desk.submit(made)
        assert await stage.supervisor.wait() == 1
        assert stage.supervisor.snapshot().status is SupervisorStatus.FAILED
        assert told(stage) == ["supervisor.started", "supervisor.failed"]
        last = envelope(stage.journal.appended[-1].events[-1])
        assert last["payload"] == {
            "code": "UPH_SUPERVISOR_BROKEN",
            "error": "RuntimeError('a bug')",
        }
        assert last["severity"] == "error"

    asyncio.run(go())


@pytest.mark.accepts("E-33", "O-41")
def test_a_start_that_comes_to_nothing_is_on_record_and_the_error_reaches_who_called():
    async def go():
        log = Lines()
        stage = Stage(WEB, log=log)

        async def adopt(_traces):
            raise HostFailure("there is no /proc here.")

        stage.supervisor._adopt = adopt
        with pytest.raises(HostFailure):
            await stage.start()
        assert not stage.supervisor.running
        assert stage.supervisor.snapshot().status is SupervisorStatus.FAILED
        assert told(stage) == ["supervisor.failed"]
        assert log.of("supervisor.failed") == [
            ("ERROR", "supervisor stage-1 could not be started: there is no /proc here.")
        ]
        await stage.supervisor.abandon()

    asyncio.run(go())


@pytest.mark.accepts("E-33")
def test_what_goes_wrong_around_it_is_on_record_too():
    async def go():
        stage = await Stage(WEB).start()
        await stage.supervisor.abandon(OSError("the socket is taken"))
        assert told(stage)[-1] == "supervisor.failed"
        assert stage.supervisor.snapshot().last_error.message == "OSError('the socket is taken')"
        assert list(stage.driver.world.alive) == ["web"], "workers notice nothing"

    asyncio.run(go())


@pytest.mark.accepts("E-33")
def test_so_is_what_goes_wrong_in_the_moment_it_has_started():
    async def go():
        stage = Stage(WEB)
        await stage.supervisor.start()  # and its loops have not had one step yet
        await stage.supervisor.abandon(OSError("the socket is taken"))
        assert told(stage) == ["supervisor.started", "supervisor.failed"]
        assert not stage.supervisor.running
        assert stage.supervisor.snapshot().status is SupervisorStatus.FAILED
        assert stage.config.listeners == 0

    asyncio.run(go())


@pytest.mark.accepts("O-05", "O-12", "O-32", "O-42")
def test_every_transition_is_in_a_real_file_for_another_connection_at_once(tmp_path):
    path = tmp_path / "journal.db"

    def status():
        with closing(sqlite3.connect(path)) as other:
            return other.execute("SELECT status, last_heartbeat FROM supervisors_t").fetchone()

    async def go():
        stage = Stage(WEB)
        owner = Owner(name="stage", hostname="here", pid=1, id="stage-1")
        wall = stage.clock.now().wall
        stage.journal, _ = open_journal(path, boot_id="boot-1", owner=owner, now=wall)
        stage.supervisor = stage._supervisor()
        assert status() == ("spawning", None)
        await stage.supervisor.start()
        assert status()[0] == "active"
        await settled(stage, lambda: status()[1])
        for wish, after in (
            (orders.PauseSupervisor(), "paused"),
            (orders.ResumeSupervisor(), "active"),
        ):
            made = stage.supervisor.desk.order(wish, author="ann", origin="test")
            await stage.supervisor.desk.submit(made)
            assert status()[0] == after
        await stage.supervisor.stop()
        assert status()[0] == "terminated"
        await stage.journal.close()

    asyncio.run(go())


@pytest.mark.accepts("E-33", "O-42", "O-17")
def test_the_row_of_one_that_failed_tells_why_and_a_paused_one_stays_paused(tmp_path):
    path = tmp_path / "journal.db"

    def row():
        with closing(sqlite3.connect(path)) as other:
            return other.execute("SELECT status, health_metrics FROM supervisors_t").fetchone()

    def opened(stage):
        owner = Owner(name="stage", hostname="here", pid=1, id="stage-1")
        wall = stage.clock.now().wall
        stage.journal, _ = open_journal(path, boot_id="boot-1", owner=owner, now=wall)
        stage.supervisor = stage._supervisor()

    async def go():
        stage = Stage(WEB)
        opened(stage)
        await stage.supervisor.start()
        made = stage.supervisor.desk.order(orders.PauseSupervisor(), author="a", origin="t")
        await stage.supervisor.desk.submit(made)
        await stage.supervisor.abandon(RuntimeError("a bug"))
        await stage.journal.close()
        status, metrics = row()
        assert status == "failed"
        assert json.loads(metrics)["error"] == "RuntimeError('a bug')"
        stage.driver = stage.driver.successor()
        opened(stage)
        await stage.supervisor.start()
        assert row()[0] == "paused", "the next one goes on as it was"
        await stage.supervisor.abandon()
        await stage.journal.close()

    asyncio.run(go())


async def settled(stage, done):
    """Let the journal's thread finish; it does not live on the stage's clock."""
    for _ in range(3000):
        await stage.clock.settle()
        if done():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")
