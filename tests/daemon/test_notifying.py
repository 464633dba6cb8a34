"""uphold as a service: what its service manager is told, and when."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile

import pytest

from uphold.core import orders
from uphold.core.specs import WorkerSpec
from uphold.daemon.notifying import Service, ServiceManager, describe
from uphold.testing.stages import Stage


class Manager:
    """Listens as systemd does."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)

    def heard(self):
        found = []
        while True:
            try:
                found.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return found


@pytest.fixture
def manager():
    with tempfile.TemporaryDirectory(prefix="uph", dir="/tmp") as folder:
        manager = Manager(f"{folder}/n")
        manager.environ = {"NOTIFY_SOCKET": f"{folder}/n"}
        yield manager
        manager.socket.close()


def on_stage(scene, *specs):
    async def play():
        stage = Stage(*(specs or (WorkerSpec(name="web", command=("web",)),)))
        await stage.start()
        await stage.clock.advance(1)
        try:
            await scene(stage)
        finally:
            await stage.supervisor.abandon()

    asyncio.run(play())


def test_it_is_told_when_we_are_up_and_what_runs(manager):
    async def scene(stage):
        service = Service(stage.supervisor, ServiceManager(manager.environ, os.getpid()))
        assert manager.heard() == []
        service.begin()
        assert manager.heard() == ["READY=1\nSTATUS=1 of 1 workers running."]
        service.close()

    on_stage(scene)


def test_an_abstract_address_works_too():
    name = f"uphold-test-{os.getpid()}"
    manager = Manager(f"\0{name}")
    ServiceManager({"NOTIFY_SOCKET": f"@{name}"}, os.getpid()).say("READY=1")
    assert manager.heard() == ["READY=1"]
    manager.socket.close()


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1234", "/nowhere/at/all"])
def test_nobody_to_hear_us_is_no_reason_to_stop(address):
    manager = ServiceManager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "5000000"}, os.getpid())
    manager.say("READY=1")
    assert (manager.watchdog is not None) is address.startswith("/")


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [
        ("30000000", "", 30.0),
        ("30000000", os.getpid, 30.0),
        ("30000000", os.getppid, 30.0),
        ("30000000", "1234567", None),
        ("", "", None),
        ("0", "", None),
        ("-5", "", None),
        ("soon", "", None),
        ("9" * 40, "", None),
    ],
)
def test_a_watchdog_must_mean_us_or_whoever_runs_us(manager, usec, pid, seconds):
    pid = str(pid()) if callable(pid) else pid  # not earlier: each process of the tests has its own
    environ = {**manager.environ, "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}
    assert ServiceManager(environ, os.getpid()).watchdog == seconds


@pytest.mark.accepts("P26")
def test_alive_is_only_said_after_a_pass_has_been_completed_since_the_last_time(manager):
    async def scene(stage):
        environ = {**manager.environ, "WATCHDOG_USEC": str(3600 * 10**6)}
        service = Service(stage.supervisor, ServiceManager(environ, os.getpid()))
        service.begin()
        assert manager.heard()[-1] == "WATCHDOG=1"
        passes = stage.supervisor.passes
        service._tick()
        assert manager.heard() == [], "the pass that was asked for has not been made"
        await stage.clock.advance(1)
        assert stage.supervisor.passes > passes
        service._tick()
        assert manager.heard() == ["WATCHDOG=1"]
        service.close()

    on_stage(scene)


def test_a_pass_that_fails_keeps_it_silent(manager):
    async def scene(stage):
        environ = {**manager.environ, "WATCHDOG_USEC": str(3600 * 10**6)}
        service = Service(stage.supervisor, ServiceManager(environ, os.getpid()))
        service.begin()
        manager.heard()

        async def broken(*_):
            raise RuntimeError("a bug")

        stage.supervisor._reconciler.turn = broken
        service._tick()
        await stage.clock.advance(5)
        manager.heard()
        service._tick()
        assert manager.heard() == []
        service.close()

    on_stage(scene)


def test_reloading_is_said_around_it_and_not_before_we_are_ready(manager):
    async def scene(stage):
        service = Service(stage.supervisor, ServiceManager(manager.environ, os.getpid()))
        with service.reloading(1.5):
            pass
        assert manager.heard() == []
        service.begin()
        manager.heard()
        with service.reloading(1.5):
            assert manager.heard() == ["RELOADING=1\nMONOTONIC_USEC=1500000"]
        assert manager.heard() == ["READY=1"]
        service.close()

    on_stage(scene)


def test_the_end_is_said_when_it_begins_and_changes_with_the_next_heartbeat(manager):
    async def scene(stage):
        service = Service(stage.supervisor, ServiceManager(manager.environ, os.getpid()))
        service.begin()
        manager.heard()
        news = stage.supervisor.subscribe()

        def tell():
            for recorded in news.take_waiting(1000):
                service.hear(recorded)
            return manager.heard()

        await stage.clock.advance(31)
        assert tell() == [], "nothing has changed"
        await stage.order(orders.StopWorkers(names=("web",)))
        await stage.clock.advance(60)
        assert tell() == ["STATUS=0 of 1 workers running."]
        await stage.order(orders.ShutDown())
        await stage.clock.settle()
        assert tell() == ["STOPPING=1\nSTATUS=Stopping."]
        service.close()

    on_stage(scene)


def test_what_is_not_well_is_part_of_the_description():
    async def scene(stage):
        stage.driver.end("web", 1)
        await stage.clock.settle()
        assert describe(stage.supervisor.snapshot()) == "0 of 1 workers running; degraded."

    on_stage(scene, WorkerSpec(name="web", command=("web",), max_restarts=0))
