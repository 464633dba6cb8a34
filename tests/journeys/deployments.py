"""A site whose worker runs from a checkout, and a git that can be held up in the middle."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from deploy.repositories import Repositories, git
from journeys.site import Site, eventually

RUN = "echo {name} $$ >> ../ran\nexec sleep 1000\n"
BAD = "echo bad $$ >> ../ran\nexit 3\n"
SLOW = (
    "trap 'touch ../asked; while [ ! -e ../may-end ]; do sleep 0.02; done; exit 0' TERM\n"
    "echo slow $$ >> ../ran\nwhile :; do sleep 0.05; done\n"
)
"""It ends when it is told to and the test lets it."""
_GIT = """#!/bin/sh
verb=
for word in "$@"; do
    case "$word" in merge|revert|reset) verb=$word; break;; esac
done
if [ -n "$verb" ] && [ -e {hold}/$verb.before ]; then
    touch {hold}/reached
    while [ -e {hold}/$verb.before ]; do sleep 0.02; done
fi
{git} "$@"
code=$?
if [ -n "$verb" ] && [ -e {hold}/$verb.after ]; then
    touch {hold}/reached
    while [ -e {hold}/$verb.after ]; do sleep 0.02; done
fi
exit $code
"""


class Deployment(Site):
    """A remote, a checkout, and a worker `web` that runs a script of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.there = Repositories(folder, commits=2)
        self.publish("one")
        git(self.there.repo, "pull", "-q")
        self.hold = folder / "hold"
        self.hold.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        program = tools / "git"
        program.write_text(_GIT.format(hold=self.hold, git=shutil.which("git")))
        program.chmod(0o755)
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
        self.more = ""
        self.configure()

    def configure(self, healthy_for: str = "500ms") -> None:
        self.write(
            f"""
[supervisor]
name = "site"
[workers.web]
command = ["sh", "run.sh"]
working_dir = "checkout"
environment = {{ SITE_TOKEN = "${{SITE_SECRET}}" }}
[deploy]
repo = "checkout"
workers = ["web"]
gate = {{ healthy_for = "{healthy_for}" }}
{self.more}"""
        )

    def publish(self, name: str, text: str = RUN, **files: str | None) -> str:
        """Push a commit whose script says this name."""
        (self.there.person / "run.sh").write_text(text.format(name=name))
        return self.there.publish(name, **files)

    def begin(self) -> None:
        """Start the supervisor; its git is ours."""
        answer = self.run("start", env=self.environment)
        assert answer.code == 0, answer

    def hold_up(self, verb: str, when: str = "before") -> None:
        (self.hold / f"{verb}.{when}").touch()

    def reached(self) -> None:
        eventually((self.hold / "reached").exists, what="git is held up")

    def let_go(self) -> None:
        for path in self.hold.iterdir():
            path.unlink()

    def ran(self) -> list[str]:
        """Name the versions that were started, in order."""
        path = self.folder / "ran"
        return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []

    def step(self) -> str | None:
        try:
            return json.loads((self.home / "deploy.json").read_text())["record"]["step"]
        except FileNotFoundError:
            return None

    def audit(self) -> list[dict]:
        """Give the audit, oldest first."""
        rows = [json.loads(line) for line in self.ok("audit", "--json").out.splitlines()]
        return sorted(rows, key=lambda row: row["created_at"])

    def ended(self, action: str) -> dict:
        """Wait for the line of the audit that says how an order ended."""

        def look():
            found = [row for row in self.audit() if row["action"].startswith(f"{action}.")]
            return found[-1:] or None

        return eventually(look, what=f"the end of {action}")[0]

    def logged(self) -> str:
        return (self.home / "logs" / "supervisor.log").read_text()

    def assert_tidy(self) -> None:
        """See that nothing is left in the middle: neither in the tree nor in the home."""
        locks = list((self.there.repo / ".git").rglob("*.lock"))
        assert [path.name for path in locks if path.name != "uphold.lock"] == []
        assert self.there.status() == ""
        assert not (self.home / "deploy.json").exists()

    def close(self) -> None:
        self.let_go()
        (self.folder / "may-end").touch()
        super().close()
