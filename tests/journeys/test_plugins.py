"""Handlers of others: real packages, installed beside uphold, asked by a real supervisor."""

from __future__ import annotations

import json

import pytest

from inbox.plugged import Interpreter
from journeys.site import eventually
from journeys.test_flags import Orion

HANDLERS = '["stop_watcher", "resize", "raises", "dies", "waits", "broken"]'


class Plugged(Orion):
    """The workstation, with plug-ins that its configuration names."""

    def __init__(self, folder, python) -> None:
        super().__init__(folder)
        self.python = python
        self.edit("poll_every: 200ms", f"poll_every: 200ms\n    handlers: {HANDLERS}")

    def ask(self, handler: str, task: str, **content) -> dict:
        """Drop a flag and give its receipt."""
        given = {"task_id": task, "handler": handler, "worker_id": "OrionMX", **content}
        temp = self.inbox / f"{task}.tmp"
        temp.write_text(json.dumps(given))
        temp.rename(self.inbox / f"supervisor_{task}.flag")
        return self.receipt(task)


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    made = Interpreter(tmp_path_factory.mktemp("python"))
    made.install_example(pip=True)
    made.install_mishaps()
    return made.python


@pytest.fixture
def site(tmp_path, python):
    made = Plugged(tmp_path, python)
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.accepts("C-104", "C-105", "P23", "P25")
def test_a_plug_in_is_obeyed_and_one_that_fails_costs_only_its_own_flag(site):
    site.ok("start")
    first = site.until("OrionMX", state="running")["pid"]
    supervisor = site.pid

    raised = site.ask("raises", "task_1", label="try it")
    assert (raised["success"], raised["label"]) == (False, "try it")
    assert raised["details"] == {"code": "UPH_PLUGIN_FAILED"}
    assert "it raised LookupError: nobody told me of OrionMX" in raised["error"]
    died = site.ask("dies", "task_2")
    assert "its process ended with 7" in died["error"]
    refused = site.ask("broken", "task_3")
    assert refused["details"]["code"] == "UPH_PLUGIN_UNUSABLE"
    assert "half of it" not in json.dumps(refused)
    needy = site.ask("resize", "task_4")
    assert needy["details"] == {"code": "ORION_SLOTS_MISSING"}

    assert (site.pid, site.worker("OrionMX")["pid"]) == (supervisor, first)
    told = site.events("plugin.")
    assert [(each["type"], each["entity_id"]) for each in told] == [
        ("plugin.unusable", "broken"),
        ("plugin.failed", "OrionMX"),
        ("plugin.failed", "OrionMX"),
    ]
    assert told[1]["payload"]["task_id"] == "task_1"
    assert "[task_1 - try it]" in (site.home / "logs" / "supervisor.log").read_text()

    stopped = site.ask("stop", "task_5", label="for the move")
    assert (stopped["success"], stopped["error"]) == (True, None)
    assert (stopped["handler"], stopped["details"]["state"]) == ("stop_watcher", "stopped")
    assert site.worker("OrionMX")["state"] == "stopped"
    (asked,) = [row for row in site.audit() if row["action"] == "stop"]
    assert (asked["label"], asked["actor"]) == ("for the move", "flag")


@pytest.mark.slow
def test_the_command_line_knows_plug_ins_too(site):
    warned = site.ok("check").out
    assert "inbox.handlers: broken:handler cannot be loaded: ImportError" in warned
    doctor = site.run("doctor", "--json").json
    found = {each["check"]: each["level"] for each in doctor["checks"]}
    assert (found["handler stop_watcher"], found["handler broken"]) == ("ok", "fail")

    site.ok("start")
    site.until("OrionMX", state="running")
    unknown = site.run("flag", "create", "resign")
    assert unknown.code == 2
    assert "stop_watcher, resize" in unknown.err
    assert site.run("flag", "create", "broken").code == 2
    wrong = site.run("flag", "create", "resize", "--param", "slots=99")
    assert "slots must be a whole number from 0 to 8" in wrong.err
    assert "pending: none" in site.ok("flag", "list").out
    jobs = [json.loads(line) for line in site.ok("jobs", "--json").out.splitlines()]
    assert not [each for each in jobs if each["job_type"] == "scale"]

    sent = site.ok("flag", "create", "resize", "--param", "slots=2", "--json").json
    receipt = site.receipt(sent["task_id"])
    assert (receipt["success"], receipt["job_id"]) == (True, sent["job_id"])
    eventually(lambda: len(site.status()["workers"]) == 2, what="two slots")


@pytest.mark.slow
def test_a_single_pass_asks_plug_ins_too(site):
    site.drop("pause")
    temp = site.inbox / "x.tmp"
    temp.write_text(json.dumps({"task_id": "task_9", "handler": "stop_watcher"}))
    temp.rename(site.inbox / "supervisor_stop_watcher_OrionMX.flag")
    site.run("once")
    assert site.receipt("task_9")["success"]


@pytest.mark.slow
@pytest.mark.accepts("P20", "P25")
def test_a_supervisor_killed_while_a_plug_in_answers_asks_again_and_acts_once(site):
    site.ok("start")
    site.until("OrionMX", state="running")
    go = site.folder / "go"
    given = {"task_id": "task_1", "handler": "waits", "params": {"for": str(go)}}
    temp = site.inbox / "x.tmp"
    temp.write_text(json.dumps(given))
    temp.rename(site.inbox / "supervisor_waits_OrionMX.flag")
    eventually(lambda: site.events("flag.claimed"), what="the flag claimed")
    site.kill_supervisor()
    go.touch()
    site.ok("start")
    assert site.receipt("task_1")["success"]
    assert next(row["action"] for row in site.audit() if "task_1" in json.dumps(row)) == "pause"
    jobs = [json.loads(line) for line in site.ok("jobs", "--json").out.splitlines()]
    assert len([each for each in jobs if each["task_id"] == "task_1"]) == 1
    assert site.worker("OrionMX")["admin"] == "paused"
