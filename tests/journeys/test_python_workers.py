"""Python workers under a real supervisor."""

from __future__ import annotations

import os

import pytest

from journeys.site import eventually

pytestmark = pytest.mark.slow

APP = """
import asyncio, os, time
import uphold

class Good(uphold.Worker):
    done = 0
    async def setup(self): pass
    async def run(self, stopping):
        while not await stopping.wait(0.05): self.done += 1
        print("ended by itself")
    def health(self): return uphold.Health.ok(progress=self.done)

class Unready(Good):
    async def setup(self):
        if not os.path.exists("database"): raise OSError("no database")

class Sick(Good):
    def health(self):
        if os.path.exists("broken"): return uphold.Health.failing("the queue is gone")
        return uphold.Health.ok()

class Deaf(Good):
    async def run(self, stopping): await asyncio.sleep(3600)
"""
QUICK = {"UPHOLD_HEALTH_EVERY": "0.2"}


@pytest.mark.accepts("D-14", "D-17", "D-21", "D-22", "D-27")
def test_each_worker_is_well_or_sick_for_itself_and_recovers(site):
    (site.folder / "app.py").write_text(APP)
    site.workers(
        good={"python": "app:Good"},
        sick={"python": "app:Sick", "environment": QUICK},
        unready={"python": "app:Unready", "max_restarts": "unlimited", "backoff": {"max": "1s"}},
        gone={"python": "app:Gone"},
    )
    site.ok("start")
    good = site.until("good", state="running", health="healthy", kind="python")
    site.until("sick", state="running", health="healthy")
    _until_said(site, "gone", "there is no 'Gone' in the module app")
    _until_said(site, "unready", "OSError: no database (app.py:")
    site.until("unready", health="unhealthy")

    (site.folder / "broken").touch()
    site.until("sick", health="unhealthy", state="running")
    _until_said(site, "sick", "the queue is gone")
    (site.folder / "broken").unlink()
    site.until("sick", health="healthy", state="running")

    (site.folder / "database").touch()
    site.until("unready", state="running", health="healthy", last_error=None)
    assert site.worker("good")["pid"] == good["pid"], "nobody else was touched"

    site.ok("stop")
    assert "ended by itself" in site.log("good")
    assert site.processes() == []


@pytest.mark.accepts("D-25", "D-26", "D-27")
def test_a_worker_that_does_not_stop_in_time_is_ended_by_name_in_the_log(site):
    (site.folder / "app.py").write_text(APP)
    site.workers(
        deaf={"python": "app:Deaf", "stop": {"grace": "300ms"}}, good={"python": "app:Good"}
    )
    site.ok("start")
    pid = site.until("deaf", state="running")["pid"]
    site.until("good", state="running")
    site.ok("stop")
    assert not os.path.exists(f"/proc/{pid}")
    log = (site.home / "logs" / "supervisor.log").read_text()
    assert [line for line in log.splitlines() if "deaf" in line and "kill" in line.lower()]
    assert not [line for line in log.splitlines() if "good" in line and "kill" in line.lower()]


def _until_said(site, slot: str, reason: str) -> None:
    """Wait until a worker's last error has this in it; it has none while it is tried again."""
    eventually(lambda: reason in (site.worker(slot)["last_error"] or {}).get("message", ""))
