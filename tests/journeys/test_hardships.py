"""What must hold when the world is unkind: full disks, strangers, damaged files, odd places."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from journeys.site import Site, eventually, is_gone
from proofs import disks

pytestmark = pytest.mark.slow


@pytest.mark.accepts("S01", "S03")
def test_everything_in_the_home_is_for_the_owner_alone(site):
    site.workers(web="echo hello; exec sleep 1000")
    site.ok("start")
    eventually(lambda: "hello" in site.log("web"))
    assert stat.S_IMODE(site.home.stat().st_mode) == 0o700
    open_to_others = [
        path
        for path in site.home.rglob("*")
        if stat.S_IMODE(path.lstat().st_mode) & 0o077 and not path.is_symlink()
    ]
    assert open_to_others == []


@pytest.mark.accepts("S25", "S46", "S02")
def test_a_worker_gets_only_the_listed_descriptors_and_variables(site):
    script = (
        "import os,json\n"
        "fds=sorted(int(f) for f in os.listdir('/proc/self/fd'))\n"
        "json.dump({'fds': fds[:-1], 'env': dict(os.environ)}, open('seen.tmp','w'))\n"
        "os.rename('seen.tmp','seen')\n"
        "import time; time.sleep(1000)\n"
    )
    site.workers(web={"command": [sys.executable, "-c", script]})
    answer = site.run("start", env={"LEAKED_TOKEN": "x", "PYTHONPATH": "/nowhere", "LD_DEBUG": ""})
    assert answer.code == 0, answer
    seen = json.loads(
        eventually(lambda: (site.folder / "seen").exists() and (site.folder / "seen").read_text())
    )
    assert seen["fds"] == [0, 1, 2, 3]
    ours = {"UPHOLD_WORKER", "UPHOLD_SLOT", "UPHOLD_NONCE", "NOTIFY_SOCKET"}
    expected = {"PATH", "HOME", "SITE_TOKEN"} | ours
    allowed = expected | {
        "NOTIFY_SOCKET",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "LC_CTYPE",
    }
    names = {name for name in seen["env"] if not name.startswith("LC_")}
    assert expected - {"HOME"} <= names <= allowed
    cmdlines = b"".join(
        Path(f"/proc/{pid}/cmdline").read_bytes()
        for pid in os.listdir("/proc")
        if pid.isdigit() and Path(f"/proc/{pid}/cmdline").exists()
    )
    assert b"canary-5f1d0c77" not in cmdlines


@pytest.mark.accepts("P14")
def test_a_full_disk_stops_no_worker_and_is_survived(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=755", "tmpfs", folder], check=True)
    site = Site(folder)
    try:
        site.workers(
            web="exec sleep 1000",
            flappy={
                "command": "sleep 0.5; exit 1",
                "shell": True,
                "max_restarts": 100,
                "backoff": {"base": "100ms", "max": "200ms"},
            },
        )
        site.ok("start")
        web = site.worker("web")["pid"]
        ballast = os.open(folder / "ballast", os.O_WRONLY | os.O_CREAT)
        with suppress(OSError):
            while os.write(ballast, b"x" * 4096):
                pass
        os.close(ballast)
        restarts = site.worker("flappy")["restarts"]
        eventually(lambda: site.worker("flappy")["restarts"] > restarts + 2)
        refused = site.run("restart", "web")
        assert refused.code == 1, refused
        assert "record" in refused.err
        assert site.worker("web")["pid"] == web
        (folder / "ballast").unlink()
        eventually(lambda: site.run("stop", "flappy").code == 0)
        site.ok("restart", "web")
        eventually(lambda: site.status()["supervisor"]["last_error"] is None)
        numbers = [
            json.loads(line)["seq"]
            for line in site.ok("events", "--json", "-n", "100000").out.splitlines()
        ]
        assert numbers == sorted(set(numbers))
    finally:
        site.close()
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.accepts("P9", "B-09")
def test_a_damaged_journal_is_set_aside_and_live_workers_are_still_adopted(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    pid = site.worker("web")["pid"]
    site.kill_supervisor()
    (site.home / "journal.db").write_bytes(b"this is not a database" * 100)
    for name in ("journal.db-wal", "journal.db-shm"):
        (site.home / name).unlink(missing_ok=True)
    site.ok("start")
    site.until("web", state="running")
    assert site.worker("web")["pid"] == pid
    assert list(site.home.glob("journal.db.corrupt-*"))
    assert "journal.rescued" in site.ok("events", "--json", "-n", "1000").out
    site.ok("stop")
    assert is_gone(pid)


@pytest.mark.accepts("P2", "P27")
def test_a_start_that_fails_half_way_says_why_and_leaves_no_worker_unknown(site):
    site.workers(web="exec sleep 1000")
    (site.home / "control.sock").mkdir(parents=True)  # where a socket is to be: it cannot be made
    site.home.chmod(0o700)
    failed = site.run("start")
    assert failed.code == 1
    assert "cannot use its home" in failed.err
    assert "Traceback" not in failed.err
    assert site.status()["supervisor"]["ownership"] == "stale"
    site.ok("stop")
    eventually(lambda: site.processes() == [], what="no process is left")
    assert site.status()["supervisor"]["ownership"] == "stopped"


@pytest.mark.accepts("B-09", "D-08", "D-07", "D-13")
@pytest.mark.parametrize("content", [b"", b"{", b"garbage", b"\x00" * 100, b'{"pid": "x"}'])
def test_a_corrupt_lock_file_is_its_own_state_and_start_repairs_it(site, content):
    site.workers(web="exec sleep 1000")
    site.home.mkdir(mode=0o700)
    (site.home / "lock").write_bytes(content)
    (site.home / "lock").chmod(0o600)
    seen = site.run("status", "--json")
    assert seen.code == 4
    assert seen.json["supervisor"]["ownership"] == "corrupt"
    site.ok("start")
    assert site.status()["supervisor"]["ownership"] == "running"


@pytest.mark.accepts("D-10", "B-08", "S04", "P7")
def test_a_lock_that_names_a_stranger_is_stale_and_the_stranger_is_left_alone(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    site.kill_supervisor()
    stranger = subprocess.Popen(["sleep", "1000"])
    try:
        record = json.loads((site.home / "lock").read_text())
        record["pid"] = stranger.pid
        record.pop("check", None)
        (site.home / "lock").write_text(json.dumps(record))
        assert site.run("status", "--json").json["supervisor"]["ownership"] == "stale"
        site.ok("stop")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.accepts("P5", "P7")
def test_a_killed_worker_comes_back_once_whatever_else_happens(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    for turn in range(5):
        pid = site.worker("web")["pid"]
        os.kill(pid, signal.SIGKILL)
        if turn % 2:
            site.kill_supervisor()
            site.ok("start")
        row = eventually(lambda old=pid: (r := site.worker("web"))["pid"] not in (None, old) and r)
        lives = [p for p in site.processes() if b"sleep" in Path(f"/proc/{p}/cmdline").read_bytes()]
        assert lives == [row["pid"]]
        site.ok("reset", "web")


@pytest.mark.accepts("P16")
def test_orphans_of_workers_do_not_stay_as_zombies(site):
    site.workers(forker="while :; do (sleep 0.05 &) ; sleep 0.1; done")
    site.ok("start")
    eventually(lambda: site.worker("forker")["uptime"] > 2)

    def zombies():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if after[0] == "Z" and int(after[1]) == site.pid:
                found.append(int(pid))
        return found

    for _ in range(3):
        seen = set(zombies())
        time.sleep(1.2)
        assert not seen & set(zombies()), "a zombie older than a second"


@pytest.mark.accepts("D-35", "D-38")
def test_logs_on_a_fresh_home_say_so_and_exit_0(site):
    site.workers(web="exec sleep 1000")
    answer = site.ok("logs")
    assert "no logs" in answer.out.lower()


@pytest.mark.accepts("E-10")
def test_logs_show_a_workers_output_with_time_and_pattern(site):
    site.workers(web="echo alpha; echo beta; echo gamma >&2; exec sleep 1000")
    site.ok("start")
    eventually(lambda: "gamma" in site.log("web"))
    assert site.ok("logs", "web", "-n", "2", "--no-prefix").out == "beta\ngamma\n"
    assert site.ok("logs", "web", "--grep", "^al", "--no-prefix").out == "alpha\n"
    stamped = site.ok("logs", "web", "--timestamps", "--no-prefix").out
    assert stamped.startswith("20")
    assert stamped.splitlines()[0].endswith("Z alpha")


@pytest.mark.accepts("S21")
def test_terminal_tricks_of_a_worker_do_not_reach_the_terminal(site):
    site.workers(evil="printf 'a\\033]0;owned\\007b\\n'; exec sleep 1000")
    site.ok("start")
    eventually(lambda: "owned" in site.log("evil"))
    assert "\x1b" not in site.ok("logs", "evil").out


@pytest.mark.accepts("R-01", "R-05", "P9")
def test_no_temporary_file_accumulates_over_many_kills(site):
    site.workers(web="exec sleep 1000")
    for _ in range(4):
        site.ok("start")
        site.kill_supervisor()
    site.ok("start")
    site.ok("stop")
    left = [p.name for p in site.home.iterdir() if p.name.startswith(".") or "tmp" in p.name]
    assert left == []


def test_the_journal_is_a_plain_sqlite_file_with_the_public_tables(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    site.ok("stop")
    connection = sqlite3.connect(site.home / "journal.db")
    try:
        rows = connection.execute("SELECT worker_id, state FROM workers_t ORDER BY 1").fetchall()
        assert ("web", "stopped") in rows
        assert ("supervisor_site",) in [(row[0],) for row in rows]
        columns = {row[1] for row in connection.execute("PRAGMA table_info(audit_log_t)")}
        assert {"audit_id", "actor", "action", "prev_hash", "hash"} <= columns
    finally:
        connection.close()


@pytest.mark.accepts("D-29", "D-26")
def test_run_supervises_in_the_foreground_and_ctrl_c_leaves_no_process(site):
    site.workers(web="echo up and away; exec sleep 1000")
    running = subprocess.Popen(
        [sys.executable, "-m", "uphold", "-c", str(site.config), "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    lines = []
    for line in running.stdout:
        lines.append(line)
        if "up and away" in line:
            break
    pid = site.worker("web")["pid"]
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 0, [*lines, out]
    assert is_gone(pid)
    assert site.processes() == []


def test_on_exit_keep_leaves_workers_for_the_next_supervisor(site):
    site.workers(web="exec sleep 1000")
    site.write(
        "[supervisor]\nname = 'site'\non_exit = 'keep'\n[workers.web]\ncommand = 'sleep 1000'\n"
    )
    site.ok("start")
    pid, supervisor = site.worker("web")["pid"], site.pid
    os.kill(supervisor, signal.SIGTERM)
    eventually(lambda: is_gone(supervisor))
    assert not is_gone(pid)
    site.ok("start")
    assert site.worker("web")["pid"] == pid


def test_start_in_a_command_substitution_returns(site):
    site.workers(web="exec sleep 1000")
    done = subprocess.run(
        ["sh", "-c", f'out=$({sys.executable} -m uphold -c {site.config} start); echo "got: $out"'],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.startswith("got: "), done


def test_a_second_signal_hurries_a_stop_that_takes_its_time(site):
    deaf = {"command": "trap '' TERM; while :; do sleep 1; done", "shell": True}
    site.workers(deaf={**deaf, "stop": {"grace": "10m"}})
    site.ok("start")
    supervisor, pid = site.pid, site.worker("deaf")["pid"]
    os.kill(supervisor, signal.SIGTERM)
    site.until("deaf", state="stopping")
    os.kill(supervisor, signal.SIGTERM)
    eventually(lambda: is_gone(supervisor))
    assert is_gone(pid)


@pytest.mark.accepts("P9")
@pytest.mark.parametrize("stopped_first", [False, True])
def test_overrides_survive_the_loss_of_the_journal(site, stopped_first):
    site.workers(web="exec sleep 1000", off="exec sleep 1000")
    site.ok("start")
    site.ok("pause", "off")
    eventually(lambda: '"held' in (site.home / "runtime.json").read_text())
    site.kill_supervisor()
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        (site.home / name).unlink(missing_ok=True)
    if stopped_first:
        site.ok("stop")
    site.ok("start")
    assert site.worker("off")["admin"] == "paused"
    assert site.worker("web")["state"] == "running"


def test_output_of_a_worker_that_comes_and_goes_with_the_file_is_kept(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    for turn in range(3):
        site.workers(web="exec sleep 1000", late=f"echo turn {turn}; exec sleep 1000")
        site.ok("reload")
        eventually(lambda t=turn: f"turn {t}" in site.log("late"))
        site.workers(web="exec sleep 1000")
        site.ok("reload")
        eventually(lambda: "late" not in {row["slot"] for row in site.status()["workers"]})


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_commands_work_with_closed_streams(site, closed):
    site.workers(web="exec sleep 1000")
    for verb in ("start", "status", "stop"):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m uphold -c {site.config} {verb} {closed}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done
        assert "Traceback" not in done.stdout + done.stderr


def test_an_answer_that_cannot_be_written_says_so_and_leaves_no_crash_file(site):
    site.workers(web="exec sleep 1000")
    site.ok("start")
    for words in ("status", "status --json"):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m uphold -c {site.config} {words} > /dev/full"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1
        assert "cannot write the answer" in done.stderr
        assert "Traceback" not in done.stderr
    assert not list((site.home / "logs").glob("crash-*"))


@pytest.mark.accepts("P14")
def test_a_disk_without_room_for_one_more_file_keeps_nobody_from_stopping(site):
    if reason := disks.why_not():
        pytest.skip(reason)
    with disks.mounted("-t", "tmpfs", "-o", "size=8m,nr_inodes=60,mode=700", "tmpfs", site.home):
        try:
            site.workers(web="exec sleep 1000")
            site.ok("start")
            pid = site.worker("web")["pid"]
            site.kill_supervisor()
            (site.home / "logs/daemon.out").unlink()
            with suppress(OSError):
                for number in range(100):
                    (site.home / f"ballast.{number}").touch()
            site.ok("stop")
            assert is_gone(pid)
        finally:
            for path in site.home.glob("ballast.*"):
                path.unlink()
            site.close()
