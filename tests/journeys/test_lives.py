"""The life of a supervisor as its user sees it: start, look, kill, start again, stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from journeys.site import eventually, is_gone

pytestmark = pytest.mark.slow


@pytest.mark.accepts("D-01", "D-04", "D-11", "D-12", "D-27", "D-34", "D-39", "P3", "R-08")
def test_what_is_declared_runs_and_stop_leaves_nothing(site):
    site.workers(web="exec sleep 1000", db="exec sleep 1001")
    site.ok("start")
    seen = site.ok("status", "--json").json
    assert seen["supervisor"]["ownership"] == "running"
    pids = [row["pid"] for row in seen["workers"]]
    assert all(not is_gone(pid) for pid in pids)
    site.ok("stop")
    assert all(is_gone(pid) for pid in [*pids, seen["supervisor"]["pid"]])
    assert site.processes() == []
    assert site.run("status").code == 3
    assert site.ok("stop").code == 0, "stopping twice is harmless"
    site.ok("start")
    site.until("web", state="running")


@pytest.mark.accepts("D-05", "P1", "B-04", "D-09")
def test_a_second_start_names_the_owner_and_changes_nothing(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    before = (site.home / "lock").read_bytes()
    again = site.run("start")
    assert again.code == 100
    assert str(site.pid) in again.err
    assert (site.home / "lock").read_bytes() == before


@pytest.mark.accepts("D-06", "P1")
def test_of_fifty_simultaneous_starts_exactly_one_wins(site):
    site.workers(web="exec sleep 1000")
    starts = [
        subprocess.Popen(
            [sys.executable, "-m", "uphold", "-c", str(site.config), "start"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(50)
    ]
    codes = []
    for start in starts:
        _, err = start.communicate(timeout=90)
        codes.append((start.returncode, err))
    assert sorted(code for code, _ in codes) == [0] + [100] * 49, codes
    assert site.status()["supervisor"]["ownership"] == "running"


@pytest.mark.accepts("P2", "P6", "E-09", "R-06", "R-07", "R-09", "B-12", "D-10", "B-83")
def test_workers_survive_a_killed_supervisor_and_are_adopted(site):
    site.workers(web="exec sleep 1000", db="exec sleep 1001")
    site.ok("start")
    before = {row["slot"]: row for row in site.status()["workers"]}
    dead = site.kill_supervisor()
    first, second = site.run("status", "--json"), site.run("status", "--json")
    assert first.code == second.code == 1
    assert first.json["supervisor"]["ownership"] == "stale"
    assert [r["state"] for r in first.json["workers"]] == ["running", "running"]
    assert [(r["slot"], r["pid"]) for r in first.json["workers"]] == [
        (r["slot"], r["pid"]) for r in second.json["workers"]
    ]
    site.ok("start")
    after = {row["slot"]: row for row in site.status()["workers"]}
    assert site.pid != dead
    for slot in before:
        assert after[slot]["pid"] == before[slot]["pid"]
        assert after[slot]["restarts"] == before[slot]["restarts"] == 0
        assert after[slot]["generation"] == before[slot]["generation"]


@pytest.mark.accepts("P13", "B-10")
def test_no_line_is_lost_or_doubled_across_a_kill_and_a_restart(site):
    site.workers(chatty="i=0; while :; do i=$((i+1)); echo line $i; sleep 0.005; done")
    site.ok("start")
    for _ in range(3):
        lines = len(site.log("chatty").splitlines())
        eventually(lambda n=lines: len(site.log("chatty").splitlines()) > n + 20)
        site.kill_supervisor()
        site.ok("start")
    site.ok("restart", "--keep-workers")
    site.ok("stop")
    numbers = [int(line.split()[1]) for line in site.log("chatty").splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 60


@pytest.mark.accepts(
    "C-115", "P4", "D-24", "D-25", "D-26", "R-13", "R-14", "R-16", "D-32", "B-41", "S24"
)
def test_a_worker_that_ignores_term_is_killed_after_its_grace_and_this_is_logged(site):
    site.workers(
        stubborn={
            "command": "trap '' TERM; touch deaf; while :; do sleep 1; done",
            "shell": True,
            "stop": {"grace": "500ms"},
        }
    )
    site.ok("start")
    eventually((site.folder / "deaf").exists)
    pid = site.worker("stubborn")["pid"]
    site.ok("stop", "stubborn")
    assert is_gone(pid)

    def is_logged():
        log = (site.home / "logs" / "supervisor.log").read_text()
        return any("stubborn" in line and "forced" in line for line in log.splitlines())

    eventually(is_logged, what="it is written a moment after it was done")


@pytest.mark.accepts("E-08", "P3", "S24")
def test_a_double_forked_daemon_with_its_own_session_is_not_left_behind(site):
    script = (
        "import os,time\n"
        "if os.fork(): time.sleep(1000)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "open('grandchild','w').write(str(os.getpid()))\n"
        "time.sleep(1000)\n"
    )
    site.workers(forker={"command": [sys.executable, "-c", script]})
    site.ok("start")
    path = site.folder / "grandchild"
    grandchild = int(eventually(lambda: path.exists() and path.read_text()))
    assert not is_gone(grandchild)
    site.ok("stop", "forker")
    assert is_gone(grandchild)


@pytest.mark.accepts("B-72", "E-10", "D-33", "D-37", "E-23")
def test_a_command_that_does_not_exist_fails_with_its_reason_and_nothing_else_suffers(site):
    site.workers(good="exec sleep 1000", bad={"command": ["no-such-program-here"]})
    site.ok("start")
    row = site.until("bad", state="failed")
    assert "no-such-program-here" in row["why"]
    assert row["last_error"]["code"].startswith("UPH_")
    assert site.worker("good")["state"] == "running"
    assert "no-such-program-here" in site.ok("why", "bad").out
    assert "no-such-program-here" in site.ok("logs").out
    assert site.run("status").code == 150


@pytest.mark.accepts("P8", "D-19", "R-15")
def test_a_worker_that_exits_at_once_backs_off_and_says_so(site):
    site.workers(flappy="exit 3")
    site.ok("start")
    row = site.until("flappy", state="backoff")
    assert row["exit"]["code"] == 3
    assert row["next_attempt_at"]
    assert "code 3" in row["why"]
    # Asked on a busy machine, it may just be having another go.
    eventually(lambda: "back-off" in site.ok("why", "flappy").out)
    assert site.run("start", "flappy").code == 1, "an order that failed says so"


@pytest.mark.accepts("D-29", "D-30", "D-31", "B-53")
def test_restart_is_a_full_stop_and_start_with_the_same_configuration(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    before = site.status()
    site.ok("restart")
    after = site.status()
    assert after["supervisor"]["pid"] != before["supervisor"]["pid"]
    assert after["supervisor"]["started_at"] > before["supervisor"]["started_at"]
    assert after["supervisor"]["stopped_at"] is None
    assert after["workers"][0]["pid"] != before["workers"][0]["pid"]
    assert after["workers"][0]["state"] == "running"
    site.ok("stop")
    site.ok("restart")
    assert site.worker("web")["state"] == "running"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may enter what belongs to others")
def test_a_restart_by_root_of_another_users_home_is_refused_and_everything_runs_on(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    before, supervisor = site.worker("web")["pid"], site.pid
    os.chown(site.home, 65534, 65534)
    try:
        for words in (["restart"], ["restart", "--keep-workers"]):
            refused = site.run(*words)
            assert (refused.code, refused.out) == (4, ""), refused
            assert "UPH_HOME_UNSAFE" in refused.err
            assert "sudo -u" in refused.err
    finally:
        os.chown(site.home, 0, 0)
    assert (site.pid, site.worker("web")["pid"]) == (supervisor, before)
    assert not is_gone(supervisor)


def test_stop_keep_workers_leaves_them_for_the_next_supervisor(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    pid = site.worker("web")["pid"]
    site.ok("stop", "--keep-workers")
    assert not is_gone(pid)
    site.ok("start")
    assert site.worker("web")["pid"] == pid
    assert site.worker("web")["restarts"] == 0


@pytest.mark.accepts("R-10", "B-13")
def test_stop_of_a_dead_supervisor_ends_the_recorded_workers_itself(site):
    site.workers(web="exec sleep 1000", held="exec sleep 1000")
    site.ok("start")
    site.ok("pause", "held")
    runtime = site.home / "runtime.json"
    eventually(lambda: "held" in json.loads(runtime.read_text())["overrides"])
    pid = site.worker("web")["pid"]
    site.kill_supervisor()
    answer = site.ok("stop")
    assert is_gone(pid), answer
    assert site.processes() == []
    assert site.run("status").code == 3
    shown = json.loads(runtime.read_text())
    assert (shown["running"], shown["pid"], shown["supervisor"]["ownership"]) == (
        False,
        None,
        "stopped",
    )
    assert (shown["workers"]["web"]["state"], shown["workers"]["web"]["pid"]) == ("stopped", None)
    assert set(shown["overrides"]) == {"held"}, "what people ordered is still known there"


@pytest.mark.accepts("P8")
def test_stop_of_a_dead_supervisor_forgets_nobody(site):
    """Whoever ends left-overs declares nothing, and had forgotten who had not run yet."""
    site.workers(
        web="exec sleep 1000",
        crashes={"command": ["false"], "max_restarts": 1},
        job={"command": ["true"], "schedule": {"every": "1h"}},
        off={"command": ["sleep", "1000"], "enabled": False},
        leans={"command": ["sleep", "1000"], "depends_on": {"off": "started"}},
    )
    site.run("start")
    before = site.until("crashes", state="failed")
    started_at = site.status()["supervisor"]["started_at"]
    site.kill_supervisor()
    site.ok("stop")
    after = site.status()
    assert after["supervisor"]["started_at"] == started_at
    states = {row["slot"]: row["state"] for row in after["workers"]}
    assert states == {"web": "stopped", "crashes": "failed", "job": "stopped", "leans": "stopped"}
    shown = json.loads((site.home / "runtime.json").read_text())
    mirrored = {slot: view["state"] for slot, view in shown["workers"].items()}
    assert {slot: mirrored[slot] for slot in states} == states
    assert shown["started_at"] == started_at

    site.run("start")
    again = site.until("crashes", state="failed")
    assert again["restarts"] == before["restarts"], "counters go on"
    assert site.until("leans", state="waiting")["generation"] == 0
    assert site.worker("job")["next_attempt_at"] is not None
    assert site.until("web", state="running")["generation"] == 2


def test_a_frozen_supervisor_is_ended_by_force_and_its_workers_with_it(site):
    site.workers(web={"command": "exec sleep 1000", "shell": True, "stop": {"grace": "1s"}})
    site.ok("start")
    pid, supervisor = site.worker("web")["pid"], site.pid
    os.kill(supervisor, signal.SIGSTOP)
    hasty = site.run("stop", "--timeout", "1", timeout=10)
    assert hasty.code == 1, hasty
    assert not is_gone(supervisor), "a short patience ends nobody"
    answer = site.run("stop", timeout=90)
    assert answer.code == 0, answer
    assert is_gone(pid)
    assert is_gone(supervisor)


@pytest.mark.accepts("E-25")
def test_an_order_to_a_frozen_supervisor_ends_and_may_still_be_found_by_it(site):
    site.workers(web={"command": "exec sleep 1000", "shell": True})
    site.ok("start")
    before = site.worker("web")["generation"]
    os.kill(site.pid, signal.SIGSTOP)
    try:
        late = site.run("restart", "web", "--timeout", "200ms", timeout=30)
    finally:
        os.kill(site.pid, signal.SIGCONT)
    assert late.code == 1
    assert "nothing is known of it" in late.err
    site.until("web", state="running", generation=before + 1)
    assert "restart" in site.ok("jobs").out


@pytest.mark.accepts("P4", "E-20")
def test_a_stop_need_not_be_waited_for_and_goes_on(site):
    slow = "trap 'sleep 3; exit 0' TERM; while :; do sleep 0.05; done"
    site.workers(web={"command": slow, "shell": True, "stop": {"grace": "30s"}})
    site.ok("start")
    worker, supervisor = site.worker("web")["pid"], site.pid
    late = site.run("stop", "--timeout", "200ms", "--label", "late")
    assert late.code == 1
    assert "UPH_ORDER_TIMEOUT" in late.err
    assert not is_gone(supervisor)
    told = site.ok("stop", "--no-wait")
    assert "is stopping" in told.out
    eventually(lambda: is_gone(supervisor), what="its end")
    assert is_gone(worker)
    assert site.run("status").code == 3, "it ended in order"
    (job,) = [
        json.loads(line) for line in site.ok("jobs", "--label", "late", "--json").out.splitlines()
    ]
    assert (job["job_id"] in late.err, job["state"]) == (True, "succeeded")


@pytest.mark.accepts("R-02", "R-04", "D-02", "D-03")
def test_the_state_file_parses_at_every_moment_of_many_restarts(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    reader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import json,sys,time\n"
            "n=0\n"
            "end=time.time()+60\n"
            "while time.time()<end and not __import__('os').path.exists(sys.argv[2]):\n"
            "    try: json.loads(open(sys.argv[1]).read()); n+=1\n"
            "    except FileNotFoundError: pass\n"
            "print(n)\n",
            str(site.home / "runtime.json"),
            str(site.folder / "enough"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    keys = None
    for _ in range(20):
        site.ok("restart", "web")
        assert site.status()["supervisor"]["ownership"] == "running"
        site.ok("restart")
        assert site.worker("web")["state"] == "running"
        mirror = json.loads((site.home / "runtime.json").read_text())
        assert keys in (None, list(mirror))
        keys = list(mirror)
    (site.folder / "enough").touch()
    out, _ = reader.communicate(timeout=30)
    assert reader.returncode == 0
    assert int(out) > 100


@pytest.mark.accepts("D-18")
def test_a_change_of_state_reaches_the_state_file_by_itself(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    pid = site.worker("web")["pid"]

    def mirrored():
        return json.loads((site.home / "runtime.json").read_text())["workers"]["web"]

    eventually(lambda: mirrored()["pid"] == pid)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: mirrored()["pid"] not in (None, pid) and mirrored()["state"] == "running")
    site.ok("stop", "web")
    eventually(lambda: mirrored()["state"] == "stopped")


@pytest.mark.accepts("R-03", "B-11", "D-09")
def test_nobody_but_the_supervisor_writes_its_files(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    eventually((site.home / "runtime.json").exists)
    supervisor = site.pid
    os.kill(supervisor, signal.SIGSTOP)
    try:
        watched = [site.home / "runtime.json", site.home / "lock", site.home / "journal.db"]
        before = [(path.stat().st_ino, path.read_bytes()) for path in watched]
        assert site.run("start").code == 100
        site.run("events")
        site.run("audit")
        site.run("logs", "web")
        site.run("status", "--timeout", "1")
        assert [(path.stat().st_ino, path.read_bytes()) for path in watched] == before
    finally:
        os.kill(supervisor, signal.SIGCONT)


@pytest.mark.accepts("P10")
def test_a_stop_without_a_supervisor_is_audited_with_its_label(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    site.kill_supervisor()
    site.ok("stop", "--label", "rescue", "--reason", "it died")
    lines = [json.loads(line) for line in site.ok("audit", "--json", "-n", "50").out.splitlines()]
    assert [line["action"] for line in lines if line["label"] == "rescue"] == ["shutdown"]
    site.ok("audit", "verify")


def test_start_says_which_workers_failed_at_once(site):
    site.workers(good="exec sleep 1000", bad={"command": ["no-such-program-here"]})
    answer = site.ok("start")
    assert "bad" in answer.err


@pytest.mark.accepts("P6", "D-39")
def test_an_adopted_worker_that_dies_is_not_shown_as_running_and_comes_back(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    pid = site.worker("web")["pid"]
    site.kill_supervisor()
    site.ok("start")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_gone(pid))
    eventually(
        lambda: (site.worker("web")["state"], site.worker("web")["pid"]) != ("running", pid), 2
    )
    row = eventually(lambda: (r := site.worker("web"))["state"] == "running" and r)
    assert row["pid"] != pid
    assert row["restarts"] == 1
    history = [
        json.loads(line) for line in site.ok("events", "web", "--json", "-n", "50").out.splitlines()
    ]
    exits = [e["payload"]["exit"] for e in history if e["payload"].get("exit")]
    assert {"code": None, "signal": 9} in [{k: x[k] for k in ("code", "signal")} for x in exits]


@pytest.mark.accepts("P8")
def test_a_restart_of_everything_tries_failed_workers_again_and_an_upgrade_does_not(site):
    command = "test -e mended && exec sleep 1000; exit 3"
    site.workers(web={"command": command, "shell": True, "max_restarts": 0}, db="exec sleep 1000")
    site.ok("start")
    site.until("web", state="failed")
    (site.folder / "mended").touch()
    site.ok("restart", "--keep-workers")
    assert site.worker("web")["state"] == "failed"
    site.ok("stop")
    site.ok("start")
    assert site.worker("web")["state"] == "failed"
    site.ok("restart")
    site.until("web", state="running")


def test_a_home_whose_path_is_no_utf_8_works(site):
    site.workers(web="exec sleep 1000")
    home = os.fsencode(site.folder) + b"/h\xff"

    def run(*words):
        command = [sys.executable, "-m", "uphold", "-c", str(site.config), "--home", home, *words]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout.decode()

    try:
        assert run("start")[0] == 0
        code, out = run("status", "--json")
        assert code == 0
        assert json.loads(out)["supervisor"]["home"].endswith("h\\udcff")
        assert run("restart", "web")[0] == 0
    finally:
        assert run("stop")[0] == 0
