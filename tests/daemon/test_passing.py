"""What takes part in a pass, and when: a real pass in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from journeys.site import Site

PROGRAM = """
import asyncio, fcntl, json, os, signal, sqlite3, sys
from uphold.core import orders
from uphold.daemon.passages import Stages
from uphold.daemon.passing import pass_once
from uphold.daemon.equipping import Launch
from uphold.host.homes import Home
from uphold.host.processes.birth import birth

home = Home(sys.argv[1])
notes = []

def states(passage):
    return {slot: str(each.state)
            for slot, each in passage.supervisor.snapshot().observed.slots.items()}

async def order(passage, wish):
    desk = passage.supervisor.desk
    job = await desk.submit(desk.order(wish, author="ann", origin="flag"))
    return [each.ok for each in await job.done]

def owned():
    with open(home.lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

STAGES

launch = Launch(home=home, config=sys.argv[2], ready_fd=None, birthright=birth(),
                environ=dict(os.environ))
report = asyncio.run(pass_once(launch, stages=stages, echo=False))
print(json.dumps({"notes": notes, **report.document()}))
"""


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


def passed(site, stages):
    """Do a pass with these stages, and give its report with the notes they made."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("STAGES", stages), site.home, site.config],
        cwd=site.folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.accepts("C-001", "C-008", "B-62")
def test_orders_come_before_starts_then_the_database_then_the_share(site):
    site.workers(web="exec sleep 600")
    report = passed(
        site,
        """
async def flags(passage):
    notes.append(["flags", states(passage), list(passage.names)])
    return ["restart_watcher failed"]

async def copy(launch, settings):
    rows = sqlite3.connect(home.journal).execute("select type from events_t").fetchall()
    notes.append(["copy", ("supervisor.stopped",) in rows, owned()])
    return []

async def heartbeat(launch, settings, report):
    notes.append(["heartbeat", report.success, [each.slot for each in report.actions], owned()])
    return ["the share does not answer"]

stages = Stages(flags=flags, copy=copy, heartbeat=heartbeat)
""",
    )
    assert report["notes"] == [
        ["flags", {}, ["web"]],
        ["copy", True, True],
        ["heartbeat", False, ["web"], True],
    ]
    assert report["problems"] == ["restart_watcher failed", "the share does not answer"]
    assert report["success"] is False
    assert site.worker("web")["state"] == "running"


@pytest.mark.accepts("E-43")
def test_a_part_that_breaks_ends_itself_alone_and_is_told_of(site):
    site.workers(web="exec sleep 600")
    report = passed(
        site,
        """
async def broken(*_):
    raise OSError("nobody is there")

stages = Stages(flags=broken, copy=broken, heartbeat=broken)
""",
    )
    assert report["problems"] == [
        "the flags failed: nobody is there",
        "the copy to the database failed: nobody is there",
        "the heartbeat on the share failed: nobody is there",
    ]
    assert [each["healthy"] for each in report["workers"]] == [True]
    log = (site.home / "logs" / "supervisor.log").read_text()
    assert "[WARNING] the copy to the database failed: nobody is there" in log


@pytest.mark.accepts("C-149", "B-63")
def test_what_is_ordered_in_a_pass_is_done_in_it(site):
    site.workers(web="exec sleep 600", db="exec sleep 600")
    held = passed(
        site,
        """
async def flags(passage):
    notes.append(await order(passage, orders.PauseWorkers(names=("web",))))
    notes.append(await order(passage, orders.RestartWorkers(names=("db",))))
    notes.append(states(passage))
    return []

stages = Stages(flags=flags)
""",
    )
    assert held["notes"] == [[True], [True], {"db": "running"}]
    assert [each["slot"] for each in held["actions"]] == ["db"]
    web, db = held["workers"]
    assert (web["paused"], web["running"], db["running"]) == (True, False, True)
    assert held["success"] is True
    lifted = passed(
        site,
        """
async def flags(passage):
    notes.append(await order(passage, orders.ResumeWorkers(names=("web",))))
    return []

stages = Stages(flags=flags)
""",
    )
    assert lifted["notes"] == [[True]]
    assert [(each["slot"], each["did"]) for each in lifted["actions"]] == [("web", "started")]
    assert lifted["success"] is True


@pytest.mark.accepts("C-012", "B-71")
def test_a_pass_that_is_told_to_end_begins_nothing_more(site):
    site.workers(web="exec sleep 600")
    report = passed(
        site,
        """
async def flags(passage):
    os.kill(os.getpid(), signal.SIGTERM)
    await passage.ending.wait()
    return []

async def heartbeat(launch, settings, report):
    notes.append("heartbeat")
    return []

stages = Stages(flags=flags, heartbeat=heartbeat)
""",
    )
    assert report["actions"] == []
    assert "the pass was ended early by SIGTERM" in report["problems"]
    assert report["notes"] == ["heartbeat"]
    assert json.loads((site.home / "lock").read_text())["stopped_at"]
