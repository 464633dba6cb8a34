"""A worker that eats memory, under a real supervisor."""

from __future__ import annotations

import sys

import pytest

from journeys.site import eventually

pytestmark = pytest.mark.slow
GREEDY = """
import os, time
if os.fork() == 0:
    hoard = bytearray(b"x") * 100_000_000
    time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.accepts("E-42")
def test_who_eats_too_much_is_ended_as_a_failure_and_says_so(site):
    """By the kernel or by watching, whichever there is: what people see is the same."""
    command = [sys.executable, "-ISc", GREEDY]
    hog = {"command": command, "limits": {"memory": "60MB"}, "max_restarts": 0}
    site.workers(hog=hog, calm={"command": "sleep 1000", "limits": {"memory": "60MB", "cpu": 0.5}})
    site.ok("start")
    row = site.until("hog", state="failed")
    assert row["last_error"]["code"] == "UPH_WORKER_MEMORY"
    assert "60 MB" in row["last_error"]["message"]
    assert "60 MB" in site.ok("why", "hog").out
    assert site.worker("calm")["state"] == "running"
    assert "limits.memory allows" in site.ok("events", "hog").out


@pytest.mark.accepts("M-07")
def test_what_a_worker_uses_is_told_of_its_whole_tree(site):
    site.workers(tree="sleep 1000 & sleep 1001 & wait")
    site.ok("start")

    def processes():
        slot = site.ok("show", "tree", "--json").json["slots"][0]
        return slot["processes"] if len(slot["processes"]) == 3 else None

    found = eventually(processes, what="three processes")
    assert found[0]["pid"] == site.worker("tree")["pid"]
    assert {each["command"] for each in found[1:]} == {"sleep 1000", "sleep 1001"}
    assert site.worker("tree")["rss_bytes"] > found[0]["rss_bytes"]
    assert "sleep 1001" in site.ok("show", "tree").out
