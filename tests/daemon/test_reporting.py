from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from daemon.sharesides import INBOX, WORKER, Place
from uphold.core import orders

DIAGNOSE = orders.Diagnose(names=("OrionMX",))
VERIFY = orders.VerifyDatabase(names=("OrionMX",))
SECTIONS = {"process", "heartbeat", "database", "paths", "disk", "log", "inbox", "audit"}


def report_of(job):
    return json.loads(Path(job.details["report_path"]).read_text())


def sections(report):
    return {name: each.get("content", each) for name, each in report["sections"].items()}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, WORKER + INBOX + '[deploy]\nrepo = "."\nworkers = ["OrionMX"]\n')


@pytest.mark.accepts(
    "C-024", "C-085", "C-087", "C-088", "C-089", "C-090", "C-091", "C-092", "C-093"
)
def test_a_report_has_every_section_and_lies_on_the_share(place):
    lines = [f"line {number}" for number in range(60)]
    (place.top / "05_LOGS" / "watcher.log").write_text("\n".join(lines) + "\n")
    beat = {"watcher_id": "OrionMX", "status": "idle", "utc": "2026-01-01T00:00:00.000Z"}
    (place.top / "00_STATE" / "watcher_heartbeat_OrionMX.json").write_text(json.dumps(beat))

    async def story():
        await place.look()
        place.drop("pause_watcher", "task_9")
        return await place.order(DIAGNOSE)

    job = place.play(story)
    path = Path(job.details["report_path"])
    assert path.parent == place.top / "05_LOGS" / "diagnostics"
    assert path.name.startswith("diagnostics_OrionMX_")
    report = report_of(job)
    assert set(report["sections"]) == SECTIONS
    assert report["hostname"] == os.uname().nodename
    told = sections(report)
    assert told["process"]["running"] is True
    assert (told["heartbeat"]["fresh"], told["heartbeat"]["healthy"]) == (True, True)
    assert told["heartbeat"]["paused"] is False
    assert told["paths"]["all_accessible"] is True
    assert len(told["paths"]["paths"]) == 6
    assert told["disk"]["total_bytes"] >= told["disk"]["free_bytes"] > 0
    assert told["log"]["lines"] == lines[-50:]
    assert [each["name"] for each in told["inbox"]["files"]] == [
        "supervisor_pause_watcher_task_9.flag"
    ]
    assert told["audit"]["rows"][0]["action"] == "diagnose"


@pytest.mark.accepts("C-095")
def test_a_section_that_fails_is_told_of_and_the_others_are_there(place):
    async def story():
        await place.look()
        (place.top / "02_WORK").rmdir()
        return await place.order(DIAGNOSE)

    job = place.play(story)
    told = sections(report_of(job))
    assert job.row.state == "succeeded"
    assert told["paths"]["all_accessible"] is False
    assert told["paths"]["paths"]["02_WORK"]["accessible"] is False
    assert told["paths"]["paths"]["01_RAW"]["accessible"] is True
    assert told["log"]["found"] is False
    assert told["heartbeat"]["found"] is False


@pytest.mark.accepts("C-094", "C-T27", "C-T28", "C-154")
def test_the_label_is_in_the_report_and_in_its_name(place):
    async def story():
        place.drop("diagnostics", "task_1", label="before the move")
        await place.look()

    place.play(story)
    (receipt,) = place.receipts()
    path = Path(receipt["details"]["report_path"])
    assert path.name.endswith("_before_the_move.json")
    report = json.loads(path.read_text())
    assert (report["label"], report["task_id"]) == ("before the move", "task_1")


def test_without_a_share_the_report_lies_in_the_home(tmp_path):
    place = Place(tmp_path, WORKER)
    place.home.logs.mkdir()
    place.home.log("OrionMX").write_text("hello\n")

    async def story():
        return await place.order(DIAGNOSE)

    job = place.play(story)
    assert Path(job.details["report_path"]).parent == place.home.path / "reports"
    told = sections(report_of(job))
    assert told["log"]["lines"] == ["hello"]
    assert told["process"]["running"] is True


@pytest.mark.accepts("C-095", "P17")
def test_a_share_that_is_away_keeps_no_report_from_being_written(place):
    async def story():
        await place.look()
        place.top.rename(place.folder / "elsewhere")
        place.top.mkdir()
        return await place.order(DIAGNOSE)

    job = place.play(story)
    assert list(place.top.iterdir()) == []
    report = report_of(job)
    assert sections(report)["process"]["running"] is True
    assert str(place.top) in report["sections"]["disk"]["error"]["message"]
    assert any(problem.startswith("disk: ") for problem in job.details["problems"])


@pytest.mark.accepts("C-102", "C-104", "C-T30")
def test_without_a_database_its_check_fails_and_says_why(place):
    async def story():
        return await place.order(VERIFY)

    job = place.play(story)
    assert job.row.state == "failed"
    assert "[store]" in job.row.error


@pytest.mark.accepts(
    "C-086", "C-096", "C-097", "C-098", "C-099", "C-100", "C-101", "C-103", "C-T29", "C-T31"
)
def test_a_database_is_checked_and_the_report_kept(tmp_path):
    tables = ["containers_t", "jobs_t", "workers_t", "segments_t"]
    store = f'[store]\nurl = "sqlite:///{tmp_path}/shared.db"\n'
    store += f"critical_tables = {json.dumps(tables)}\n"
    place = Place(tmp_path, WORKER + INBOX + store)
    with closing(sqlite3.connect(tmp_path / "shared.db")) as database:
        for table in tables:
            database.execute(f"CREATE TABLE {table} (id)")

    async def story():
        place.drop("verify_db", "task_1", label="monday")
        await place.look()
        return await place.order(DIAGNOSE)

    job = place.play(story)
    (receipt,) = place.receipts()
    path = Path(receipt["details"]["report_path"])
    assert path.parent == place.top / "05_LOGS" / "diagnostics"
    assert path.name.startswith("db_verification_OrionMX_")
    report = json.loads(path.read_text())
    assert (report["label"], report["task_id"]) == ("monday", "task_1")
    results = {each["check"]: each["result"] for each in report["checks"]}
    assert results["connection"] == "ok"
    assert receipt["success"] is report["ok"] is True
    assert {f"table {table}" for table in tables} < set(results)
    assert (results["server"], results["time zone"]) == ("ok", "ok")
    told = sections(report_of(job))["database"]
    assert told["connected"] is True
    assert told["server_time"].endswith("Z")
