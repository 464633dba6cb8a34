"""Orders as people give them: each answered with what was observed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time

import pytest

from journeys.site import eventually, is_gone

pytestmark = pytest.mark.slow


def slots(site):
    return {row["slot"]: row for row in site.status()["workers"]}


@pytest.mark.accepts("P27", "E-20", "E-25")
def test_stop_start_and_restart_of_one_worker_touch_no_other(site):
    site.workers(web="exec sleep 1000", db="exec sleep 1001")
    site.ok("start")
    before = slots(site)
    site.ok("restart", "web")
    after = slots(site)
    assert after["web"]["pid"] != before["web"]["pid"]
    assert after["db"]["pid"] == before["db"]["pid"]
    answer = site.ok("stop", "web", "--json").json
    assert answer["results"] == [{"name": "web", "ok": True, "state": "stopped", "error": None}]
    assert slots(site)["web"]["state"] == "stopped"
    assert site.run("status").code == 0, "an operator's stop is as declared"
    site.ok("start", "web")
    assert slots(site)["web"]["state"] == "running"


@pytest.mark.accepts("E-25")
def test_an_unknown_worker_exits_5_with_the_nearest_name(site):
    site.workers(indexer="exec sleep 1000")
    site.ok("start")
    answer = site.run("restart", "indxer")
    assert answer.code == 5
    assert "indexer" in answer.err


def test_orders_survive_a_restart_of_the_supervisor_until_their_opposite(site):
    site.workers(a="exec sleep 1000", b="exec sleep 1000", c="exec sleep 1000", d="exec sleep 1000")
    site.ok("start")
    site.ok("stop", "a")
    site.ok("pause", "b")
    site.ok("disable", "c")
    site.ok("scale", "d=3")
    site.ok("restart")
    seen = slots(site)
    assert [seen[s]["state"] for s in ("a", "b", "c")] == ["stopped"] * 3
    assert (seen["b"]["admin"], seen["c"]["admin"]) == ("paused", "disabled")
    assert {"d", "d.2", "d.3"} <= set(seen)
    assert "paused by" in site.ok("why", "b").out
    refused = site.run("start", "b")
    assert refused.code == 4
    assert "resume" in refused.err
    site.ok("start", "a")
    site.ok("resume", "b")
    site.ok("enable", "c")
    site.ok("scale", "d=1")
    seen = slots(site)
    assert {s: row["state"] for s, row in seen.items()} == dict.fromkeys("abcd", "running")


def test_an_order_ends_when_the_file_changes_its_key_while_no_supervisor_runs(site):
    command = {"command": "exec sleep 1000", "shell": True}
    by_hand = {**command, "autostart": False}
    site.workers(kept=command, scaled=command, woken=by_hand)
    site.ok("start")
    site.ok("stop", "kept", "woken")
    site.ok("scale", "scaled=3")
    site.ok("stop")
    site.workers(
        kept={**command, "stable_after": "5s"}, scaled={**command, "replicas": 2}, woken=command
    )
    site.ok("start")
    seen = slots(site)
    assert {slot: row["state"] for slot, row in seen.items()} == {
        "kept": "stopped",
        "scaled": "running",
        "scaled.2": "running",
        "woken": "running",
    }


@pytest.mark.accepts("M-24", "M-26", "M-48", "B-34")
def test_a_worker_that_stops_slowly_delays_nobody_else(site):
    slow = {"command": "trap '' TERM; while :; do sleep 1; done", "shell": True}
    site.workers(slow={**slow, "stop": {"grace": "5s"}}, quick="exec sleep 1000")
    site.ok("start")
    stopping = threading.Thread(target=lambda: site.run("stop", "slow"))
    stopping.start()
    site.until("slow", state="stopping")
    before = slots(site)["quick"]["pid"]
    site.ok("restart", "quick")
    seen = slots(site)
    assert seen["slow"]["state"] == "stopping", "it is still within its grace"
    assert seen["quick"]["pid"] != before
    stopping.join(timeout=30)


def test_signal_reaches_the_main_process_and_changes_nothing_declared(site):
    site.workers(web="trap 'echo got hup' HUP; while :; do sleep 0.05; done")
    site.ok("start")
    eventually(lambda: site.worker("web")["uptime"] > 0.3)
    site.ok("signal", "web", "HUP")
    eventually(lambda: "got hup" in site.log("web"))
    assert site.worker("web")["restarts"] == 0
    assert site.run("signal", "web", "NOPE").code == 2


@pytest.mark.accepts("P8")
def test_a_given_up_worker_stays_down_until_somebody_resets_it(site):
    site.workers(
        flappy={
            "command": "test -e mended && exec sleep 1000; exit 7",
            "shell": True,
            "max_restarts": 2,
            "backoff": {"base": "10ms"},
        }
    )
    site.ok("start")
    row = site.until("flappy", state="failed")
    assert "gave up" in row["why"]
    assert "given up" in site.ok("why", "flappy").out
    site.kill_supervisor()
    site.ok("start")
    assert site.worker("flappy")["state"] == "failed", "the counter survives"
    (site.folder / "mended").touch()
    site.ok("reset", "flappy")
    site.until("flappy", state="running")


@pytest.mark.accepts("O-15", "O-17", "O-18")
def test_a_paused_supervisor_watches_and_does_not_act(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    site.ok("pause")
    assert site.status()["supervisor"]["status"] == "paused"
    pid = site.worker("web")["pid"]
    os.kill(pid, signal.SIGKILL)
    site.until("web", state="backoff")
    time.sleep(0.3)
    assert site.worker("web")["state"] == "backoff"
    site.ok("resume")
    site.until("web", state="running")


def test_dependencies_start_in_order_and_stop_in_reverse(site):
    shout = "echo $UPHOLD_SLOT up $(date +%s%N) >> ../order; trap 'echo $UPHOLD_SLOT down >> ../order; exit 0' TERM; while :; do sleep 0.05; done"

    def worker(**more):
        return {
            "command": shout.replace("../order", str(site.folder / "order")),
            "shell": True,
            **more,
        }

    site.workers(
        api=worker(depends_on={"db": "started"}), db=worker(), web=worker(depends_on=["api"])
    )
    site.ok("start")
    eventually(lambda: (site.folder / "order").read_text().count("up") == 3)
    site.ok("stop")
    downs = [
        line.split()[0]
        for line in (site.folder / "order").read_text().splitlines()
        if "down" in line
    ]
    assert downs == ["web", "api", "db"]
    history = [
        json.loads(line) for line in site.ok("events", "--json", "-n", "1000").out.splitlines()
    ]
    started = [
        e["entity_id"]
        for e in history
        if e["type"] == "worker.connected" and e["entity_id"] != "@pump"
    ]
    assert started == ["db", "api", "web"]


def test_a_worker_waits_for_a_dependency_and_says_which(site):
    site.workers(
        db={"command": "exec sleep 1000", "shell": True, "autostart": False},
        api={"command": "exec sleep 1000", "shell": True, "depends_on": ["db"]},
    )
    site.ok("start")
    row = site.until("api", state="waiting")
    assert "'db'" in row["why"]
    assert "'db'" in site.ok("why", "api").out
    assert site.run("status").code == 151
    site.ok("start", "db")
    site.until("api", state="running")


@pytest.mark.accepts("P10", "S44")
def test_every_order_is_audited_with_its_label_and_the_chain_verifies(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    site.ok("restart", "web", "--label", "night shift", "--reason", "memory looks odd")
    site.ok("stop", "web")
    lines = [json.loads(line) for line in site.ok("audit", "--json", "-n", "100").out.splitlines()]
    restart = next(line for line in lines if line["action"] == "restart")
    assert restart["label"] == "night shift"
    assert restart["target_id"] == "web"
    assert [line["action"] for line in lines if line["target_id"] == "web"] == [
        "restart",
        "restart.succeeded",
        "stop",
        "stop.succeeded",
    ]
    site.ok("audit", "verify")
    assert site.run("restart", "web", "--label", "bad\nlabel").code == 2
    assert site.run("restart", "web", "--label", "x" * 101).code == 2


def test_an_essential_worker_that_ends_takes_the_supervisor_with_it(site):
    site.workers(
        main={"command": "sleep 1; exit 0", "shell": True, "restart": "no", "essential": True},
        side="exec sleep 1000",
    )
    site.ok("start")
    side = site.worker("side")["pid"]
    eventually(lambda: is_gone(side))
    eventually(lambda: site.run("status").code == 3)
    assert "main" in (site.home / "runtime.json").read_text()


@pytest.mark.accepts("M-15", "M-16", "M-17", "M-19")
def test_disabled_and_quarantined_workers_are_known_and_never_run(site):
    site.workers(
        off={"command": "exec sleep 1000", "shell": True, "enabled": False},
        odd={"command": "exec sleep 1000", "shell": True, "quarantined": True},
    )
    site.ok("start")
    seen = slots(site)
    assert {name: (row["state"], row["generation"]) for name, row in seen.items()} == {
        "off": ("stopped", 0),
        "odd": ("stopped", 0),
    }
    assert site.run("start", "odd").code == 4
    site.ok("approve", "odd")
    assert slots(site)["odd"]["state"] == "running"
    site.ok("quarantine", "odd")
    assert slots(site)["odd"]["state"] == "stopped"


@pytest.mark.accepts("P3")
def test_a_failed_worker_can_be_stopped_and_the_supervisor_still_ends(site):
    site.workers(
        bad={"command": ["no-such-program-here"]},
        flappy={"command": "exit 1", "shell": True, "max_restarts": 0},
        good="exec sleep 1000",
    )
    site.ok("start")
    site.until("bad", state="failed")
    site.until("flappy", state="failed")
    site.ok("stop", "bad", "flappy")
    assert {s: r["state"] for s, r in slots(site).items()} == {
        "bad": "stopped",
        "flappy": "stopped",
        "good": "running",
    }
    site.ok("stop")
    assert site.processes() == []


def test_a_stop_in_the_middle_of_many_starts_leaves_nothing(site):
    site.workers(**{f"w{i}": "exec sleep 1000" for i in range(80)})
    site.ok("start", "--no-wait")
    eventually(lambda: site.run("status").code != 3)
    site.ok("stop")
    assert site.processes() == []


def test_a_job_whose_supervisor_died_does_not_stay_running_for_ever(site):
    deaf = {"command": "trap '' TERM; while :; do sleep 1; done", "shell": True}
    site.workers(deaf={**deaf, "stop": {"grace": "10m"}})
    site.ok("start")
    job = site.ok("stop", "deaf", "--no-wait", "--json").json["job_id"]
    site.until("deaf", state="stopping")
    site.kill_supervisor()
    site.ok("start")
    rows = [json.loads(line) for line in site.ok("jobs", "--json", "-n", "50").out.splitlines()]
    (row,) = [row for row in rows if row["job_id"] == job]
    assert row["state"] == "failed"
    assert "interrupted" in row["last_error"]
    assert site.worker("deaf")["state"] == "stopping", "the order itself stands"
    os.kill(site.worker("deaf")["pid"], signal.SIGKILL)
    site.until("deaf", state="stopped")


@pytest.mark.accepts("E-18", "M-07")
def test_show_tells_everything_and_hides_secrets_by_their_names(site):
    site.workers(
        web={
            "command": "exec sleep 1000",
            "shell": True,
            "environment": {"LEVEL": "info", "API_TOKEN": "abc"},
        }
    )
    site.ok("start")
    worker = site.ok("show", "web", "--json").json["worker"]
    for key in (
        "config enabled quarantined connected connection_info last_seen tool_count "
        "desired_version last_reconcile reconcile_count"
    ).split():
        assert key in worker
    environment = worker["config"]["environment"]
    assert environment["LEVEL"] == "info"
    assert environment["API_TOKEN"] != "abc"
    assert environment["SITE_TOKEN"] != "", "and the canary is looked for in every output"


def test_without_a_supervisor_orders_in_force_are_still_told(site):
    site.workers(a="exec sleep 1000", b="exec sleep 1000")
    site.ok("start")
    site.ok("pause", "a")
    site.ok("stop", "b")
    site.ok("stop")
    assert "paused by" in site.ok("why", "a").out
    seen = {row["slot"]: row for row in site.run("status", "--json").json["workers"]}
    assert seen["a"]["admin"] == "paused"
    assert "stays down" in seen["b"]["why"]


@pytest.mark.accepts("E-20", "P16")
def test_a_reload_is_on_record_with_its_label_whatever_comes_of_it(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    site.write(site.config.read_text() + "[workers.db]\ncommand = 'sleep 1000'\n")
    changed = site.ok("reload", "--label", "one", "--reason", "more room", "--json").json
    same = site.ok("reload", "--label", "two", "--reason", "to be sure", "--json").json
    site.write("[workers.web]\ncomand = 'x'\n")
    assert site.run("reload", "--label", "three", "--reason", "in haste").code == 6
    lines = [json.loads(line) for line in site.ok("audit", "--json").out.splitlines()]
    told = [
        (line["action"], line["label"], line["details"]["reason"], line["details"]["origin"])
        for line in lines
        if line["label"]
    ]
    assert told == [
        ("declare", "one", "more room", "socket"),
        ("declare.succeeded", "one", "more room", "socket"),
        ("declare.unchanged", "two", "to be sure", "socket"),
        ("declare.refused", "three", "in haste", "socket"),
    ]
    assert {line["actor"] for line in lines if line["label"]} != {"configuration"}
    jobs = [json.loads(line) for line in site.ok("jobs", "--json").out.splitlines()]
    states = {job["job_id"]: (job["label"], job["state"]) for job in jobs}
    assert states[changed["job_id"]] == ("one", "succeeded")
    assert states[same["job_id"]] == ("two", "succeeded")
    assert site.ok("audit", "verify").code == 0
