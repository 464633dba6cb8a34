"""Updates and rollbacks under a supervisor that is killed or told to end in the middle."""

from __future__ import annotations

import os
import signal

import pytest

from journeys.deployments import BAD, SLOW, Deployment
from journeys.site import eventually, is_gone

pytestmark = pytest.mark.accepts("P24", "P25", "T16")


@pytest.fixture
def site(tmp_path):
    made = Deployment(tmp_path)
    yield made
    made.close()


def followed(site: Deployment, *, let_go=None) -> dict:
    """Start the next supervisor and see that it has ended what was left."""
    site.begin()
    if let_go is not None:
        let_go()
    row = site.ended("finish")
    site.until("web", state="running")
    site.assert_tidy()
    (asked,) = [each for each in site.audit() if each["action"] == "finish"]
    assert "was interrupted" in asked["details"]["reason"]
    return row


def test_killed_while_the_worker_is_being_stopped(site):
    site.publish("slow", SLOW)
    site.begin()
    site.ok("update")
    site.until("web", state="running")
    old = site.there.head()
    site.publish("two")
    site.ok("update", "--no-wait", "--label", "nightly")
    eventually((site.folder / "asked").exists, what="the worker is asked to end")
    site.kill_supervisor()
    assert site.step() == "prepared"
    (site.folder / "may-end").touch()
    row = followed(site)
    assert (row["action"], row["label"]) == ("finish.failed", "nightly")
    assert "interrupted" in row["details"]["error"]
    assert site.there.head() == old
    site.ok("update")
    assert site.ran()[-1] == "two"


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_while_git_merges(site, when):
    site.begin()
    site.until("web", state="running")
    old, new = site.there.head(), site.publish("two")
    site.hold_up("merge", when)
    site.ok("update", "--no-wait")
    site.reached()
    assert site.worker("web")["state"] == "stopped"
    site.kill_supervisor()
    # The git that was left over goes on only now: the next one has to wait for it.
    row = followed(site, let_go=site.let_go)
    assert row["action"] == "finish.failed"
    assert "merging" in row["details"]["error"]
    assert site.there.head() == old
    assert site.ran() == ["one", "one"]
    site.ok("update")
    assert (site.there.head(), site.ran()[-1]) == (new, "two")


def test_killed_while_the_new_code_is_looked_at(site):
    site.configure(healthy_for="1h")
    site.begin()
    site.until("web", state="running")
    new = site.publish("two")
    site.ok("update", "--no-wait")
    eventually(lambda: site.ran() == ["one", "two"], what="the new code runs")
    assert site.step() == "applied"
    site.kill_supervisor()
    site.configure()
    row = followed(site)
    assert row["action"] == "finish.succeeded"
    assert new.startswith(row["details"]["after_commit"])
    assert site.there.head() == new


def test_killed_while_the_old_code_is_put_back(site):
    site.begin()
    site.until("web", state="running")
    old = site.there.head()
    site.publish("bad", BAD)
    site.hold_up("reset")
    site.ok("update", "--no-wait")
    site.reached()
    assert site.step() == "returning"
    assert "bad" in site.ran()
    site.kill_supervisor()
    row = followed(site, let_go=site.let_go)
    assert row["action"] == "finish.failed"
    assert "after the update web" in row["details"]["error"]
    assert site.there.head() == old
    assert site.ran()[-1] == "one"


@pytest.mark.accepts("C-076")
def test_a_rollback_that_is_killed_between_two_reverts_is_finished(site):
    for name in ("two", "three"):
        site.publish(name)
    site.begin()
    site.ok("update")
    site.hold_up("revert", "after")
    site.ok("rollback", "--commits", "2", "--no-wait", "--label", "bad release")
    site.reached()
    site.kill_supervisor()
    row = followed(site, let_go=site.let_go)
    assert (row["action"], row["label"]) == ("finish.succeeded", "bad release")
    assert row["details"]["commits_reverted"] == 2
    assert (site.there.repo / "run.sh").read_text().startswith("echo one ")
    assert site.ran()[-1] == "one"


@pytest.mark.accepts("B-71")
def test_told_to_end_in_the_middle_it_lets_git_finish_and_the_next_one_does_the_rest(site):
    site.begin()
    site.until("web", state="running")
    new = site.publish("two")
    site.hold_up("merge")
    site.ok("update", "--no-wait")
    site.reached()
    pid = site.pid
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: "shutdown" in [row["action"] for row in site.audit()], what="it is told")
    site.let_go()
    eventually(lambda: is_gone(pid), what="the supervisor has ended")
    assert site.there.status() == ""
    assert site.step() == "applied"
    row = followed(site)
    assert row["action"] == "finish.succeeded"
    assert (site.there.head(), site.ran()) == (new, ["one", "two"])


@pytest.mark.accepts("B-71")
def test_stop_in_the_middle_leaves_nothing_running_and_nothing_half_done(site):
    site.configure(healthy_for="1h")
    site.begin()
    site.until("web", state="running")
    new = site.publish("two")
    site.ok("update", "--no-wait")
    eventually(lambda: site.ran() == ["one", "two"], what="the new code runs")
    site.ok("stop")
    eventually(lambda: site.processes() == [], what="nothing is left")
    assert (site.there.head(), site.there.status()) == (new, "")
    site.configure()
    assert followed(site)["action"] == "finish.succeeded"


def test_a_worker_kept_down_for_nothing_is_released_by_the_next_supervisor(site):
    site.publish("slow", SLOW)
    site.begin()
    site.ok("update")
    site.publish("two")
    site.ok("update", "--no-wait")
    eventually((site.folder / "asked").exists, what="the worker is asked to end")
    site.kill_supervisor()
    (site.home / "deploy.json").unlink()
    (site.folder / "may-end").touch()
    site.begin()
    site.until("web", state="running")
    assert "release" in [row["action"] for row in site.audit()]


def test_a_pass_ends_what_a_supervisor_left(site):
    site.begin()
    site.until("web", state="running")
    old = site.there.head()
    site.publish("two")
    site.hold_up("merge")
    site.ok("update", "--no-wait")
    site.reached()
    site.kill_supervisor()
    site.let_go()
    site.run("once", env=site.environment)
    assert site.ended("finish")["action"] == "finish.failed"
    assert site.worker("web")["state"] == "running"
    assert site.there.head() == old
    site.assert_tidy()
