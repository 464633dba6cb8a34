"""Walks through all eight flags, and shows what each leaves behind: marker, receipt, log, audit.

    python3 walk.py [FOLDER]

Makes a share, a git repository and a checkout of this example in a new folder, starts uphold
there, drops one flag after the other as a person would, and stops everything. Needs git and uphold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = ("config.dev.yaml", "make_share.py", "watcher.py")
WORKER = "OrionMX"
PATIENCE = 300.0
STORE = """
  store:
    url: sqlite:///{path}
    critical_tables: [jobs_t, workers_t]
"""


class Walk:
    """One walk in one folder."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.share = top / "share"
        self.remote = top / "remote.git"
        self.person = top / "person"
        self.orion = top / "orion"
        self.count = 0
        self.failed: list[str] = []

    def prepare(self) -> None:
        """Make the share, the repository, and the checkout that the watcher runs from."""
        run(sys.executable, HERE / "make_share.py", self.share)
        run("git", "init", "-q", "--bare", "-b", "main", self.remote)
        run("git", "clone", "-q", self.remote, self.person)
        for name in FILES:
            shutil.copy(HERE / name, self.person / name)
        if find_spec("sqlalchemy") is not None:
            with (self.person / "config.dev.yaml").open("a") as config:
                config.write(STORE.format(path=self.top / "records.db"))
        self.push("the watcher")
        run("git", "clone", "-q", self.remote, self.orion)
        (self.orion / ".env").write_text(f"SHARE_ROOT={self.share}\n")

    def push(self, what: str, **files: str) -> None:
        """Change something in the repository, as a developer would."""
        for name, text in files.items():
            (self.person / f"{name}.txt").write_text(text)
        person = ("-c", "user.name=dev", "-c", "user.email=dev@localhost")
        run("git", "add", "--all", cwd=self.person)
        run("git", *person, "commit", "-q", "-m", what, cwd=self.person)
        run("git", "push", "-q", "origin", "HEAD:main", cwd=self.person)

    def order(self, handler: str, label: str, **params: int) -> None:
        """Drop a flag: under another name first, then renamed, so that nobody reads half of it."""
        self.count += 1
        task = time.strftime(f"task_%Y%m%d_%H%M%S_{self.count:04d}", time.gmtime())
        flag = {"task_id": task, "handler": handler, "label": label, "params": params}
        place = self.share / "Worker_Inbox" / f"supervisor_{handler}_{WORKER}.flag"
        place.with_suffix(".tmp").write_text(json.dumps(flag))
        place.with_suffix(".tmp").rename(place)
        say(f"\n=== {self.count}. {handler}")
        say(f"dropped  {place.name}: {json.dumps(flag)}")
        receipt = self.receipt(handler, task)
        say(f"receipt  {receipt.name}")
        content = json.loads(receipt.read_text())
        outcome = "success" if content["success"] else f"FAILED: {content['error']}"
        say(f"         {outcome}; details: {json.dumps(content['details'])[:300]}")
        if not content["success"]:
            self.failed.append(handler)
        self.show(task, label)

    def receipt(self, handler: str, task: str) -> Path:
        """Wait for the answer to a flag."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = list(
                (self.share / "Worker_Outbox").glob(f"supervisor_result_{handler}_{task}_*.json")
            )
            if found:
                return found[0]
            time.sleep(0.1)
        raise SystemExit(f"no receipt for {task} within {PATIENCE:g} s: is the supervisor up?")

    def show(self, task: str, label: str) -> None:
        """Show the marker, the lines of the log and the rows of the audit."""
        marker = self.share / "00_STATE" / f"supervisor_pause_{WORKER}.flag"
        say(f"marker   {'there: the watcher is held' if marker.exists() else 'none'}")
        log = self.share / "05_LOGS" / "supervisor.log"
        until = time.monotonic() + PATIENCE
        while True:
            written = log.read_text().splitlines() if log.exists() else []
            lines = [line for line in written if f"[{task} - {label}]" in line]
            if lines or time.monotonic() > until:
                break
            time.sleep(0.1)
        for line in (lines[0], lines[-1]) if len(lines) > 1 else lines:
            say(f"log      {line[:200]}")
        for row in self.uphold("audit", "--label", label).splitlines():
            say(f"audit    {row}")

    def uphold(self, *words: str) -> str:
        """Run uphold on the machine itself."""
        found = shutil.which("uphold")
        program = [found] if found else [sys.executable, "-m", "uphold"]
        return run(*program, "-c", "config.dev.yaml", *words, cwd=self.orion)

    def all(self) -> None:
        """Give every order there is, with changes in the repository where they need one."""
        self.order("pause_watcher", "disk swap")
        self.order("resume_watcher", "disk swap done")
        self.order("restart_watcher", "memory growth")
        self.push("release 1_4", release="1.4\n")
        self.order("update_code", "release 1_4")
        self.push("release 1_5", release="1.5\n", requirements="# nothing is needed\n")
        self.order("update_code_deps", "release 1_5")
        self.order("rollback_code", "bad release", commits_back=2)
        self.order("diagnostics", "slow since monday")
        if find_spec("sqlalchemy") is not None:
            self.order("verify_db", "after migration")
        else:
            say("\n(verify_db is left out: it needs a database, and pip install 'uphold[sql]')")


def run(*words: object, cwd: Path | None = None) -> str:
    """Run a program; whatever it says is shown if it fails."""
    argv = list(map(str, words))
    ran = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def say(text: str) -> None:
    """Show a line at once."""
    print(text, flush=True)


def main() -> int:
    """Walk in the folder that is named, or in a new one."""
    top = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="orion-"))
    top.mkdir(parents=True, exist_ok=True)
    if any(top.iterdir()):
        raise SystemExit(f"{top} is not empty; name a new folder")
    walk = Walk(Path(os.path.realpath(top)))
    walk.prepare()
    say(f"everything is in {walk.top}")
    say(walk.uphold("start").rstrip())
    try:
        walk.all()
        reports = (walk.share / "05_LOGS" / "diagnostics").iterdir()
        say(f"\nreports  {', '.join(sorted(path.name for path in reports))}")
    finally:
        say(walk.uphold("stop").rstrip())
    if walk.failed:
        say(f"not everything went well: {', '.join(walk.failed)}")
    return 1 if walk.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
