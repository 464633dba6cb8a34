"""Single passes: real programs, real workers that outlive them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from journeys.site import eventually, is_gone

SLOW_STOP = (
    "import signal, sys, time\n"
    "def end(*_):\n"
    "    open('asked', 'w').close()\n"
    "    time.sleep(3)\n"
    "    sys.exit(0)\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "print('up', flush=True)\n"
    "while True: time.sleep(60)\n"
)


SHARED = (
    *("00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS"),
    *("Worker_Inbox", "Worker_Outbox"),
)


def begin(site, *words):
    """Begin a pass without waiting for its end."""
    return subprocess.Popen(
        [sys.executable, "-m", "uphold", "-c", str(site.config), "once", *words],
        cwd=site.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def found(site, name):
    """Do a pass and give what it says of one worker, with its exit code."""
    answer = site.run("once", "--json")
    return answer.code, {each["name"]: each for each in answer.json["workers"]}[name]


@pytest.mark.accepts(
    "C-002", "C-014", "C-006", "C-017", "C-018", "C-019", "C-140", "C-T01", "C-T04"
)
def test_workers_outlive_a_pass_and_the_next_ones_find_them_again(site):
    site.workers(web="exec sleep 600", db="echo hello from db; exec sleep 600")
    first = site.ok("once")
    assert "started web: declared" in first.out
    assert "all is well" in first.out
    said = [line.split("] ", 3)[-1] for line in first.err.splitlines()]
    kept = (site.home / "logs" / "supervisor.log").read_text()
    assert said
    assert all(line in kept for line in said), "the same lines on stderr as in the log"
    pids = {name: site.worker(name)["pid"] for name in ("web", "db")}
    eventually(lambda: "hello from db" in site.log("db"), what="output straight in its file")
    for _ in range(3):
        code, check = found(site, "web")
        assert code == 0
        assert (check["running"], check["healthy"], check["paused"]) == (True, True, False)
        assert (check["state"], check["heartbeat"]) == ("running", "none")
    assert {name: site.worker(name)["pid"] for name in ("web", "db")} == pids
    assert not (site.home / "control.sock").exists()
    assert not any("pump" in path.name for path in (site.home / "slots").iterdir())
    beat = json.loads((site.home / "heartbeat.json").read_text())
    assert beat["summary"] == "2 of 2 workers running."
    assert site.ok("stop").code == 0
    assert all(is_gone(pid) for pid in pids.values())


@pytest.mark.accepts("C-007", "C-118", "C-148", "B-61", "B-72", "C-T05")
def test_a_worker_that_crashes_is_tried_once_in_each_pass_and_told_of(site):
    site.workers(
        web={
            "command": "echo try >> tries; exit 3",
            "shell": True,
            "backoff": {"first": "0s", "base": "1ms", "jitter": 0},
        },
        db="exec sleep 600",
    )
    for number in (1, 2, 3):
        answer = site.run("once", "--json")
        assert answer.code == 1
        assert (site.folder / "tries").read_text().count("try") == number
        web, db = answer.json["workers"]
        assert (web["running"], web["healthy"], web["state"]) == (False, False, "backoff")
        assert "exited with code 3" in web["problem"]
        assert db["healthy"]
        assert web["problem"] in answer.json["problems"]


@pytest.mark.accepts("C-010", "C-149", "B-63", "C-T08", "C-T09")
def test_a_held_worker_is_left_down_and_is_no_problem(site):
    site.workers(web="exec sleep 600", db="exec sleep 600")
    site.ok("start")
    site.ok("pause", "web")
    site.ok("stop", "--keep-workers")
    code, check = found(site, "web")
    assert code == 0
    assert (check["running"], check["paused"], check["problem"]) == (False, True, None)
    code, check = found(site, "db")
    assert (code, check["running"], check["paused"]) == (0, True, False)


@pytest.mark.accepts("C-003")
def test_of_two_that_overlap_one_acts(site):
    ready = {"exec": ["test", "-e", "go"], "every": "100ms"}
    site.workers(web={"command": ["sleep", "600"], "ready": ready})
    first = begin(site)
    eventually(lambda: (site.home / "lock").exists() and site.pid, what="the first pass to own it")
    second = site.run("once", "--json")
    assert second.code == 0
    assert second.json["acted"] is False
    assert "already owns" in second.json["owner"]
    (site.folder / "go").touch()
    out, err = first.communicate(timeout=60)
    site.outputs += [out, err]
    assert first.returncode == 0, (out, err)
    assert site.worker("web")["generation"] == 1


@pytest.mark.accepts("C-003")
def test_a_pass_leaves_a_running_supervisor_alone(site):
    site.workers(web="exec sleep 600")
    site.ok("start")
    before = site.worker("web")
    answer = site.ok("once")
    assert "nothing done" in answer.out
    assert site.worker("web")["pid"] == before["pid"]
    assert site.status()["supervisor"]["ownership"] == "running"


def test_passes_and_supervisors_take_turns_and_restart_nobody(site):
    site.workers(web="echo one; exec sleep 600", db="exec sleep 600")
    site.ok("start")
    pids = {name: site.worker(name)["pid"] for name in ("web", "db")}
    pump = {row["slot"]: row for row in site.run("status", "--all", "--json").json["workers"]}
    pump_pid = pump["@pump"]["pid"]
    site.kill_supervisor()
    for _ in range(2):
        assert site.ok("once", "--json").json["actions"] == []
    assert not is_gone(pump_pid), "it is left as it is"
    site.ok("start")
    assert {name: site.worker(name)["pid"] for name in ("web", "db")} == pids
    pump = {row["slot"]: row for row in site.run("status", "--all", "--json").json["workers"]}
    assert pump["@pump"]["pid"] == pump_pid
    site.ok("stop", "--keep-workers")
    os.kill(pids["web"], signal.SIGKILL)
    eventually(lambda: is_gone(pids["web"]), what="web gone")
    acted = site.ok("once", "--json").json["actions"]
    assert [(each["slot"], each["did"]) for each in acted] == [("web", "started")]
    eventually(lambda: site.log("web").count("one") == 2, what="its output in the same log")
    straight = site.worker("web")["pid"]
    site.ok("start")
    assert site.worker("web")["pid"] == straight, "its terms are the same, wherever it writes to"
    assert site.worker("db")["pid"] == pids["db"]
    site.ok("restart", "web")
    eventually(lambda: site.log("web").count("one") == 3, what="the pump writes it again")


def test_a_pass_that_is_killed_leaves_nothing_wrong(site):
    ready = {"exec": ["test", "-e", "go"], "every": "100ms"}
    site.workers(web={"command": ["sleep", "600"], "ready": ready}, db="exec sleep 600")
    first = begin(site)

    def under_way():
        rows = {row["slot"]: row for row in site.status()["workers"]}
        return rows.get("web", {}).get("pid") and rows.get("db", {}).get("pid")

    eventually(under_way, what="both to be started")
    pids = {row["slot"]: row["pid"] for row in site.status()["workers"]}
    site.kill_supervisor()
    out, err = first.communicate(timeout=60)
    site.outputs += [out, err]
    assert first.returncode == 1
    assert "UPH_PASS_BROKEN" in err
    (site.folder / "go").touch()
    assert site.ok("once", "--json").json["actions"] == []
    assert {row["slot"]: row["pid"] for row in site.status()["workers"]} == pids


@pytest.mark.accepts("C-009", "C-015", "C-016", "C-T02", "C-T03")
def test_a_configuration_that_is_missing_or_wrong_is_told_of_and_nothing_is_touched(site):
    site.workers(web="exec sleep 600")
    site.ok("once")
    pid = site.worker("web")["pid"]
    site.write("[workers.web\n")
    wrong = site.run("once")
    assert wrong.code == 1
    assert "uphold.toml:1" in wrong.err
    site.config.unlink()
    missing = site.run("once")
    assert missing.code == 1
    assert "UPH_CONFIG_MISSING" in missing.err
    assert not is_gone(pid)
    site.workers(web="exec sleep 600")
    unknown = site.run("once", "--worker-id", "wbe")
    assert unknown.code == 1
    assert "Did you mean 'web'?" in unknown.err


@pytest.mark.accepts("C-004")
def test_one_worker_may_be_judged_alone(site):
    site.workers(web="exec sleep 600", bad="exit 1")
    assert site.run("once", "--worker-id", "web").code == 0
    assert site.run("once", "--worker-id", "bad").code == 1
    assert site.run("once", "--worker-id", "site").code == 1, "the supervisor's name means all"


@pytest.mark.accepts("C-012", "C-013", "B-71")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pass_that_is_told_to_end_finishes_what_it_has_begun(site, number):
    (site.folder / "slow.py").write_text(SLOW_STOP)
    command = [sys.executable, "slow.py"]
    site.workers(web={"command": command})
    site.ok("once")
    old = site.worker("web")["pid"]
    eventually(lambda: "up" in site.log("web"), what="its handler to be there")
    site.workers(web={"command": command, "environment": {"EDITION": "2"}})
    beat = (site.home / "heartbeat.json").stat().st_mtime_ns
    cut = begin(site)
    eventually((site.folder / "asked").exists, what="the slow stop")
    cut.send_signal(number)
    out, err = cut.communicate(timeout=60)
    site.outputs += [out, err]
    row = site.worker("web")
    assert is_gone(old)
    assert row["state"] == "running", (out, err)
    assert (row["generation"], cut.returncode in (0, 1)) == (2, True)
    assert (site.home / "heartbeat.json").stat().st_mtime_ns > beat
    assert "supervisor stopped" in (site.home / "logs" / "supervisor.log").read_text()
    assert site.ok("once", "--json").json["actions"] == []


def share_of(site, *workers):
    """Give the site a share with an inbox."""
    top = site.folder / "share"
    for name in SHARED:
        (top / name).mkdir(parents=True)
    site.workers(**dict.fromkeys(workers, "exec sleep 600"))
    site.write(f'{site.config.read_text()}[inbox]\nshare = "share"\n')
    return top


def drop(top, handler, worker, task_id):
    """Put a flag into the inbox, as somebody with nothing but the share would."""
    flag = {"task_id": task_id, "handler": handler, "worker_id": worker, "label": "by hand"}
    temp = top / "Worker_Inbox" / f".{task_id}.tmp"
    temp.write_text(json.dumps(flag))
    temp.rename(top / "Worker_Inbox" / f"supervisor_{handler}_{worker}.flag")


def receipt(top, task_id):
    (path,) = (top / "Worker_Outbox").glob(f"*_{task_id}_*.json")
    return json.loads(path.read_text())


@pytest.mark.accepts("C-001", "C-008", "C-010", "C-149", "B-61", "B-62")
def test_a_pass_obeys_flags_before_it_starts_anybody(site):
    top = share_of(site, "web")
    drop(top, "pause_watcher", "web", "t1")
    held = site.ok("once", "--json").json
    assert held["actions"] == [], "it was never started"
    assert held["workers"][0]["paused"] is True
    assert receipt(top, "t1")["success"] is True
    drop(top, "resume_watcher", "web", "t2")
    lifted = site.ok("once", "--json").json
    assert [(each["slot"], each["did"]) for each in lifted["actions"]] == [("web", "started")]
    assert receipt(top, "t2")["success"] is True
    pid = site.worker("web")["pid"]
    drop(top, "restart_watcher", "web", "t3")
    again = site.ok("once", "--json").json
    assert [each["did"] for each in again["actions"]] == ["stopped", "started"]
    assert site.worker("web")["pid"] != pid
    drop(top, "update_code", "web", "t4")
    failed = site.run("once", "--json")
    assert failed.code == 1, "a handler that failed"
    assert any("update_code" in problem for problem in failed.json["problems"])
    assert receipt(top, "t4")["success"] is False
    (beat,) = (top / "00_STATE").glob("supervisor_heartbeat_*.json")
    told = json.loads(beat.read_text())
    assert (told["success"], "update_code" in told["error"]) == (False, True)


@pytest.mark.accepts("C-004")
def test_only_the_flags_of_the_worker_that_a_pass_is_about_are_obeyed(site):
    top = share_of(site, "web", "db")
    drop(top, "pause_watcher", "web", "t1")
    drop(top, "pause_watcher", "db", "t2")
    report = site.ok("once", "--worker-id", "web", "--json").json
    assert [(each["name"], each["paused"]) for each in report["workers"]] == [("web", True)]
    left = [path.name for path in (top / "Worker_Inbox").iterdir() if path.is_file()]
    assert left == ["supervisor_pause_watcher_db.flag"]
    assert site.worker("db")["state"] == "running", "it is looked after all the same"


@pytest.mark.accepts("C-012", "C-013", "B-71")
def test_a_flag_that_cannot_come_true_does_not_make_a_pass_deaf(site):
    top = share_of(site, "web", "db")
    site.write(site.config.read_text().replace("[workers.web]", "[workers.web]\ndepends_on=['db']"))
    drop(top, "pause_watcher", "web", "t1")
    drop(top, "pause_watcher", "db", "t2")
    site.ok("once")
    drop(top, "resume_watcher", "web", "t3")
    cut = begin(site)
    try:
        log = site.home / "logs" / "supervisor.log"
        eventually(lambda: "resume_watcher: begun" in log.read_text(), what="the flag")
        cut.send_signal(signal.SIGTERM)
        site.outputs += cut.communicate(timeout=60)
    finally:
        cut.kill()
        cut.wait()
    assert cut.returncode == 1
    assert "still under way as" in receipt(top, "t3")["error"]
    drop(top, "resume_watcher", "db", "t4")
    site.ok("once")
    assert [site.worker(name)["state"] for name in ("web", "db")] == ["running", "running"]


@pytest.mark.accepts("C-001")
def test_a_pass_ends_with_everything_copied_and_a_heartbeat_in_the_database(site):
    site.workers(web="exec sleep 600")
    shared = site.folder / "shared.db"
    site.write(f"{site.config.read_text()}[store]\nurl = 'sqlite:///{shared}'\n")
    beats = []
    for _ in range(2):
        site.ok("once")
        with closing(sqlite3.connect(shared)) as there:
            rows = there.execute("SELECT worker_id, last_heartbeat_at FROM workers_t").fetchall()
            (copied,) = there.execute("SELECT count(*) FROM events_t").fetchone()
        with closing(sqlite3.connect(site.home / "journal.db")) as here:
            (recorded,) = here.execute("SELECT count(*) FROM events_t").fetchone()
        assert copied == recorded
        beats.append(dict(rows))
    assert set(beats[0]) == {"supervisor_site", "web"}
    assert all(beats[1][name] > beats[0][name] for name in beats[0])
    shown = site.run("status", "--all", "--json").json["workers"]
    assert [row["slot"] for row in shown] == ["web"], "no recorder is left running"


@pytest.mark.accepts("C-009", "E-43")
def test_without_its_share_and_its_database_a_pass_does_the_rest(site):
    site.workers(web="exec sleep 600")
    site.write(
        f"{site.config.read_text()}[inbox]\nshare = 'nowhere'\n"
        "[store]\nurl = 'postgresql://uphold:secret-word@127.0.0.1:1/uphold'\n"
    )
    answer = site.run("once", "--json")
    assert answer.code == 1
    told = " ".join(answer.json["problems"])
    assert "nowhere" in told
    assert "127.0.0.1" in told
    assert "secret-word" not in answer.out + answer.err
    assert answer.json["workers"][0]["healthy"] is True
    assert "127.0.0.1" in answer.err, "on stderr too"
