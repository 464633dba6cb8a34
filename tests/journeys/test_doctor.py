"""`uphold doctor` beside a real supervisor, and after one that was killed."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def levels(answer):
    return {each["check"]: each["level"] for each in answer.json["checks"]}


@pytest.mark.accepts("E-21", "B-91")
def test_the_doctor_says_how_a_home_is_before_during_and_after(site):
    site.workers(web="exec sleep 1000")
    before = site.ok("doctor", "--json")
    assert levels(before)["home"] == "ok"
    assert not site.home.exists(), "looking makes nothing"
    site.ok("start")
    site.until("web", state="running")
    during = site.ok("doctor", "--json")
    assert [levels(during)[name] for name in ("supervisor", "control socket", "audit")] == [
        "ok"
    ] * 3
    site.kill_supervisor()
    after = site.ok("doctor", "--json")
    assert levels(after)["supervisor"] == levels(after)["left-overs"] == "warn"
    site.workers(web={"command": "./nothing"})
    broken = site.run("doctor")
    assert broken.code == 1
    assert "fail  worker web" in broken.out
    site.ok("stop")
    calm = levels(site.run("doctor", "--json"))
    assert (calm["supervisor"], calm["left-overs"]) == ("ok", "ok")
