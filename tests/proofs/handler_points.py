"""T04a for flags: whoever carries one out is killed, or told of an error, at every call on a file.

Each point is one handler, one kind of fault and one number: the Nth call below the folder that
holds home, share and checkout, while a single pass obeys a flag; those of the helper that touches
the share and of git are counted too. The passes that follow are left alone: they must leave a
receipt, one effect or none, a clean tree that is the old or the new one, and every worker once.
Who is killed after its receipt and before its flag is gone leaves a second receipt, which names
the same job as the first and says so.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

from deploy.repositories import Repositories, git
from inbox.sharing import lay_out
from proofs.crash_points import Point, tracebacks
from proofs.disks import in_memory
from proofs.faulting import ALL_KINDS, Faults
from proofs.nursery import Nursery
from proofs.proving import Verdict, main
from proofs.stations import PATIENCE, Station
from uphold.journal.reading import JournalReader
from uphold.testing.waiting import until

TERMS = """
[supervisor]
name = "points"
[defaults]
stop = {{ grace = "5s" }}
backoff = {{ base = "1ms", max = "1ms" }}
[workers.web]
command = ["sh", "run.sh"]
working_dir = "checkout"
[workers.two]
command = "sleep 1000"
[inbox]
share = "{folder}/share"
[deploy]
repo = "checkout"
workers = ["web"]
python = "{tools}/installer"
gate = {{ healthy_for = "1ms" }}
"""
VERBS = {
    "pause_watcher": "pause",
    "resume_watcher": "resume",
    "restart_watcher": "restart",
    "update_code": "update",
    "update_code_deps": "update",
    "rollback_code": "rollback",
    "diagnostics": "diagnose",
    "verify_db": "verify-db",
}
"""By handler what its order is called on record."""
MOST_PASSES = 3
"""After so many undisturbed ones everything has come to something."""


def points(count, seed, folder):
    """Try `count` of all points, or all of them; a small sample is of a few handlers only."""
    found, tried, chance = [], Counter(), random.Random(seed)
    handlers = chance.sample(sorted(VERBS), min(len(VERBS), max(1, count // 4)))
    with Workshop(folder) as workshop:
        calls = {handler: workshop.count(handler) for handler in handlers}
        population = [
            Point(handler, kind, at)
            for handler, of_kind in calls.items()
            for kind in ALL_KINDS
            for at in range(1, of_kind[kind] + 1)
        ]
        if count < len(population):
            population = chance.sample(population, count)
        for point in population:
            struck, wrong = workshop.strike(point)
            tried["struck" if struck else "not reached"] += 1
            found += [f"seed {seed}, {point} ({struck}): {each}" for each in wrong]
    told = ", ".join(f"{name} {sum(of_kind.values())}" for name, of_kind in calls.items())
    return Verdict(
        count=tried["struck"],
        violations=tuple(found),
        figures=(f"points: {told}", f"{tried['not reached']} not reached"),
    )


class Workshop:
    """What all points share: a remote, programs that count their calls, and the nursery."""

    def __init__(self, folder):
        # In memory: an fsync of a real disk costs more than all the rest.
        self._folder = in_memory(folder, "handlers-")
        self._faults = Faults(self._folder)
        self._tools = self._folder / "tools"
        self._tools.mkdir()
        counted = " ".join(f"{name}={value}" for name, value in self._faults.environ.items())
        git_itself = shutil.which("git")
        self._tool("git", f'exec env {counted} {git_itself} "$@"')
        self._tool("python", f'exec env {counted} {sys.executable} "$@"')
        # The stand-in for pip says only that it was asked.
        self._tool("installer", '[ "$1" = -m ] && echo "$PWD" >> ../installed; exit 0')
        self._there = Repositories(self._folder, commits=1)
        for number in (1, 2, 3):
            (self._there.person / "run.sh").write_text(f"exec sleep 100{number}\n")
            (self._there.person / "requirements.txt").write_text(f"thing=={number}\n")
            self._there.publish(f"number {number}")
        git(self._there.repo, "pull", "-q")
        git(self._there.repo, "reset", "-q", "--hard", "HEAD^")
        path = f"{self._tools}:{os.environ['PATH']}"
        more = {"PATH": path, "NURSERY_PYTHON": str(self._tools / "python")}
        self._nursery = Nursery({**self._faults.environ, **more})
        self._turn = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._nursery.close()
        self._faults.close()
        shutil.rmtree(self._folder)

    def _tool(self, name, text):
        (self._tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (self._tools / name).chmod(0o755)

    def count(self, handler):
        """Run a handler untouched, and count the calls that each kind of fault can strike."""
        calls = {}
        for kind in ("kill", "EIO", "torn", "alone"):
            with closing(self._site()) as site:
                _, calls[kind] = Trial(site, self._faults).run(Point(handler, kind, -1))
            shutil.rmtree(site.folder, ignore_errors=True)
        return {**calls, "ENOSPC": calls["kill"]}

    def strike(self, point):
        """Try one point; gives what was struck and what is wrong afterwards."""
        with closing(self._site()) as site:
            struck = ""
            try:
                struck, _ = Trial(site, self._faults).run(point)
                wrong = examine(site, point.handler) if struck else []
            except AssertionError as problem:
                wrong = [str(problem)]
                struck = struck or self._faults.disarm()[0]
            wrong += [f"a traceback: {text[-600:]}" for text in tracebacks(site)]
        shutil.rmtree(site.folder, ignore_errors=True)
        return struck, wrong

    def _site(self):
        self._turn += 1
        site = FlagSite(self._folder / f"s{self._turn}", self._nursery)
        lay_out(site.folder / "share")
        shutil.copytree(self._there.repo, site.checkout, symlinks=True)
        site.declare(TERMS.format(folder=site.folder, tools=self._tools))
        return site


class FlagSite(Station):
    """A home, a share and a checkout, seen after one pass or another."""

    def __init__(self, folder, nursery):
        super().__init__(folder, nursery)
        self.checkout = folder / "checkout"
        self.inbox = folder / "share" / "Worker_Inbox"
        self.before = {}

    def drop(self, handler, task):
        """Drop a flag, whole, as people are told to."""
        params = {"commits_back": 1} if handler == "rollback_code" else {}
        made = {"task_id": task, "handler": handler, "worker_id": "web", "params": params}
        hidden = self.inbox / ".new"
        hidden.write_text(json.dumps({**made, "label": "a point"}))
        hidden.rename(self.inbox / f"supervisor_{handler}_web.flag")

    def pass_once(self):
        """Run one pass to its end, whatever that is."""
        self.start("--once", "--quiet")
        until(lambda: self.ended() is not None, PATIENCE, "the end of a pass")

    def receipts(self, task):
        folder = self.folder / "share" / "Worker_Outbox"
        return [
            json.loads(path.read_bytes()) for path in folder.glob(f"supervisor_result_*{task}*")
        ]

    def waiting(self):
        """Name the flags that are not dealt with yet."""
        places = (self.inbox, self.inbox / "processing")
        return [path.name for place in places for path in place.glob("*.flag")]

    def number(self):
        """Tell which number of the code is checked out."""
        return (self.checkout / "run.sh").read_text().split()[-1]

    def runs(self, pid):
        """Tell which number of the code a process of web is."""
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1].decode()

    def jobs(self, task):
        with JournalReader(self.home / "journal.db") as journal:
            return journal.jobs(task_id=task, limit=10)

    def audit(self):
        with JournalReader(self.home / "journal.db") as journal:
            return journal.audit(limit=1000)


class Trial:
    """One handler run into one fault."""

    def __init__(self, site, faults):
        self.site = site
        self.faults = faults

    def run(self, point):
        """Prepare, arm, have a pass obey the flag, disarm; gives what was struck, and the calls."""
        site = self.site
        if point.handler == "resume_watcher":
            site.drop("pause_watcher", "earlier")
        site.pass_once()
        site.before = site.processes()
        wanted = {"two"} if point.handler == "resume_watcher" else {"web", "two"}
        assert set(site.before) == wanted, f"it did not start: {site.before}"
        site.drop(point.handler, "task1")
        # To die before a file is read is to die before the next change: nothing else is on disk.
        self.faults.arm(site.folder, point.kind, point.at, changing=point.kind != "EIO")
        site.pass_once()
        return self.faults.disarm()


def examine(site, handler):
    """See that passes which nothing disturbs bring everything to a good end."""
    wrong = list(site.unreadable())
    for _ in range(MOST_PASSES):
        site.pass_once()
        if not site.waiting() and not unsettled(site, handler):
            break
    wrong += list(site.unreadable())
    wrong += [f"{name} is not dealt with" for name in site.waiting()]
    wrong += unsettled(site, handler)
    receipts = site.receipts("task1")
    again = [each for each in receipts if "duplicate_of" in each["details"]]
    same = {(each["job_id"], each["success"]) for each in receipts}
    if not receipts or len(receipts) - len(again) > 1 or len(same) > 1:
        return [*wrong, f"there are {len(receipts)} receipts: {receipts}"]
    wrong += on_record(site, handler, receipts[0])
    if receipts[0]["success"]:
        wrong += EFFECTS[handler](site)
    if handler.startswith(("update", "rollback")):
        wrong += tree(site)
    return wrong


def unsettled(site, handler):
    """Say which workers are not as they should be by now."""
    wrong = []
    found = site.processes()
    held = (site.folder / "share/00_STATE/supervisor_pause_web.flag").exists()
    for slot, pids in found.items():
        if len(pids) != 1:
            wrong.append(f"{slot} lives {len(pids)} times")
    if found.get("two") != site.before["two"]:
        wrong.append(f"two was disturbed: {site.before['two']}, {found.get('two')}")
    if held == ("web" in found):
        stands = "stands" if held else "does not stand"
        wrong.append(f"web lives as {found.get('web')}, and its marker {stands}")
    if held and handler not in ("pause_watcher", "resume_watcher"):
        wrong.append("web is held, which nobody asked for")
    return wrong


def on_record(site, handler, receipt):
    """Say what journal and audit do not tell of the flag that has this receipt."""
    jobs = [row for row in site.jobs("task1") if row["job_type"] == VERBS[handler]]
    if len(jobs) > 1:
        return [f"it was carried out {len(jobs)} times: {jobs}"]
    if not jobs:
        return [f"{receipt} without a job"] if receipt["success"] else []
    (job,) = jobs
    wrong = [] if job["state"] in ("succeeded", "failed", "interrupted") else [f"no end of {job}"]
    ids = [row["audit_id"] for row in site.audit()]
    asked = ids.count(job["job_id"])
    ended = sum(each.startswith(f"{job['job_id']}.") for each in ids)
    if asked != 1 or ended != 1:
        wrong.append(f"asked for {asked} times and ended {ended} times in the audit: {job}")
    return wrong


def tree(site):
    """Say what is wrong with the checkout, and with what runs from it."""
    wrong = []
    status = git(site.checkout, "status", "--porcelain")
    locks = [path.name for path in (site.checkout / ".git").rglob("*.lock")]
    if status:
        wrong.append(f"the tree is not clean: {status}")
    if [name for name in locks if name != "uphold.lock"]:
        wrong.append(f"locks are left: {locks}")
    if (site.home / "deploy.json").exists():
        wrong.append("deploy.json is left")
    if site.number() not in ("1001", "1002", "1003"):
        wrong.append(f"neither the old nor the new code: {site.number()}")
    for pid in site.processes().get("web", ()):
        if site.runs(pid) != site.number():
            wrong.append(f"{site.runs(pid)} runs from {site.number()}")
    return wrong


def _paused(site):
    return [] if "web" not in site.processes() else ["a hold was acknowledged, and web runs"]


def _resumed(site):
    return [] if "web" in site.processes() else ["a resume was acknowledged, and web is down"]


def _restarted(site):
    same = site.processes().get("web") == site.before["web"]
    return ["a restart was acknowledged, and the old process runs"] if same else []


def _has_code(number):
    def look(site):
        return [] if site.number() == number else [f"acknowledged, and {site.number()} is there"]

    return look


def _reported(name):
    def look(site):
        found = list((site.folder / "share/05_LOGS/diagnostics").glob(f"{name}*.json"))
        for path in found:
            json.loads(path.read_bytes())
        return [] if found else ["a report was acknowledged, and there is none"]

    return look


EFFECTS = {
    "pause_watcher": _paused,
    "resume_watcher": _resumed,
    "restart_watcher": _restarted,
    "update_code": _has_code("1003"),
    "update_code_deps": _has_code("1003"),
    "rollback_code": _has_code("1001"),
    "diagnostics": _reported("diagnostics"),
    "verify_db": _reported("db_verification"),
}
"""By handler: what must be true once it was acknowledged."""


if __name__ == "__main__":
    main({"flags": points})
