"""Real repositories: a bare remote, somebody who pushes to it, and the checkout that is deployed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from uphold.deploy.git import Checkout
from uphold.deploy.guarding import Git
from uphold.deploy.records import DeployRecord
from uphold.deploy.rolling_back import RollingBack
from uphold.deploy.updating import Updating

PLAIN = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "somebody",
    "GIT_AUTHOR_EMAIL": "somebody@localhost",
    "GIT_COMMITTER_NAME": "somebody",
    "GIT_COMMITTER_EMAIL": "somebody@localhost",
}


def git(folder: Path, *words: str) -> str:
    """Run git as a person would, and give what it said."""
    ran = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *words],
        cwd=folder,
        env=PLAIN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"git {words}: {ran.stdout}{ran.stderr}"
    return ran.stdout.strip()


class Repositories:
    """A remote, a person with a clone of it, and the checkout."""

    def __init__(self, folder: Path, commits: int = 4) -> None:
        self.folder = folder
        self.remote = folder / "remote.git"
        self.person = folder / "person"
        self.repo = folder / "checkout"
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.remote))
        git(folder, "init", "-q", "-b", "main", str(self.person))
        git(self.person, "remote", "add", "origin", str(self.remote))
        self.ids = [self.commit(f"version {n}", code=f"print({n})\n") for n in range(commits)]
        self.push()
        git(folder, "clone", "-q", str(self.remote), str(self.repo))

    def write(self, **files: str | None) -> None:
        """Write files of the person; None removes one."""
        for name, text in files.items():
            path = self.person / name.replace("__", "/").replace("_txt", ".txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)

    def commit(self, message: str, **files: str | None) -> str:
        self.write(**files)
        git(self.person, "add", "-A")
        git(self.person, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.person, "rev-parse", "HEAD")

    def push(self, *words: str) -> None:
        git(self.person, "push", "-q", *words, "origin", "main")

    def publish(self, message: str, **files: str | None) -> str:
        made = self.commit(message, **files)
        self.push()
        return made

    def head(self) -> str:
        return git(self.repo, "rev-parse", "HEAD")

    def tree(self, name: str = "HEAD") -> str:
        return git(self.repo, "rev-parse", f"{name}^{{tree}}")

    def status(self) -> str:
        return git(self.repo, "status", "--porcelain")

    def size(self) -> int:
        """Count the bytes of everything the checkout takes up."""
        return sum(each.stat().st_size for each in self.repo.rglob("*") if each.is_file())

    def read(self, name: str = "code") -> str:
        return (self.repo / name).read_text()

    def checkout(self, **more: str) -> Checkout:
        words = {"remote": "origin", "branch": "main", **more}
        return Checkout(Git(str(self.repo)), **words)

    def updating(self) -> Updating:
        return Updating(self.checkout())

    def rolling_back(self) -> RollingBack:
        return RollingBack(self.checkout())


class Notes:
    """Keeps what was written down, in order."""

    def __init__(self) -> None:
        self.records: list[DeployRecord] = []

    def __call__(self, record: DeployRecord) -> None:
        self.records.append(record)

    @property
    def steps(self) -> list[str]:
        return [record.step.value for record in self.records]
