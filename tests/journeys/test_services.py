"""Services on both sides: uphold below a service manager, and workers that speak to uphold."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from journeys.site import eventually, is_gone

pytestmark = pytest.mark.slow


class Manager:
    """Starts `uphold run` as systemd does, and listens."""

    def __init__(self, site, folder, *words):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{folder}/n")
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.setblocking(False)
        self.said = []
        environ = {**os.environ, "NOTIFY_SOCKET": f"{folder}/n", "WATCHDOG_USEC": "400000"}
        self.main = subprocess.Popen(
            [sys.executable, "-m", "uphold", "-c", str(site.config), "run", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environ,
        )

    def heard(self, line, times=1):
        """Tell whether this line has come so often, and from whom."""
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(4096, 64)
            except BlockingIOError:
                break
            pid, _, _ = struct.unpack("3i", ancillary[0][2])
            self.said += [(each, pid) for each in data.decode().split("\n")]
        found = [pid for each, pid in self.said if each == line]
        return found if len(found) >= times else None


@pytest.fixture
def short():
    with tempfile.TemporaryDirectory(prefix="uph", dir="/tmp") as folder:
        yield folder


@pytest.mark.accepts("P26")
@pytest.mark.parametrize("words", [("--quiet",), ()], ids=["quiet", "with a view"])
def test_a_service_manager_is_told_of_readiness_life_reload_and_end(site, short, words):
    site.workers(web="exec sleep 1000")
    manager = Manager(site, short, *words)
    try:
        speaker = eventually(lambda: manager.heard("READY=1"))[0]
        assert site.worker("web")["state"] == "running", "ready means that it can be asked"
        assert speaker == site.pid
        assert (speaker == manager.main.pid) is (words == ("--quiet",))
        eventually(lambda: manager.heard("WATCHDOG=1", 3))
        manager.main.send_signal(signal.SIGHUP)
        eventually(lambda: manager.heard("RELOADING=1") and manager.heard("READY=1", 2))
        manager.main.send_signal(signal.SIGTERM)
        eventually(lambda: manager.heard("STOPPING=1"))
        assert manager.main.wait(60) == 0
    finally:
        manager.main.kill()
        manager.main.wait()
        manager.socket.close()


def test_a_supervisor_in_the_background_does_not_speak_for_whoever_started_it(site, short):
    site.workers(web="exec sleep 1000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{short}/n")
        manager.setblocking(False)
        assert site.run("start", env={"NOTIFY_SOCKET": f"{short}/n"}).code == 0
        site.ok("stop")
        with pytest.raises(BlockingIOError):
            manager.recv(4096)


@pytest.mark.accepts("S05")
def test_a_worker_keeps_its_socket_over_the_death_of_its_supervisor(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    pid = site.worker("web")["pid"]

    def socket_of(pid):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        found = (each for each in variables if each.startswith(b"NOTIFY_SOCKET="))
        return next(found, b"")[14:].decode()

    path = eventually(lambda: socket_of(pid))
    assert os.readlink(site.home / "notify.sock") == path
    assert answers(path)
    site.kill_supervisor()
    eventually(lambda: not answers(path), what="its threads gone, too")
    site.ok("start")
    assert site.worker("web")["pid"] == pid
    assert answers(path), "the next supervisor listens where the worker speaks"
    site.ok("stop")
    assert is_gone(pid)
    assert not os.path.exists(path)


def answers(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


@pytest.mark.accepts("O-16")
def test_the_supervisor_leaves_its_own_heartbeat_in_a_file(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    path = site.home / "heartbeat.json"
    eventually(path.exists)
    told = json.loads(path.read_text())
    assert told["pid"] == site.pid
    assert told["worker_id"] == "site"


SPEAKER = """
import os, socket, time
while not os.path.exists("go"):
    time.sleep(0.05)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
    speaker.sendto(b"READY=1\\nSTATUS=serving", os.environ["NOTIFY_SOCKET"])
time.sleep(1000)
"""


@pytest.mark.accepts("S05")
def test_only_the_worker_itself_can_say_that_it_is_ready(site):
    command = [sys.executable, "-ISc", SPEAKER]
    site.workers(web={"command": command, "ready": {"notify": True}}, other="exec sleep 1000")
    site.ok("start", "--no-wait")
    eventually((site.home / "notify.sock").exists)
    eventually(lambda: [row for row in site.status()["workers"] if row["slot"] == "web"])
    site.until("web", state="starting")
    path = os.readlink(site.home / "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for _ in range(5):
            stranger.sendto(b"READY=1\nSTATUS=believe me", path)
    assert site.worker("web")["state"] == "starting"
    (site.folder / "go").touch()
    row = site.until("web", state="running", health="healthy")
    assert "believe me" not in row["why"]
