"""Workers in control groups, under a real supervisor."""

from __future__ import annotations

import os
import sys

import pytest

from journeys.site import eventually, is_gone
from uphold.host.homes import Home
from uphold.host.processes.groups import Groups
from uphold.host.processes.hierarchies import find_hierarchies

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_hierarchies().tree is None, reason="no control group can be written"),
]
UNMARKED = """
import os, time
os.closerange(3, 100)
if os.fork() == 0:
    os.setsid()
    os.execve("/bin/sleep", ["sleep", "1000"], {})
time.sleep(1000)
"""


@pytest.fixture
def groups(site):
    home = Home(site.home)
    yield lambda slot: Groups(home).left(slot)
    if site.home.exists():
        base = Groups(home)._bases()[""]
        eventually(lambda: not os.path.exists(base), 60, "no group is left")


@pytest.mark.accepts("P2", "P3", "S24")
def test_what_sheds_its_marks_outlives_the_supervisor_and_not_its_stop(site, groups):
    command = [sys.executable, "-ISc", UNMARKED]
    site.workers(web={"command": command, "containment": "group"})
    site.ok("start")
    main = site.worker("web")["pid"]
    eventually(lambda: len(groups("web").members()) == 2, 60, "a child in the group")
    (child,) = set(groups("web").members()) - {main}
    site.kill_supervisor()
    site.ok("start")
    assert site.worker("web")["pid"] == main
    assert '"group"' in site.ok("show", "web", "--json").out
    site.ok("stop", "web")
    assert is_gone(main)
    assert is_gone(child)
    assert "level A" in site.ok("events", "web").out
    site.ok("start", "web")
    again = site.worker("web")["pid"]
    eventually(lambda: len(groups("web").members()) == 2, 60, "a child in the group")
    (child,) = set(groups("web").members()) - {again}
    site.kill_supervisor()
    site.ok("stop")
    assert is_gone(again)
    assert is_gone(child)
