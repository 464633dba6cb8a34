"""What the repository of a checkout knows: commits, their order, and which reverts are ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from uphold.deploy.addresses import is_id
from uphold.deploy.guarding import GIT_FAILED, Git, readable
from uphold.errors import HostFailure, NotPermitted

if TYPE_CHECKING:
    from collections.abc import Iterable

BRANCH: Final = "UPH_DEPLOY_BRANCH"
REVERTS: Final = "refs/uphold/reverts"
"""Below it a name for each revert: the commit that was reverted, and the one that did it."""
MUCH: Final = 16 << 20
"""Bytes of a list of paths or commits that are read."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, as far as people and reverting need to know it."""

    id: str
    short: str
    parents: tuple[str, ...]
    subject: str

    @property
    def line(self) -> str:
        """Show it in one line."""
        return f"{self.short} {self.subject}"


class Histories:
    """Asks git about commits; changes nothing."""

    def __init__(self, git: Git) -> None:
        self.git = git

    def resolve(self, name: str) -> str:
        """Give the id of the commit that a name stands for; NotPermitted if there is none."""
        done = self.git.ask(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
        )
        found = done.stdout.strip()
        if not done.ok or not is_id(found):
            raise NotPermitted(f"there is no commit '{name}' in {self.git.repo}.", code=BRANCH)
        return found

    def short(self, commit: str) -> str:
        """Give the short form of an id."""
        return self.git.must("rev-parse", "--short", checked(commit)).strip()

    def tree(self, commit: str) -> str:
        """Give the id of the content of a commit."""
        return self.git.must("rev-parse", "--verify", f"{checked(commit)}^{{tree}}").strip()

    def message(self, commit: str) -> str:
        """Give the whole message of a commit."""
        return self.git.must("log", "-1", "--format=%B", checked(commit), "--")

    def between(self, older: str, newer: str) -> list[str]:
        """List the ids of what is in `newer` and not in `older`, newest first."""
        span = f"{checked(older)}..{checked(newer)}"
        return self.git.must("rev-list", span, "--", most=MUCH).split()

    def history(self, start: str, most: int) -> list[tuple[str, ...]]:
        """List commits along the first parents, each with its parents, newest first."""
        said = self.git.must(
            "rev-list",
            "--first-parent",
            "--parents",
            f"--max-count={most}",
            checked(start),
            "--",
            most=MUCH,
        )
        return [tuple(line.split()) for line in said.splitlines()]

    def describe(self, commits: Iterable[str]) -> list[Commit]:
        """Tell of commits what people want to know."""
        ids = [checked(commit) for commit in commits]
        if not ids:
            return []
        said = self.git.must(
            "log", "--no-walk=unsorted", "-z", "--format=%H%n%h%n%P%n%s", *ids, "--", most=MUCH
        )
        found = []
        for entry in said.strip("\0\n").split("\0"):
            full, short, parents, subject = entry.strip("\n").split("\n", 3)
            found.append(Commit(full, short, tuple(parents.split()), readable(subject[:200])))
        return found

    def has_file(self, commit: str, path: str) -> bool:
        """Tell whether a commit has this file."""
        return self.git.ask("cat-file", "-e", f"{checked(commit)}:{path}").ok

    def own_reverts(self) -> dict[str, str]:
        """Give the reverts that uphold has made here: what each of them reverted."""
        said = self.git.must("for-each-ref", "--format=%(refname)", f"{REVERTS}/", most=MUCH)
        names = (line.removeprefix(f"{REVERTS}/").split("/") for line in said.splitlines())
        return {pair[1]: pair[0] for pair in names if len(pair) == 2 and all(map(is_id, pair))}

    def added(self, older: str, newer: str) -> list[tuple[str, str, str]]:
        """List what going from one to the other adds: mode, blob and path."""
        # A submodule is left out: its folder is not ours.
        entries = self._changed(older, newer, "A")
        return [entry for entry in entries if entry[0] != "160000"]

    def weigh(self, older: str, newer: str) -> int:
        """Count the bytes of the files that going from one to the other would write."""
        blobs = [blob for mode, blob, _ in self._changed(older, newer, "AMT") if mode != "160000"]
        words = ("cat-file", "--buffer", "--batch-check=%(objectsize)")
        said = self.git.must(*words, given="\n".join(blobs).encode(), most=MUCH) if blobs else ""
        lost = [line for line in said.splitlines() if not line.isdecimal()]
        if lost:
            raise HostFailure(
                f"the repository of {self.git.repo} is not complete: {readable(lost[0])}.",
                code=GIT_FAILED,
                remedy=f"git -C {self.git.repo} fsck shows what else is missing.",
            )
        return sum(map(int, said.split()))

    def _changed(self, older: str, newer: str, kinds: str) -> list[tuple[str, str, str]]:
        said = self.git.must(
            "diff-tree",
            "-r",
            "-z",
            "--raw",
            "--no-abbrev",
            "--no-renames",
            "--no-ext-diff",
            f"--diff-filter={kinds}",
            checked(older),
            checked(newer),
            "--",
            most=MUCH,
        )
        parts = [part for part in said.split("\0") if part]
        found = []
        for raw, path in zip(parts[::2], parts[1::2], strict=True):
            _, mode, _, blob, _ = raw.split()
            found.append((mode, blob, path))
        return found


def checked(commit: str) -> str:
    """Make sure that this is the id of a commit and nothing that git could misread."""
    if not is_id(commit):
        raise HostFailure(f"'{readable(commit)}' is not the id of a commit.", code=GIT_FAILED)
    return commit
