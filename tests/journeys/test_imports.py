"""Files of other supervisors, imported and run."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import struct
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from journeys.site import eventually

pytestmark = pytest.mark.slow

SUPERVISORD = """\
[supervisord]
identifier=imported
environment=REGION="eu"

[program:queue]
command=sh -c 'echo queue at $REGION; exec sleep 1000'
priority=1

[program:web]
command=sleep 100%(process_num)d   ; differs by its number
process_name=%(program_name)s_%(process_num)02d
numprocs=2
directory=%(here)s
priority=2
autorestart=true
stopwaitsecs=5
environment=PORT="80%(process_num)02d"

[program:mails]
command=sleep 1000
process_name=%(program_name)s_%(process_num)02d
numprocs=2
redirect_stderr=true

[program:once]
command=sh -c 'echo done once'
startsecs=0
autorestart=unexpected

[program:by-hand]
command=sleep 1000
autostart=false

[group:shop]
programs=web,mails

[unix_http_server]
file=/run/supervisor.sock
"""

PROCESS_COMPOSE = """\
version: "0.5"
environment:
  - "REGION=eu"
vars: { GREETING: hello }
processes:
  prepare:
    command: sleep 0.2 && echo "{{.GREETING}} $${REGION}" && touch prepared
  db:
    command: test -e prepared && touch ready && exec sleep 1000
    depends_on:
      prepare: { condition: process_completed_successfully }
    readiness_probe:
      exec: { command: "test -e ready" }
      period_seconds: 1
      timeout_seconds: 30
    availability: { restart: always, backoff_seconds: 1 }
  api:
    entrypoint: ["sleep", "100{{.PC_REPLICA_NUM}}"]
    replicas: 2
    depends_on:
      db: { condition: process_healthy }
    environment: ["LEVEL=debug"]
    shutdown: { signal: 2, timeout_seconds: 5 }
  later:
    command: sleep 1000
    disabled: true
"""


def imported(site, name: str, text: str):
    (site.folder / name).write_text(text)
    answer = site.ok("init", "--from", name)
    site.ok("check")
    return answer


def until_it_runs(site, slot: str, command: str):
    """Wait until a slot runs this very program; a shell may stand before it for a moment."""
    row = site.until(slot, state="running")
    path = Path(f"/proc/{row['pid']}/cmdline")
    eventually(lambda: path.read_text().replace("\0", " ").strip() == command, what=command)
    return row


def environment_of(row) -> dict[str, str]:
    pairs = Path(f"/proc/{row['pid']}/environ").read_text().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def test_a_supervisord_conf_is_imported_and_runs(site):
    told = imported(site, "supervisord.conf", SUPERVISORD)
    assert "lost" in told.err
    site.ok("start")
    for slot in ("queue", "web_00", "web_01", "mails", "mails.2"):
        site.until(slot, state="running")
    assert site.until("once", state="exited")["exit"]["code"] == 0
    assert site.worker("by-hand")["state"] == "stopped"
    web = until_it_runs(site, "web_01", "sleep 1001")
    assert environment_of(web)["PORT"] == "8001"
    assert environment_of(web)["REGION"] == "eu"
    assert web["team"] == "shop"
    eventually(lambda: "queue at eu" in site.log("queue"))
    assert site.status()["supervisor"]["name"] == "imported"
    site.ok("stop")
    assert site.processes() == []


def test_a_process_compose_yaml_is_imported_and_runs(site):
    imported(site, "process-compose.yaml", PROCESS_COMPOSE)
    site.ok("start")
    assert site.until("prepare", state="exited")["exit"]["code"] == 0
    site.until("db", state="running", health="healthy")
    for slot, number in (("api-0", 0), ("api-1", 1)):
        row = until_it_runs(site, slot, f"sleep 100{number}")
        assert environment_of(row)["LEVEL"] == "debug"
    assert site.worker("later")["state"] == "stopped"
    eventually(lambda: "hello eu" in site.log("prepare"))
    site.ok("stop")
    assert site.processes() == []


def test_a_procfile_is_imported_and_runs(site):
    (site.folder / "Procfile").write_text(
        "web: echo listening on $PORT; exec sleep 1000\nworker: sleep 2000\n"
    )
    site.ok("init", "--from", "Procfile")
    site.ok("start")
    until_it_runs(site, "web", "sleep 1000")
    until_it_runs(site, "worker", "sleep 2000")
    eventually(lambda: "listening on 5000" in site.log("web"))


def test_a_systemd_unit_is_imported_and_runs(site):
    (site.folder / "shop.service").write_text(
        "[Unit]\nDescription=The shop\n[Service]\n"
        f"WorkingDirectory={site.folder}\n"
        "Environment=NAME=world\nExecStartPre=/bin/sh -c 'echo before'\n"
        "ExecStart=/bin/sh -c 'echo hello $$NAME; exec sleep 1000'\n"
        "Restart=always\nTimeoutStopSec=5\n"
    )
    site.ok("init", "--from", "shop.service")
    site.ok("start")
    until_it_runs(site, "shop", "sleep 1000")
    eventually(lambda: site.log("shop").splitlines()[:2] == ["before", "hello world"])


def test_the_exported_unit_starts_a_supervisor_that_says_itself_when_it_is_ready(site):
    site.workers(a="exec sleep 1000")
    lines = site.ok("export", "systemd").out.splitlines()
    unit = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    assert (unit["Type"], unit["NotifyAccess"]) == ("notify", "main")
    name = f"uphold-test-{uuid4()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        manager.settimeout(60)
        manager.bind(f"\0{name}")
        watchdog = str(int(unit["WatchdogSec"]) * 1_000_000)
        started = subprocess.Popen(
            shlex.split(unit["ExecStart"]),
            env={**os.environ, "NOTIFY_SOCKET": f"@{name}", "WATCHDOG_USEC": watchdog},
            stdin=subprocess.DEVNULL,
        )
        try:
            said, senders = set(), set()
            while not {"READY=1", "WATCHDOG=1"} <= said:
                message, extra, _, _ = manager.recvmsg(4096, 1024)
                said |= set(message.decode().splitlines())
                senders.add(struct.unpack("3i", extra[0][2])[0])
            assert senders == {started.pid}
            site.until("a", state="running")
            started.send_signal(signal.SIGTERM)
            assert started.wait(60) == 0
        finally:
            started.kill()
            started.wait()
    assert site.processes() == []
