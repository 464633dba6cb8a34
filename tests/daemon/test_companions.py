from __future__ import annotations

import asyncio
import json
import socket

import pytest

from uphold.core.events import Adopted
from uphold.core.specs import Logs, Settings, StoreSpec, SupervisorSpec, WorkerSpec
from uphold.core.statuses import Identity
from uphold.daemon import companions
from uphold.daemon.companions import PumpLink, companions_of, pump_spec, recorder_spec
from uphold.host.homes import Home
from uphold.testing.waiting import until


@pytest.fixture
def home(tmp_path):
    (tmp_path / "run").mkdir()
    return Home(tmp_path)


def listening(home):
    ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ear.bind(str(home.run / "pump.sock"))
    ear.settimeout(5)
    return ear


def test_the_pump_is_never_given_up_and_is_replaced_when_its_version_differs(home):
    spec = pump_spec(home)
    assert spec.max_restarts is None
    assert spec.logs.mode == "file"
    assert any(name == "UPHOLD_VERSION" for name, _ in spec.environment)


@pytest.mark.accepts("S02")
def test_the_recorder_is_never_given_up_and_its_address_is_not_in_its_command_line(home):
    spec = recorder_spec(home, StoreSpec(url="mysql://u:secret-word@db/shop"))
    assert spec.max_restarts is None
    assert spec.backoff.max == 60.0
    assert spec.logs.mode == "file"
    assert "secret-word" not in " ".join(spec.command)
    assert dict(spec.environment)["UPHOLD_STORE_URL"] == "mysql://u:secret-word@db/shop"


def test_a_recorder_is_there_only_for_a_store(home):
    settings = Settings(supervisor=SupervisorSpec(name="x"), workers=())
    assert [spec.name for spec in companions_of(home, settings)] == ["@pump"]
    with_store = Settings(
        supervisor=settings.supervisor, workers=(), store=StoreSpec(url="sqlite:////x.db")
    )
    assert [spec.name for spec in companions_of(home, with_store)] == ["@pump", "@recorder"]


def test_fifos_of_one_moment_are_told_in_one_message(home):
    async def go():
        link = PumpLink(home)
        for name in ("a", "b"):
            link.add(name)
        link.close()

    with listening(home) as ear:
        asyncio.run(go())
        assert ear.recv(65536) == b"add a.out\nadd a.err\nadd b.out\nadd b.err"


def test_nobody_listening_is_no_trouble(home):
    link = PumpLink(home)
    who = Identity(pid=7, start_ticks=1, boot_id="b", inode=1, nonce="n")
    link.hear(Adopted(slot="@pump", generation=1, identity=who))
    link.close()


def test_settings_are_written_once_and_only_what_differs(home):
    link = PumpLink(home)
    specs = [
        WorkerSpec(name="plain", command=("x",)),
        WorkerSpec(name="big", command=("x",), logs=Logs(max_size=5, keep=1)),
    ]
    link.settle(specs)
    written = json.loads((home.run / "logs.json").read_text())
    assert written["default"]["max_size"] == 10_000_000
    assert written["slots"] == {"big": {"max_size": 5, "keep": 1}}
    stamp = (home.run / "logs.json").stat().st_mtime_ns
    link.settle(specs)
    assert (home.run / "logs.json").stat().st_mtime_ns == stamp
    link.close()


@pytest.mark.accepts("P14", "T10")
def test_settings_that_could_not_be_written_are_written_when_there_is_room(home, monkeypatch):
    monkeypatch.setattr(companions, "_RETRY", 0.01)
    settings = home.run / "logs.json"
    settings.mkdir()  # nothing can be written there
    link = PumpLink(home)
    link.settle([WorkerSpec(name="big", command=("x",), logs=Logs(keep=1))])
    link.settle([WorkerSpec(name="big", command=("x",), logs=Logs(keep=2))])
    settings.rmdir()
    until(settings.is_file, 30, "settings that are written")
    assert json.loads(settings.read_text())["slots"] == {"big": {"keep": 2}}
    link.close()


def test_a_link_that_is_closed_writes_no_more(home, monkeypatch):
    monkeypatch.setattr(companions, "_RETRY", 0.01)
    settings = home.run / "logs.json"
    settings.mkdir()
    link = PumpLink(home)
    link.settle([])
    link.close()
    assert link._retry is None
