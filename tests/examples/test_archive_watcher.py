"""The watcher of examples/archive-watcher, by itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from uphold.config.loading import load
from uphold.errors import ConfigInvalid
from uphold.testing.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "archive-watcher"


@pytest.fixture
def place(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "orion")
    subprocess.run([sys.executable, "make_share.py"], cwd=tmp_path / "orion", check=True)
    return tmp_path / "orion"


@pytest.fixture
def watcher(place):
    process = subprocess.Popen(
        [sys.executable, "watcher.py"],
        cwd=place,
        env={"PATH": os.environ["PATH"], "SHARE_ROOT": "./share"},
        stdout=subprocess.DEVNULL,
    )
    until(lambda: heartbeat(place))
    yield process
    process.kill()
    process.wait()


def heartbeat(place):
    path = place / "share/00_STATE/watcher_heartbeat_OrionMX.json"
    return json.loads(path.read_text()) if path.exists() else None


def drop(place, name):
    path = place / "share/Worker_Inbox" / f"{name}.task.json"
    path.write_text("{}")
    return place / "share/04_PUBLISH" / path.name


@pytest.mark.accepts("C-022")
def test_a_task_is_claimed_archived_and_logged_while_the_watcher_beats(place, watcher):
    beat = heartbeat(place)
    assert list(beat) == ["watcher_id", "pid", "hostname", "status", "utc", "poll_seconds"]
    assert (beat["watcher_id"], beat["pid"]) == ("OrionMX", watcher.pid)
    done = drop(place, "one")
    until(lambda: heartbeat(place)["status"] == "busy", within=60)
    until(done.exists, within=60)
    assert "archived one.task.json" in (place / "share/05_LOGS/watcher.log").read_text()


@pytest.mark.accepts("C-050", "D-28")
def test_a_task_under_way_is_finished_before_it_ends(place, watcher):
    done = drop(place, "two")
    until((place / "share/02_WORK/two.task.json").exists, within=60)
    watcher.send_signal(signal.SIGTERM)
    assert watcher.wait(60) == 0
    assert done.exists()


@pytest.mark.accepts("C-068")
def test_with_the_pause_marker_it_claims_nothing(place, watcher):
    marker = place / "share/00_STATE/supervisor_pause_OrionMX.flag"
    marker.write_text("{}")
    first = heartbeat(place)["utc"]
    until(lambda: heartbeat(place)["utc"] > first, within=60)
    done = drop(place, "three")
    second = heartbeat(place)["utc"]
    until(lambda: heartbeat(place)["utc"] > second, within=60)
    assert not done.exists()
    marker.unlink()
    until(done.exists, within=60)


@pytest.mark.accepts("C-005", "C-134", "C-155")
def test_its_configuration_is_right_and_takes_the_share_from_the_environment_file(place):
    shutil.copy(place / ".env.example", place / ".env")
    settings = load(place / "config.dev.yaml", environ={})
    assert settings.supervisor.name == "OrionMX"
    assert settings.inbox.share == str(place / "share")
    assert settings.deploy.workers == ("OrionMX",)


@pytest.mark.accepts("C-144")
def test_its_watcher_has_thirty_seconds_to_end(place):
    settings = load(place / "config.dev.yaml", environ={"SHARE_ROOT": str(place / "share")})
    assert settings.workers[0].stop.grace == 30.0


@pytest.mark.accepts("C-135")
@pytest.mark.parametrize("wrong", ["nmae: OrionMX", "name: 'two words'", "heartbeat_every: never"])
def test_its_supervisor_section_is_looked_at(place, wrong):
    config = place / "config.dev.yaml"
    config.write_text(config.read_text().replace("name: OrionMX", wrong))
    with pytest.raises(ConfigInvalid) as caught:
        load(config, environ={"SHARE_ROOT": str(place / "share")})
    assert "supervisor" in str(caught.value)


@pytest.mark.timeout(400)
@pytest.mark.accepts("C-108", "C-117")
def test_the_watcher_is_found_however_it_was_launched(place):
    (place / ".env").write_text(f"SHARE_ROOT={place / 'share'}\n")

    def uphold(*words):
        argv = [sys.executable, "-m", "uphold", "-c", "config.dev.yaml", *words]
        return subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False)

    def row():
        (found,) = json.loads(uphold("status", "--json").stdout)["workers"]
        return found

    try:
        ran = uphold("once")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        by_a_pass = row()
        assert by_a_pass["state"] == "running"
        pid = by_a_pass["pid"]
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        assert words[1:6] == ["watcher.py", "--config", "config.dev.yaml", "--worker-id", "OrionMX"]
        assert Path(f"/proc/{pid}/cwd").resolve() == place.resolve()
        assert uphold("start").returncode == 0
        assert (row()["state"], row()["pid"]) == ("running", pid)
        assert uphold("pause", "OrionMX").returncode == 0
        assert (row()["state"], row()["pid"]) == ("stopped", None)
        assert uphold("resume", "OrionMX").returncode == 0
        assert row()["state"] == "running"
        assert row()["pid"] != pid
    finally:
        stopped = uphold("stop")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr


@pytest.mark.timeout(600)
@pytest.mark.accepts("C-138", "C-154", "C-T14", "C-T15", "C-T16", "C-T17", "C-T19")
@pytest.mark.accepts("C-T24", "C-T26", "C-T28", "C-T31")
def test_the_walk_drops_every_flag_and_finds_what_each_leaves_behind(tmp_path):
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE / "walk.py"), str(tmp_path / "walk")],
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    parts = ran.stdout.split("\n=== ")[1:]
    assert [part.split()[1] for part in parts] == [
        *("pause_watcher", "resume_watcher", "restart_watcher", "update_code"),
        *("update_code_deps", "rollback_code", "diagnostics", "verify_db"),
    ]
    for part in parts:
        task = json.loads(part.partition("flag: ")[2].splitlines()[0])
        assert f"supervisor_result_{task['handler']}_{task['task_id']}_" in part
        assert f"[{task['task_id']} - {task['label']}]" in part
        assert re.search(rf"\.succeeded +OrionMX +\[{task['label']}\]", part)
        assert ("the watcher is held" in part) == (task["handler"] == "pause_watcher")
    assert not (tmp_path / "walk/orion/release.txt").exists()
    assert not list((tmp_path / "walk/share/Worker_Inbox").glob("*.flag"))
