"""A watcher steered by files alone: the example, a real daemon and a real share."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from journeys.deployments import Deployment
from journeys.site import Site, eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "archive-watcher"
HANDLERS = {
    "pause": "pause_watcher",
    "resume": "resume_watcher",
    "restart_watcher": "restart_watcher",
    "diagnostics": "diagnostics",
    "verify_db": "verify_db",
}


class Orion(Site):
    """The archive workstation, quick enough for a test."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
        subprocess.run([sys.executable, "make_share.py"], cwd=folder, check=True)
        super().__init__(folder)
        with (folder / ".env").open("a") as file:
            file.write("SHARE_ROOT=./share\n")
        self.config = folder / "config.dev.yaml"
        self.edit("command: [python3,", f"command: [{sys.executable},")
        self.edit("poll_every: 2s", "poll_every: 200ms")
        self.edit("poll_seconds: 2", "poll_seconds: 0.1")
        self.edit("work_seconds: 3", "work_seconds: 0.5")
        self.share = folder / "share"
        self.inbox = self.share / "Worker_Inbox"
        self.state = self.share / "00_STATE"
        self.marker = self.state / "supervisor_pause_OrionMX.flag"
        self.beat = self.state / "supervisor_heartbeat_OrionMX.json"
        self.count = 0

    def edit(self, old: str, new: str) -> None:
        text = self.config.read_text()
        assert old in text
        self.config.write_text(text.replace(old, new))

    def drop(self, action: str, **content) -> str:
        """Drop a flag as a person would: written whole under another name, then renamed."""
        self.count += 1
        task = f"task_20260101_000000_{self.count:04d}"
        given = {"task_id": task, "handler": HANDLERS[action], "params": {}, **content}
        temp = self.inbox / f"flag{self.count}.tmp"
        temp.write_text(json.dumps(given))
        temp.rename(self.inbox / f"supervisor_{action}_OrionMX.flag")
        return task

    def receipts(self, task: str) -> list[dict]:
        found = (self.share / "Worker_Outbox").glob(f"supervisor_result_*_{task}_*.json")
        return [json.loads(path.read_text()) for path in found]

    def receipt(self, task: str) -> dict:
        (found,) = eventually(lambda: self.receipts(task), what=f"the receipt of {task}")
        return found

    def obeyed(self, action: str, **content) -> dict:
        """Drop a flag and wait for its receipt."""
        return self.receipt(self.drop(action, **content))

    def until_put_away(self) -> None:
        """Wait until nothing is under way: a flag goes after its receipt has come."""
        folder = self.inbox / "processing"
        eventually(lambda: not list(folder.iterdir()), what="processing/ to be empty")

    def shared_log(self) -> str:
        path = self.share / "05_LOGS" / "supervisor.log"
        return path.read_text() if path.exists() else ""

    def audit(self) -> list[dict]:
        return [json.loads(line) for line in self.ok("audit", "--json").out.splitlines()]

    def events(self, prefix: str) -> list[dict]:
        lines = self.ok("events", "--json").out.splitlines()
        return [each for each in map(json.loads, lines) if each["type"].startswith(prefix)]


@pytest.fixture
def site(tmp_path):
    made = Orion(tmp_path)
    yield made
    made.close()


def agree(site: Orion, receipt: dict) -> None:
    """See that log, audit, job and receipt tell the same of one task."""
    task, label = receipt["task_id"], receipt["label"]
    shown = f"[{task} - {label}]" if label else f"[{task}]"
    eventually(lambda: site.shared_log().count(shown) >= 2, what=f"{shown} in the shared log")
    assert shown in (site.home / "logs" / "supervisor.log").read_text()
    rows = eventually(lambda: ended(site, task), what="asked for, and ended, in the audit")
    assert {row["label"] for row in rows} == {label}
    jobs = [json.loads(line) for line in site.ok("jobs", "--json").out.splitlines()]
    (job,) = [each for each in jobs if each["task_id"] == task]
    assert (job["job_id"], job["label"]) == (receipt["job_id"], label)
    assert job["state"] == ("succeeded" if receipt["success"] else "failed")


def ended(site: Orion, task: str) -> list[dict] | None:
    """Give both lines of the audit about a task, once both are there."""
    rows = [row for row in site.audit() if task in json.dumps(row)]
    return rows if len(rows) == 2 else None


@pytest.mark.accepts(
    *("C-020", "C-021", "C-025", "C-026", "C-027", "C-028", "C-029", "C-031", "C-039"),
    *("C-047", "C-048", "C-051", "C-052", "C-054", "C-055", "C-057", "C-067", "C-070"),
    *("C-106", "C-138", "C-143", "C-154", "C-T14", "C-T15", "C-T16", "C-T17", "C-T26"),
)
@pytest.mark.parametrize("label", [None, "disk swap 7"])
def test_a_watcher_is_held_resumed_and_restarted_by_files_alone(site, label):
    more = {} if label is None else {"label": label}
    site.ok("start")
    first = site.until("OrionMX", state="running")["pid"]

    paused = site.obeyed("pause", **more)
    assert (paused["success"], paused["error"], paused["label"]) == (True, None, label)
    assert paused["handler"] == "pause_watcher"
    assert site.marker.exists()
    held = site.worker("OrionMX")
    assert (held["state"], held["admin"]) == ("stopped", "paused")
    agree(site, paused)
    eventually(site.beat.exists, what="the heartbeat")
    assert json.loads(site.beat.read_text())["worker_id"] == "OrionMX"

    resumed = site.obeyed("resume", **more)
    assert resumed["success"] is True
    assert not site.marker.exists()
    second = site.until("OrionMX", state="running")["pid"]
    assert second != first
    agree(site, resumed)

    restarted = site.obeyed("restart_watcher", **more)
    assert (restarted["success"], restarted["details"]["held"]) == (True, False)
    third = site.until("OrionMX", state="running")["pid"]
    assert third != second
    agree(site, restarted)
    assert list(site.inbox.glob("*.flag")) == []
    site.until_put_away()


@pytest.mark.accepts("C-068", "C-T25")
def test_a_restart_leaves_what_is_held_down_and_the_marker_in_place(site):
    site.ok("start")
    site.obeyed("pause")
    restarted = site.obeyed("restart_watcher")
    assert (restarted["success"], restarted["details"]["held"]) == (True, True)
    assert site.marker.exists()
    assert site.worker("OrionMX")["state"] == "stopped"


@pytest.mark.accepts("C-050", "D-28")
def test_a_task_under_way_is_finished_before_a_pause_is_answered(site):
    site.edit("work_seconds: 0.5", "work_seconds: 3")
    site.ok("start")
    (site.inbox / "one.task.json").write_text("{}")
    eventually((site.share / "02_WORK" / "one.task.json").exists, what="the task is claimed")
    assert site.obeyed("pause")["success"] is True
    assert (site.share / "04_PUBLISH" / "one.task.json").exists()


@pytest.mark.accepts(
    *("C-022", "C-024", "C-084", "C-085", "C-087", "C-088", "C-089", "C-090", "C-091", "C-092"),
    *("C-093", "C-094", "C-154", "C-T27", "C-T28"),
)
def test_a_report_tells_everything_about_a_watcher_that_runs(site):
    site.ok("start")
    pid = site.until("OrionMX", state="running")["pid"]
    eventually((site.state / "watcher_heartbeat_OrionMX.json").exists, what="its heartbeat")
    assert "label" not in Path(site.obeyed("diagnostics")["details"]["report_path"]).name
    receipt = site.obeyed("diagnostics", label="before the move")
    agree(site, receipt)
    path = Path(receipt["details"]["report_path"])
    assert path.parent == site.share / "05_LOGS" / "diagnostics"
    assert path.name.startswith("diagnostics_OrionMX_")
    assert path.name.endswith("_before_the_move.json")
    report = json.loads(path.read_text())
    assert (report["label"], report["task_id"]) == ("before the move", receipt["task_id"])
    sections = {name: each["content"] for name, each in report["sections"].items()}
    process = sections["process"]
    assert (process["running"], process["pid"]) == (True, pid)
    assert process["memory_bytes"] > 1_000_000
    assert process["cpu_percent"] >= 0
    assert process["uptime_seconds"] > 0
    assert (sections["heartbeat"]["fresh"], sections["heartbeat"]["paused"]) == (True, False)
    assert sections["paths"]["all_accessible"] is True
    assert sections["disk"]["percent_free"] is not None
    assert "watching" in sections["log"]["lines"][0]
    assert sections["inbox"]["count"] == 0
    assert sections["audit"]["rows"]
    assert report["sections"]["database"]["error"], "there is none here"


@pytest.mark.accepts("E-20", "C-093")
def test_a_report_is_written_and_shown_by_the_command_line(site):
    site.ok("start")
    site.until("OrionMX", state="running")
    shown = site.ok("diagnose", "OrionMX", "--open", "--label", "by hand")
    first, *rest = shown.out.splitlines()
    assert first.startswith("report: ")
    assert first.endswith("_by_hand.json")
    text = "\n".join(rest)
    for heading in (
        *("Worker process", "Heartbeat", "Database", "Paths of the share", "Room on the share"),
        *("Last lines of the log", "Waiting in the inbox", "Last audit rows"),
    ):
        assert heading in text


@pytest.mark.accepts("C-032", "C-095", "C-102", "C-104", "C-105", "C-T30")
def test_without_a_database_its_check_fails_with_a_clear_error(site):
    site.ok("start")
    receipt = site.obeyed("verify_db", label="monday")
    assert receipt["success"] is False
    assert "[store]" in receipt["error"]
    agree(site, receipt)
    assert list(site.inbox.glob("*.flag")) == []


@pytest.mark.accepts(
    "C-086", "C-096", "C-097", "C-100", "C-101", "C-103", "C-154", "C-T29", "C-T31"
)
def test_with_a_database_its_check_succeeds_and_the_report_has_its_label(site):
    with site.config.open("a") as file:
        file.write(f"\n  store:\n    url: sqlite:///{site.folder}/shared.db\n")
    site.ok("db", "migrate")
    site.ok("start")
    receipt = site.obeyed("verify_db", label="monday")
    assert (receipt["success"], receipt["error"]) == (True, None)
    agree(site, receipt)
    path = Path(receipt["details"]["report_path"])
    assert path.name.startswith("db_verification_OrionMX_")
    report = json.loads(path.read_text())
    assert (report["label"], report["task_id"]) == ("monday", receipt["task_id"])
    assert site.obeyed("verify_db")["success"] is True
    told = json.loads(Path(site.obeyed("diagnostics")["details"]["report_path"]).read_text())
    assert told["sections"]["database"]["content"]["connected"] is True


@pytest.mark.accepts("C-033", "C-034", "C-107", "C-121", "C-122", "E-29", "E-30")
def test_what_cannot_be_obeyed_is_refused_before_anything_happens(site):
    site.ok("start")
    before = site.until("OrionMX", state="running")["pid"]
    wrong = [
        {"label": "x" * 101},
        {"label": "two\nlines"},
        {"handler": "format_disk"},
        {"params": {"comits_back": 2}},
    ]
    for content in wrong:
        receipt = site.obeyed("pause", **content)
        assert receipt["success"] is False
        assert receipt["error"]
        assert receipt["job_id"] is None
    assert site.obeyed("diagnostics", label="x" * 100)["success"] is True
    assert not site.marker.exists()
    assert site.worker("OrionMX")["pid"] == before
    site.until_put_away()
    assert len(list((site.inbox / "rejected").glob("*.reason.txt"))) == len(wrong)
    assert len(site.events("flag.rejected")) == len(wrong)


@pytest.mark.accepts("C-036", "E-28", "E-31", "P20")
def test_a_flag_that_a_killed_supervisor_had_begun_is_answered_by_the_next_one(site):
    site.edit("work_seconds: 0.5", "work_seconds: 600")
    site.edit("grace: 30s", "grace: 600s")
    site.ok("start")
    (site.inbox / "one.task.json").write_text("{}")
    eventually((site.share / "02_WORK" / "one.task.json").exists, what="the task is claimed")
    task = site.drop("restart_watcher", label="night shift")  # it waits for the task's end
    eventually(
        lambda: "begun" in site.shared_log() or site.worker("OrionMX")["state"] == "stopping"
    )
    assert len(list((site.inbox / "processing").iterdir())) == 1
    watcher = site.worker("OrionMX")["pid"]
    try:
        site.kill_supervisor()
        assert site.receipts(task) == []
        site.ok("start")
        receipt = site.receipt(task)
    finally:
        os.kill(watcher, 9)
    assert receipt["success"] is False
    assert "interrupted" in receipt["error"]
    site.until_put_away()
    site.until("OrionMX", state="running")
    assert len(site.receipts(task)) == 1
    assert site.obeyed("pause")["success"] is True


@pytest.mark.accepts("C-020", "P17")
def test_flags_are_obeyed_at_once_where_the_kernel_tells_of_them(site):
    """With ten minutes between two polls, nothing here could be waited for."""
    site.edit("poll_every: 200ms", "poll_every: 10m")
    site.ok("start")
    site.until("OrionMX", state="running")
    assert site.obeyed("pause")["success"] is True
    created = site.ok("flag", "create", "resume_watcher", "--json").json
    assert site.receipt(created["task_id"])["success"] is True
    site.until("OrionMX", state="running")
    assert "the inbox is watched, and looked at every 600 s." in site.shared_log()
    share = site.status()["share"]
    assert (share["path"], share["state"]) == (str(site.share), "reachable")
    assert (share["watched"], share["poll_seconds"]) == (True, 600)
    assert f"share {site.share}: reachable for " in site.run("status", "--all").out


@pytest.fixture
def deployment(tmp_path):
    subprocess.run([sys.executable, EXAMPLE / "make_share.py"], cwd=tmp_path, check=True)
    made = Deployment(tmp_path)
    made.more = '[inbox]\nshare = "share"\npoll_every = "200ms"\n'
    made.configure(healthy_for="1h")
    yield made
    made.close()


@pytest.mark.accepts("E-28", "E-31", "P25")
def test_an_update_that_a_killed_supervisor_had_begun_is_ended_and_answered_once(deployment):
    site = deployment
    site.begin()
    site.until("web", state="running")
    site.publish("two")
    flag = {"task_id": "task_1", "handler": "update_code", "worker_id": "web", "label": "nightly"}
    (site.folder / "share" / "Worker_Inbox" / "supervisor_x.flag").write_text(json.dumps(flag))
    eventually(lambda: site.ran() == ["one", "two"], what="the new code runs")
    site.kill_supervisor()  # while the new code is looked at
    site.configure()
    site.begin()
    outbox = site.folder / "share" / "Worker_Outbox"
    (path,) = eventually(lambda: list(outbox.glob("*.json")), what="the receipt")
    receipt = json.loads(path.read_text())
    assert (receipt["task_id"], receipt["label"]) == ("task_1", "nightly")
    assert (receipt["success"], receipt["error"]) == (True, None)
    assert site.there.head().startswith(receipt["details"]["after_commit"])
    assert site.ran()[-1] == "two"


@pytest.mark.accepts(
    "C-001", "C-008", "C-010", "C-014", "C-047", "C-113", "C-127", "C-128", "C-149"
)
def test_a_single_pass_obeys_flags_and_hands_too(site):
    site.ok("once")
    site.until("OrionMX", state="running")
    task = site.drop("pause", label="disk swap")
    done = site.ok("once", "--json").json
    assert site.receipt(task)["success"] is True
    assert site.marker.exists()
    (check,) = done["workers"]
    assert (check["running"], check["paused"]) == (False, True)
    beat = json.loads(site.beat.read_text())
    assert (beat["success"], beat["actions"][0]["label"]) == (True, "disk swap")

    task = site.drop("verify_db")
    failed = site.run("once", "--json")
    assert failed.code == 1
    assert any("verify_db" in problem for problem in failed.json["problems"])
    assert site.receipt(task)["success"] is False
    beat = json.loads(site.beat.read_text())
    assert beat["success"] is False
    assert "verify_db" in beat["error"]

    site.marker.unlink()
    (check,) = site.ok("once", "--json").json["workers"]
    assert (check["running"], check["paused"]) == (True, False)
    assert not site.marker.exists()
    assert "[SUPERVISOR]" in site.shared_log()


@pytest.mark.accepts("P17", "C-138", "E-43")
def test_a_share_that_goes_and_comes_back_changes_nothing(site):
    site.ok("start")
    site.until("OrionMX", state="running")
    site.ok("pause", "OrionMX")
    eventually(site.marker.exists, what="the marker")
    away = site.folder / "elsewhere"
    site.share.rename(away)
    eventually(lambda: site.events("share.unreachable"), what="the share is missed")
    assert not site.share.exists()
    assert site.worker("OrionMX")["admin"] == "paused"
    site.ok("resume", "OrionMX")
    site.until("OrionMX", state="running")
    away.rename(site.share)
    eventually(lambda: len(site.events("share.reachable")) == 2, what="the share is back")
    eventually(lambda: not site.marker.exists(), what="the old marker goes")
    assert site.worker("OrionMX")["state"] == "running"
    assert site.obeyed("diagnostics")["success"] is True


@pytest.mark.accepts("E-26", "E-27", "E-28", "C-049", "C-056", "C-113")
def test_a_flag_by_the_command_line_is_one_job_from_its_announcement_to_its_receipt(site):
    site.ok("start")
    told = site.ok("flag", "create", "pause_watcher", "--label", "by hand", "--json").json
    receipt = site.receipt(told["task_id"])
    assert (receipt["success"], receipt["job_id"]) == (True, told["job_id"])

    def actions() -> list[str]:
        return sorted(row["action"] for row in site.audit() if told["task_id"] in json.dumps(row))

    whole = ["pause", "pause.announced", "pause.succeeded"]
    eventually(lambda: actions() == whole, what="the whole story in the audit")
    site.marker.unlink()  # a hand at the marker is an order
    site.until("OrionMX", state="running", admin="enabled")
    site.marker.touch()
    site.until("OrionMX", state="stopped", admin="paused")
