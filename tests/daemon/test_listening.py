"""The supervisor's ear: tied to driver and configuration, and no reason not to start."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile

import pytest

from uphold.config.revisions import Revision
from uphold.core.specs import Settings, SupervisorSpec, WorkerSpec
from uphold.daemon.listening import Ear
from uphold.drivers.process import ProcessDriver
from uphold.host import notifying
from uphold.host.clock import MachineClock
from uphold.host.homes import Home


class Config:
    def __init__(self, *workers):
        self.declare(*workers)
        self.listeners = []

    def declare(self, *workers):
        settings = Settings(supervisor=SupervisorSpec(name="x"), workers=workers)
        self.current = Revision(settings=settings, version=1)

    def subscribe(self, listener):
        self.listeners.append(listener)


class Lines:
    def __init__(self):
        self.lines = []

    def write(self, *line):
        self.lines.append(line)


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    home.path.mkdir()
    with tempfile.TemporaryDirectory(prefix="uph", dir="/tmp") as folder:
        monkeypatch.setattr(notifying, "_folders", lambda _: iter([f"{folder}/uphold"]))
        yield home


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_only_a_configuration_with_another_user_opens_the_socket_to_others(home):
    async def scene():
        ear = Ear(home, {}, Lines())
        config = Config(WorkerSpec(name="web"))
        ear.attend(ProcessDriver(home, MachineClock(), notify=ear.path), config)
        assert mode(ear.path) == 0o600
        config.declare(WorkerSpec(name="web", user="nobody"))
        for listener in config.listeners:
            listener(config.current)
        assert mode(ear.path) == 0o666
        ear.begin(lambda *_: None)
        assert ear.restore() is False
        os.unlink(ear.path)
        assert ear.restore() is True
        assert dict(ear.refused) == {}
        ear.close()

    asyncio.run(scene())


def test_without_a_socket_everything_else_goes_on(home, monkeypatch):
    monkeypatch.setattr(notifying, "_folders", lambda _: iter(()))
    log = Lines()
    ear = Ear(home, {}, log)
    assert ear.path == ""
    assert log.lines[0][:2] == ("WARNING", "supervisor.notify_unavailable")
    ear.attend(ProcessDriver(home, MachineClock()), Config())
    ear.begin(lambda *_: None)
    assert ear.restore() is False
    assert dict(ear.refused) == {}
    ear.close()
