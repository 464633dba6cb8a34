"""Jobs as their user sees them: on a schedule, once, and one after another."""

from __future__ import annotations

import pytest

from journeys.site import eventually

pytestmark = pytest.mark.slow


def job(command, **terms):
    return {"command": command, "shell": True, **terms}


def lines(site, slot):
    return site.log(slot).splitlines()


@pytest.mark.accepts("B-89")
def test_a_schedule_of_a_second_runs_again_and_again(site):
    site.workers(tick=job("echo tick", schedule={"every": "1s"}))
    site.ok("start")
    eventually(lambda: len(lines(site, "tick")) >= 3, what="three runs")
    row = site.until("tick", state="waiting")
    assert row["next_attempt_at"] is not None
    assert row["why"].startswith("next run at ")
    assert row["restarts"] == 0
    eventually(lambda: site.run("status").code == 0, what="a calm moment between two runs")
    ended = [
        event
        for event in site.ok("events", "tick", "--json", "-n", "100").out.splitlines()
        if '"worker.exited"' in event
    ]
    assert len(ended) >= 3
    assert "on its schedule (every 1 s)" in site.ok("why", "tick").out


def test_a_job_at_night_runs_now_when_it_is_started_and_waits_again(site):
    site.workers(night=job("echo ran", schedule={"cron": "0 3 * * *", "timezone": "Asia/Tokyo"}))
    site.ok("start")
    assert "03:00 Asia/Tokyo" in site.until("night", state="waiting")["why"]
    site.ok("start", "night")
    eventually(lambda: lines(site, "night") == ["ran"], what="its run")
    assert "03:00 Asia/Tokyo" in site.until("night", state="waiting")["why"]
    site.ok("stop", "night")
    assert site.worker("night")["state"] == "stopped"
    assert site.worker("night")["next_attempt_at"] is None


def test_a_run_that_fails_is_shown_until_the_next_one(site):
    site.workers(
        sick=job("test -e well", schedule={"every": "1h", "at_load": True}),
    )
    site.ok("start")
    row = site.until("sick", state="exited")
    assert "exited with code 1" in row["why"]
    assert "next run at" in row["why"]
    assert row["last_error"]["code"] == "UPH_WORKER_EXITED"
    assert site.run("status").code == 150
    (site.folder / "well").touch()
    site.ok("start", "sick")
    site.until("sick", state="waiting", last_error=None)
    assert site.run("status").code == 0


def test_a_run_in_the_way_of_the_next_is_killed_when_the_file_says_so(site):
    terms = {"every": "1s", "overlap": "kill", "at_load": True}
    site.workers(slow=job("echo begun; exec sleep 1000", schedule=terms))
    site.ok("start")
    eventually(lambda: len(lines(site, "slow")) >= 3, what="three runs")
    told = site.ok("events", "slow", "--json", "-n", "200").out
    assert "overlap = kill" in told


def test_a_killed_supervisor_leaves_a_run_alone_and_the_next_one_goes_on(site):
    terms = {"every": "1h", "at_load": True}
    site.workers(long=job("echo begun; exec sleep 1000", schedule=terms))
    site.ok("start")
    before = site.until("long", state="running")
    site.kill_supervisor()
    site.ok("start")
    after = site.until("long", state="running")
    assert (after["pid"], after["generation"]) == (before["pid"], before["generation"])
    eventually(lambda: lines(site, "long"), what="its output")
    assert lines(site, "long") == ["begun"]


def test_a_server_starts_when_the_job_before_it_has_completed(site):
    site.workers(
        migrate=job("until test -e go; do sleep 0.1; done; echo migrated", restart="no"),
        server=job("exec sleep 1000", depends_on={"migrate": "completed"}),
    )
    site.ok("start")
    row = site.until("server", state="waiting")
    assert "'migrate' to be completed (it is running)" in row["why"]
    assert row["generation"] == 0
    (site.folder / "go").touch()
    site.until("server", state="running")
    assert site.worker("migrate")["exit"]["code"] == 0
    assert site.worker("migrate")["state"] == "exited"


def test_a_job_that_fails_keeps_its_dependent_waiting_and_says_how_it_ended(site):
    site.workers(
        migrate=job("test -e schema || exit 9", restart="no"),
        server=job("exec sleep 1000", depends_on={"migrate": "completed"}),
    )
    site.ok("start")
    site.until("migrate", state="exited")
    row = eventually(
        lambda: (row := site.worker("server")) and "code 9" in row["why"] and row, what="its reason"
    )
    assert (row["state"], row["generation"]) == ("waiting", 0)
    assert "exited with code 9" in site.run("why", "server").out
    (site.folder / "schema").touch()
    site.ok("start", "migrate")
    site.until("server", state="running")
