"""The configuration as it is edited under a running supervisor."""

from __future__ import annotations

import os
import signal
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from journeys.site import eventually

pytestmark = pytest.mark.slow


def pids(site):
    return {row["slot"]: row["pid"] for row in site.status()["workers"]}


def plan_of_an_edit(site, **workers):
    """Edit the file and ask what that would change, before it is picked up by itself."""
    os.kill(site.pid, signal.SIGSTOP)
    site.workers(**workers)
    with ThreadPoolExecutor(1) as aside:
        answer = aside.submit(site.run, "plan", "--json", "--exit-code")
        looks = deque([knocking()], maxlen=20)
        # Only a supervisor that stands still lets somebody knock for so many looks.
        eventually(
            lambda: looks.append(knocking()) or (len(looks) == 20 and set.intersection(*looks))
        )
        os.kill(site.pid, signal.SIGCONT)
        return answer.result()


def knocking():
    """Name the conversations with supervisors that nobody has taken up yet."""
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    return {line[0] for line in lines if line[-1].endswith("control.sock") and line[5] == "02"}


@pytest.mark.accepts("P12", "E-15", "M-12", "M-20", "M-21", "M-39")
def test_an_edit_is_picked_up_by_itself_and_touches_only_what_changed(site):
    site.workers(a="exec sleep 1000", b="exec sleep 1000", gone="exec sleep 1000")
    site.ok("start")
    before = pids(site)
    site.workers(a="exec sleep 1000", b="exec sleep 2000", new="exec sleep 3000")
    eventually(lambda: "gone" not in pids(site) and pids(site).get("new"))
    site.until("b", state="running")
    after = pids(site)
    assert after["a"] == before["a"]
    assert after["b"] != before["b"]


@pytest.mark.accepts("P12", "B-30")
def test_a_bad_empty_or_missing_file_touches_nothing_that_runs(site):
    site.workers(a="exec sleep 1000")
    site.ok("start")
    before = pids(site)
    site.write("[workers.a]\ncomand = 'x'\nrestart = 'sometimes'\n")
    refused = site.run("reload")
    assert refused.code == 6
    assert "command" in refused.err
    assert "uphold.toml:2" in refused.err
    assert "uphold.toml:3" in refused.err
    site.write("")
    assert site.run("reload").code == 6
    site.config.unlink()
    assert site.run("reload").code == 6
    eventually(lambda: "config.refused" in site.run("events", "--json", "-n", "50").out)
    assert pids(site) == before
    assert site.run("status").code == 0, "a live supervisor with a bad file still answers"


@pytest.mark.accepts("P12", "E-25")
def test_a_restart_with_a_wrong_or_missing_file_leaves_everything_running(site):
    site.workers(a="exec sleep 1000")
    site.ok("start")
    supervisor, before = site.pid, pids(site)
    good = site.config.read_text()
    for wrong in ("[workers.a]\ncomand = 'x'\n", "", "[workers", None):
        if wrong is None:
            site.config.unlink()
        else:
            site.write(wrong)
        for words in (["restart"], ["restart", "--keep-workers"]):
            refused = site.run(*words)
            assert (refused.code, refused.out) == (6, ""), (wrong, words, refused)
            assert (site.pid, pids(site)) == (supervisor, before)
    site.write(good)
    site.ok("restart", "--keep-workers")
    assert (site.pid != supervisor, pids(site)) == (True, before)


@pytest.mark.accepts("E-17", "E-25")
def test_a_config_with_five_mistakes_prints_five_problems_with_lines_and_exits_6(site):
    site.write(
        "[supervisor]\nreconcile_every = 'soon'\n"
        "[workers.a]\ncommand = 5\nrestart = 'maybe'\n"
        "[workers.b]\ncommand = 'x'\ndepends_on = ['nobody']\nreplicas = -1\n"
    )
    for verb in ("check", "start"):
        answer = site.run(verb)
        assert answer.code == 6
        for line in (2, 4, 5, 8, 9):
            assert f"uphold.toml:{line}" in answer.err + answer.out, answer
    assert not (site.home / "lock").exists()


@pytest.mark.accepts("E-16")
def test_sighup_and_reload_do_the_same_as_an_edit(site):
    site.workers(a="exec sleep 1000")
    site.ok("start")
    before = pids(site)["a"]
    site.workers(a="exec sleep 1001")
    os.kill(site.pid, signal.SIGHUP)
    eventually(lambda: pids(site)["a"] not in (None, before))
    site.workers(a="exec sleep 1002")
    site.ok("reload")
    assert site.worker("a")["state"] == "running"


def test_terms_that_need_no_restart_apply_in_place(site):
    site.workers(a="exec sleep 1000")
    site.ok("start")
    before = pids(site)
    terms = {"command": "exec sleep 1000", "shell": True, "max_restarts": 3, "labels": {"x": "y"}}
    (change,) = plan_of_an_edit(site, a=terms).json["changes"]
    assert change["action"] == "update"
    site.ok("reload")
    assert pids(site) == before


@pytest.mark.accepts("P12")
def test_plan_says_what_the_file_would_change_and_changes_nothing(site):
    site.workers(a="exec sleep 1000", b="exec sleep 1000")
    site.ok("start")
    before = pids(site)
    answer = plan_of_an_edit(site, a="exec sleep 2000", c="exec sleep 1000")
    changes = {each["name"]: each["action"] for each in answer.json["changes"]}
    assert changes == {"a": "restart", "b": "remove", "c": "start"}
    assert answer.code == 2
    assert before


def test_editing_one_worker_of_many_restarts_that_one_alone(site):
    many = {f"w{i}": "exec sleep 1000" for i in range(100)}
    site.workers(**many)
    site.ok("start")
    before = pids(site)
    site.workers(**{**many, "w50": "exec sleep 1001"})
    site.ok("reload")
    after = pids(site)
    assert [name for name in after if after[name] != before[name]] == ["w50"]


def test_plan_without_a_supervisor_shows_what_a_start_would_do(site):
    site.workers(a="exec sleep 1000", off={"command": "x", "enabled": False})
    changes = site.ok("plan", "--json").json["changes"]
    assert {each["name"]: each["action"] for each in changes} == {"a": "start", "off": "none"}
    assert not site.home.exists()


LATER = {"first": "1h", "base": "1h", "max": "1h"}


@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
def test_a_plan_without_a_supervisor_foretells_what_the_start_then_does(site, kill):
    once = {"command": "true", "restart": "no"}
    site.workers(
        web="exec sleep 1000",
        once=once,
        after={"command": "sleep 1000", "depends_on": {"once": "completed"}},
        flaky={"command": "false", "backoff": LATER},
        held="exec sleep 1000",
        leans={"command": "sleep 1000", "depends_on": {"held": "started"}},
        off={"command": "sleep 1000", "enabled": False},
        job={"command": "true", "schedule": {"every": "1h"}},
        gone={"command": "/nowhere/at/all"},
    )
    site.run("start")
    site.ok("pause", "held")
    for name, state in {"once": "exited", "flaky": "backoff", "gone": "failed"}.items():
        site.until(name, state=state)
    site.until("after", state="running")
    site.until("leans", state="running")
    if kill:
        os.kill(site.pid, signal.SIGKILL)
        eventually(lambda: site.status()["supervisor"]["ownership"] == "stale")
    else:
        site.ok("stop")
    before = {row["name"]: row["generation"] for row in site.status()["workers"]}
    told = {each["name"]: each["action"] for each in site.ok("plan", "--json").json["changes"]}
    site.run("start")
    expected = {name: before.get(name, 0) + (told[name] == "start") for name in told}

    def runs():
        return {row["name"]: row["generation"] for row in site.status()["workers"]}

    site.until("job", state="waiting")
    eventually(lambda: runs() == expected, seconds=10, what=f"{told} -> {expected}, not {runs()}")
    assert told["flaky"] == told["gone"] == told["held"] == told["off"] == told["job"] == "none"
    assert told["web"] == ("none" if kill else "start")
    assert told["once"] == ("none" if kill else "start"), "who has done its work has not to again"


def test_a_refused_file_is_seen_in_status_until_it_is_mended(site):
    site.workers(a="exec sleep 1000")
    site.ok("start")
    good = site.config.read_text()
    site.write(good + "[workers.b]\ncomand = 'x'\n")
    eventually(lambda: site.status()["supervisor"]["last_error"])
    fault = site.status()["supervisor"]["last_error"]
    assert fault["code"] == "UPH_CONFIG_INVALID"
    assert "command" in fault["message"]
    site.write(good)
    eventually(lambda: site.status()["supervisor"]["last_error"] is None)
