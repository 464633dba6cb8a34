"""Health as people meet it: real programs, the real command line."""

from __future__ import annotations

import os
import signal
import socket
import sys

import pytest

from journeys.site import eventually

SERVER = """
import pathlib, socket, sys, time
while not pathlib.Path("go").exists():
    time.sleep(0.02)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = server.accept()
    try:
        client.recv(1000)
        client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    except OSError:
        pass
    client.close()
"""

BEATER = """
import json, os, pathlib, socket, time
speak = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
speak.connect(os.environ["NOTIFY_SOCKET"])
speak.send(b"READY=1\\nSTATUS=at work")
count = 0
while True:
    count += not pathlib.Path("stall").exists()
    speak.send(b"UPHOLD_BEAT=" + json.dumps({"status": "running", "progress": count}).encode())
    time.sleep(0.1)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def server(site, **more):
    (site.folder / "server.py").write_text(SERVER)
    port = free_port()
    return {
        "command": [sys.executable, "server.py", str(port)],
        "ready": {"tcp": port},
        **more,
    }, port


@pytest.mark.accepts("M-14")
def test_a_worker_is_starting_until_it_accepts_and_others_wait_for_that(site):
    web, _ = server(site)
    site.workers(web=web, app={"command": "sleep 1000", "depends_on": {"web": "healthy"}})
    started = site.run("start")
    assert started.code == 0, started
    row = site.until("web", state="starting", health="unknown")
    assert row["pid"]
    eventually(lambda: "refused" in site.worker("web")["why"], what="why it is not ready")
    assert site.worker("app")["state"] == "waiting"
    assert "'web' to be healthy" in site.worker("app")["why"]
    assert site.run("status").code == 151
    (site.folder / "go").touch()
    assert site.until("web", state="running")["health"] == "healthy"
    site.until("app", state="running")
    assert site.run("status").code == 0


@pytest.mark.accepts("P26", "D-20")
def test_a_stopped_process_becomes_unhealthy_is_aborted_and_comes_back(site):
    (site.folder / "go").touch()
    web, port = server(site)
    web["live"] = {
        "http": f"http://127.0.0.1:{port}/",
        "every": "200ms",
        "timeout": "2s",
        "failures": 2,
    }
    site.workers(web=web, other="exec sleep 1000")
    site.ok("start")
    first = site.until("web", state="running", health="healthy")
    other = site.worker("other")["pid"]
    os.kill(first["pid"], signal.SIGSTOP)
    again = eventually(lambda: site.worker("web")["generation"] == 2 and site.worker("web"))
    assert again["restarts"] == 1
    site.until("web", state="running", health="healthy")
    assert site.worker("other")["pid"] == other
    told = site.ok("events", "--json", "-n", "200").out
    assert "worker.unhealthy" in told
    assert "no answer within 2 s" in told
    assert "worker.aborting" in told


@pytest.mark.accepts("D-19", "D-20", "D-23", "D-33", "D-37", "E-22")
def test_a_counter_that_stands_still_is_degraded_with_its_reason(site):
    (site.folder / "beater.py").write_text(BEATER)
    site.workers(
        queue={
            "command": [sys.executable, "beater.py"],
            "ready": {"notify": True},
            "heartbeat": {"stale_after": "60s", "stall_after": "1s"},
        }
    )
    site.ok("start")
    row = site.until("queue", state="running", health="healthy")
    assert eventually(lambda: site.worker("queue")["last_heartbeat_at"])
    (site.folder / "stall").touch()
    row = site.until("queue", health="degraded")
    assert "progress stands at" in row["why"]
    assert row["last_error"]["code"] == "UPH_WORKER_DEGRADED"
    why = site.run("why", "queue").out
    assert "progress stands at" in why
    assert "at work" in why
    report = site.run("show", "queue", "--json").json["worker"]["health_report"]
    assert report["level"] == "degraded"
    assert report["admin_state"] == "enabled"
    assert len(report["summary"]) <= 50
    assert "progress stands at" in report["detail"]
    assert "uphold restart queue" in report["action"]
    assert site.run("status").code == 150
    assert site.status()["supervisor"]["health"] == "degraded"
    (site.folder / "stall").unlink()
    site.until("queue", health="healthy")
    assert site.run("status").code == 0
    assert site.worker("queue")["generation"] == 1


FORKING = """
import os, pathlib, socket, sys, time
child = os.fork()
if child == 0:
    while True:
        time.sleep(0.02)
        if pathlib.Path("end").exists():
            os._exit(7)
speak = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
speak.connect(os.environ["NOTIFY_SOCKET"])
speak.send(f"MAINPID={child}\\nREADY=1".encode())
pathlib.Path("child").write_text(str(child))
while not pathlib.Path("leave").exists():
    time.sleep(0.02)
"""


def test_a_worker_may_name_another_of_its_processes_as_the_main_one(site):
    (site.folder / "forking.py").write_text(FORKING)
    site.workers(
        web={"command": [sys.executable, "forking.py"], "ready": {"notify": True}, "restart": "no"}
    )
    site.ok("start")
    child = int(
        eventually(lambda: (site.folder / "child").exists() and (site.folder / "child").read_text())
    )
    site.until("web", state="running", pid=child)
    (site.folder / "leave").touch()
    eventually(lambda: len(site.processes()) == 3, what="supervisor, pump and the child are left")
    assert site.worker("web")["pid"] == child
    site.kill_supervisor()
    site.ok("start")
    row = site.until("web", state="running", pid=child)
    assert row["generation"] == 1
    (site.folder / "end").touch()
    row = site.until("web", state="exited")
    assert row["exit"]["code"] in (7, None), "where the kernel does not tell, nobody knows"


def test_readiness_by_a_descriptor_a_line_and_a_command(site):
    site.workers(
        fd={"command": ["sh", "-c", "echo >&5; exec sleep 1000"], "ready": {"fd": 5}},
        log={
            "command": ["sh", "-c", "echo listening on 80; exec sleep 1000"],
            "ready": {"log": "listening on [0-9]+"},
        },
        check={"command": "sleep 1000", "ready": {"exec": ["test", "-e", "go"]}},
    )
    site.run("start")
    site.until("fd", state="running", health="healthy")
    site.until("log", state="running", health="healthy")
    assert site.worker("check")["state"] == "starting"
    (site.folder / "go").touch()
    site.until("check", state="running", health="healthy")


def test_a_probe_that_hangs_never_has_two_processes(site):
    site.workers(
        web={
            "command": "sleep 1000",
            "live": {
                "exec": ["sleep", "1001"],
                "every": "100ms",
                "timeout": "300ms",
                "failures": 1000,
            },
        }
    )
    site.ok("start")
    missed = 0
    for _ in range(100):
        commands = [_command(pid) for pid in site.processes()]
        assert sum(b"1001" in command for command in commands) <= 1, commands
        missed = site.run("logs", "-n", "100").out.count("worker.missed")
        if missed >= 3:
            break
    assert missed >= 3
    assert site.worker("web")["generation"] == 1


def _command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_a_job_that_fails_keeps_its_dependents_waiting_and_says_why(site):
    site.workers(
        migrate={"command": ["sh", "-c", "test -e go || exit 4"], "restart": "no"},
        app={"command": "sleep 1000", "depends_on": {"migrate": "completed"}},
    )
    site.run("start")
    site.until("app", state="waiting")
    eventually(lambda: "exited with code 4" in site.worker("app")["why"])
    (site.folder / "go").touch()
    site.ok("start", "migrate")
    site.until("app", state="running")
