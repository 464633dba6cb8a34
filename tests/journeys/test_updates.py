"""Updates and rollbacks as operators order them: by the command line, and by flags on a share."""

from __future__ import annotations

import json

import pytest

from deploy.repositories import git
from journeys.deployments import BAD, Deployment
from journeys.site import eventually

NOTHING = "# nothing yet\n"
UNKNOWN = "./is-not-there\n"


@pytest.fixture
def site(tmp_path):
    made = Deployment(tmp_path)
    yield made
    made.close()


def commands(site: Deployment, word: str) -> list[str]:
    """Give the lines of the log that tell of a command."""
    return [line for line in site.logged().splitlines() if word in line]


@pytest.mark.accepts(
    *("C-058", "C-059", "C-060", "C-062", "C-063", "C-T18", "C-T19", "C-143", "P24"),
)
def test_an_update_by_the_command_line(site):
    site.begin()
    first = site.until("web", state="running")["pid"]
    assert "up to date" in site.ok("update").out
    assert site.worker("web")["pid"] == first
    old, new = site.there.head(), site.publish("two")
    answer = site.ok("update", "--label", "nightly")
    assert f"{old[:7]}" in answer.out
    assert f"{new[:7]}" in answer.out
    assert site.there.head() == new
    assert site.until("web", state="running")["pid"] != first
    assert site.ran() == ["one", "two"]
    row = site.ended("update")
    assert (row["action"], row["label"]) == ("update.succeeded", "nightly")
    assert old.startswith(row["details"]["before_commit"])
    assert new.startswith(row["details"]["after_commit"])
    (job,) = [
        each for each in jobs(site) if each["label"] == "nightly" and each["job_type"] == "update"
    ]
    for word in ("git fetch", "git merge"):
        assert f"[{job['job_id']} - nightly]" in commands(site, word)[-1]
    site.assert_tidy()


def jobs(site: Deployment) -> list[dict]:
    return [json.loads(line) for line in site.ok("jobs", "--json").out.splitlines()]


@pytest.mark.accepts("C-064", "C-065", "C-066", "B-69", "P24")
def test_an_update_with_packages_by_the_command_line(site):
    site.begin()
    site.until("web", state="running")
    new = site.publish("two", requirements_txt=NOTHING)
    site.ok("update", "--deps")
    assert (site.there.head(), site.ran()[-1]) == (new, "two")
    assert "ended with 0" in commands(site, "pip install")[-1]
    site.publish("three", requirements_txt=UNKNOWN)
    answer = site.run("update", "--deps")
    assert answer.code == 1
    assert "packages were not installed" in answer.err
    assert (site.there.head(), site.there.status()) == (new, "")
    site.until("web", state="running")
    assert site.ran() == ["one", "two", "two"]
    row = site.ended("update")
    assert row["action"] == "update.failed"
    assert "is-not-there" in row["details"]["error"]
    assert row["details"]["packages_restored"] is True
    site.assert_tidy()


@pytest.mark.accepts("P24")
def test_an_update_that_breaks_the_worker_comes_back_by_itself(site):
    site.begin()
    site.until("web", state="running")
    old = site.there.head()
    site.publish("bad", BAD)
    answer = site.run("update")
    assert answer.code == 1
    assert "web" in answer.err
    assert (site.there.head(), site.there.status()) == (old, "")
    site.until("web", state="running")
    assert site.ran()[-1] == "one"
    row = site.ended("update")
    assert row["details"]["returned"] is True
    assert old.startswith(row["details"]["after_commit"])
    new = site.publish("two")
    site.ok("update")
    assert (site.there.head(), site.ran()[-1]) == (new, "two")
    site.assert_tidy()


@pytest.mark.accepts("C-072", "C-T23", "C-061", "P24")
def test_what_is_refused_stops_nobody(site):
    site.begin()
    pid = site.until("web", state="running")["pid"]
    for words in (("--commits", "11"), ("--commits", "0"), ("--commits", "x")):
        assert site.run("rollback", *words).code == 2
    beyond = site.run("rollback", "--commits", "3")
    assert beyond.code == 4
    assert "only 2" in beyond.err
    site.publish("two")
    (site.there.repo / "run.sh").write_text("edited\n")
    dirty = site.run("update")
    assert dirty.code == 4
    assert "run.sh" in dirty.err
    assert "git restore" in dirty.out + dirty.err
    git(site.there.repo, "restore", ".")
    site.there.remote.rename(site.folder / "away")
    away = site.run("update")
    assert away.code == 1
    assert "fetch" in away.err
    assert site.worker("web")["pid"] == pid
    site.assert_tidy()


def test_without_a_section_the_error_says_what_is_missing(site):
    site.workers(web="sleep 1000")
    site.begin()
    for verb in ("update", "rollback"):
        answer = site.run(verb)
        assert answer.code != 0
        assert "[deploy]" in answer.err


@pytest.mark.accepts(
    *("C-073", "C-074", "C-075", "C-076", "C-077", "C-081", "C-082", "C-083"),
    *("C-T20", "C-T21", "C-T24", "B-55"),
)
def test_rollbacks_by_the_command_line_and_the_update_after_them(site):
    for name in ("two", "three", "four"):
        site.publish(name)
    site.begin()
    site.ok("update")
    answer = site.ok("rollback", "--commits", "3", "--label", "bad release")
    assert "3 of 3 reverted" in answer.out
    assert (site.there.repo / "run.sh").read_text().startswith("echo one ")
    assert site.ran()[-1] == "one"
    row = site.ended("rollback")
    told = row["details"]
    assert (row["action"], row["label"]) == ("rollback.succeeded", "bad release")
    assert (told["success"], told["commits_reverted"]) == (True, 3)
    assert [line.split()[1] for line in told["reverted_commits"]] == ["four", "three", "two"]
    assert site.there.head().startswith(told["final_commit"])
    assert len(commands(site, "to be reverted")) == 3
    assert len(commands(site, "git revert --no-edit")) == 3
    new = site.publish("five")
    site.ok("update")
    assert (site.there.head(), site.ran()[-1]) == (new, "five")
    site.ok("rollback")
    assert (site.there.repo / "run.sh").read_text().startswith("echo four ")
    site.assert_tidy()


@pytest.mark.accepts("C-060", "C-082", "C-149", "B-63", "B-53")
def test_a_held_worker_stays_down_and_comes_up_with_the_new_code(site):
    site.begin()
    site.until("web", state="running")
    site.ok("pause", "web")
    site.publish("two")
    assert "held" in site.ok("update").out
    assert "held" in site.ok("rollback").out
    site.ok("update")
    assert site.worker("web")["state"] == "stopped"
    assert site.ran() == ["one"]
    site.ok("resume", "web")
    site.until("web", state="running")
    assert site.ran() == ["one", "two"]


class Shared(Deployment):
    """The same, steered by files alone."""

    def __init__(self, folder):
        self.share = folder / "share"
        for name in ("00_STATE", "05_LOGS", "Worker_Inbox", "Worker_Outbox"):
            (self.share / name).mkdir(parents=True)
        super().__init__(folder)
        self.more = f'[inbox]\nshare = "{self.share}"\npoll_every = "200ms"\n'
        self.configure()
        self.count = 0

    def obeyed(self, handler: str, **content) -> dict:
        """Drop a flag and give its receipt."""
        self.count += 1
        task = f"task_20260101_000000_{self.count:04d}"
        self.drop(handler, task, **content)
        return self.receipt(task)

    def drop(self, handler: str, task: str, **content) -> None:
        """Drop a flag as a person would: written whole under another name, then renamed."""
        inbox = self.share / "Worker_Inbox"
        temp = inbox / "flag.tmp"
        temp.write_text(json.dumps({"task_id": task, "handler": handler, **content}))
        temp.rename(inbox / f"supervisor_{handler}_web.flag")

    def receipt(self, task: str) -> dict:
        outbox = self.share / "Worker_Outbox"
        look = lambda: list(outbox.glob(f"*_{task}_*.json"))  # noqa: E731
        (found,) = eventually(look, what=f"the receipt of {task}")
        return json.loads(found.read_text())

    def agreed(self, receipt: dict, verb: str) -> dict:
        """See that log, audit, job and receipt tell the same; give what the audit says."""
        task, label = receipt["task_id"], receipt["label"]
        state = "succeeded" if receipt["success"] else "failed"
        (job,) = [each for each in jobs(self) if each["task_id"] == task]
        assert (job["job_type"], job["label"], job["state"]) == (verb, label, state)
        assert job["job_id"] == receipt["job_id"]

        def rows():
            found = [row for row in self.audit() if row["details"].get("task_id") == task]
            return found if len(found) == 2 else None

        asked, ended = eventually(rows, what="asked for, and ended, in the audit")
        assert (asked["action"], ended["action"]) == (verb, f"{verb}.{state}")
        assert (asked["label"], ended["label"]) == (label, label)
        shown = f"[{task} - {label}]" if label else f"[{task}]"
        assert any(shown in line for line in commands(self, "git "))
        for key in ("before_commit", "after_commit", "final_commit", "commits_reverted"):
            assert receipt["details"].get(key) == ended["details"].get(key)
        return ended["details"]


@pytest.fixture
def shared(tmp_path):
    made = Shared(tmp_path)
    yield made
    made.close()


@pytest.mark.accepts(
    *("C-058", "C-059", "C-060", "C-062", "C-063", "C-064", "C-065", "C-066", "C-071"),
    *("C-076", "C-083", "C-143", "C-T18", "C-T19", "C-T20", "C-T21", "C-T24", "B-69"),
)
@pytest.mark.parametrize("label", [None, "disk swap 7"])
def test_the_same_by_flags_on_a_share(shared, label):
    site, more = shared, {} if label is None else {"label": label}
    site.begin()
    site.until("web", state="running")
    old, new = site.there.head(), site.publish("two", requirements_txt=NOTHING)
    receipt = site.obeyed("update_code", **more)
    assert (receipt["success"], receipt["error"], receipt["label"]) == (True, None, label)
    told = site.agreed(receipt, "update")
    assert old.startswith(told["before_commit"])
    assert new.startswith(told["after_commit"])

    newer = site.publish("three")
    assert site.agreed(site.obeyed("update_code_deps", **more), "update")["packages"] is True
    assert site.there.head() == newer
    site.publish("four", requirements_txt=UNKNOWN)
    failed = site.obeyed("update_code_deps", **more)
    assert failed["success"] is False
    assert "packages were not installed" in failed["error"]
    site.agreed(failed, "update")
    assert site.there.head() == newer

    receipt = site.obeyed("rollback_code", **more)
    assert site.agreed(receipt, "rollback")["commits_reverted"] == 1
    receipt = site.obeyed("rollback_code", params={"commits_back": 1}, **more)
    assert site.agreed(receipt, "rollback")["success"] is True
    assert (site.there.repo / "run.sh").read_text().startswith("echo one ")
    site.until("web", state="running")
    assert site.ran()[-1] == "one"
    site.assert_tidy()


@pytest.mark.accepts("P25", "T16")
def test_a_flag_whose_update_is_cut_is_answered_with_what_it_came_to(shared):
    site = shared
    site.configure(healthy_for="1h")
    site.begin()
    site.until("web", state="running")
    new = site.publish("two")
    site.drop("update_code", "task_1", label="nightly")
    eventually(lambda: site.ran() == ["one", "two"], what="the new code runs")
    site.kill_supervisor()
    site.configure()
    site.begin()
    receipt = site.receipt("task_1")
    assert (receipt["success"], receipt["error"], receipt["label"]) == (True, None, "nightly")
    assert new.startswith(receipt["details"]["after_commit"])
    assert site.ended("finish")["action"] == "finish.succeeded"
    assert list((site.share / "Worker_Inbox" / "processing").iterdir()) == []
    site.until("web", state="running")
    site.assert_tidy()


@pytest.mark.accepts("B-62")
def test_in_a_pass_an_update_comes_before_the_start_of_the_old_code(shared):
    site = shared
    new = site.publish("two")
    site.drop("update_code", "task_1")
    answer = site.run("once", env=site.environment)
    assert answer.code == 0, answer
    assert (site.there.head(), site.ran()) == (new, ["two"])
    site.assert_tidy()


@pytest.mark.accepts("C-072", "C-T23")
@pytest.mark.parametrize("commits", [0, -1, 11, 1.5, "2", True, None, [1]])
def test_a_flag_with_a_number_that_is_none_is_refused(shared, commits):
    site = shared
    site.begin()
    pid = site.until("web", state="running")["pid"]
    old = site.there.head()
    receipt = site.obeyed("rollback_code", params={"commits_back": commits})
    assert receipt["success"] is False
    assert "commits_back" in receipt["error"]
    assert (site.there.head(), site.worker("web")["pid"]) == (old, pid)
