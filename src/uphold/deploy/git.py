"""One checkout: how it stands, and the few things that are done to it.

Everything that is refused is refused here, by a sentence. Each operation can be done again
after it was cut anywhere; in which order they come is decided by `updating` and `rolling_back`.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.deploy.addresses import REMOTE, Address, allowed, is_plain_name
from uphold.deploy.guarding import Git, failure, readable
from uphold.deploy.histories import BRANCH, MUCH, REVERTS, Commit, Histories, checked
from uphold.deploy.holding import BUSY, clear_left_locks
from uphold.errors import HostFailure, NotPermitted
from uphold.host.commands import at_work

if TYPE_CHECKING:
    from uphold.host.commands import Done

NO_REPOSITORY: Final = "UPH_DEPLOY_NO_REPOSITORY"
DIRTY: Final = "UPH_DEPLOY_DIRTY"
IN_THE_WAY: Final = "UPH_DEPLOY_IN_THE_WAY"
HISTORY: Final = "UPH_DEPLOY_HISTORY"
CONFLICT: Final = "UPH_DEPLOY_CONFLICT"
MOVED: Final = "UPH_DEPLOY_MOVED"
TOO_LARGE: Final = "UPH_DEPLOY_TOO_LARGE"
_UNFINISHED: Final = {
    "MERGE_HEAD": "merge",
    "REVERT_HEAD": "revert",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "sequencer": "revert or cherry-pick of several commits",
}


@dataclass(frozen=True, slots=True)
class Folders:
    """Where git keeps what belongs to this checkout."""

    own: Path
    """Its index and its HEAD."""
    common: Path
    """What it shares with other work trees of the same repository."""


class Checkout(Histories):
    """A work tree of git that some workers run from."""

    def __init__(self, git: Git, *, remote: str, branch: str) -> None:
        super().__init__(git)
        self.remote = remote
        self.branch = branch

    # How it stands.

    def folders(self) -> Folders:
        """Find git's own folders; NotPermitted if there is no checkout here."""
        repo = self.git.repo
        if not Path(repo).is_dir():
            raise _no_repository(f"there is no folder {repo}.")
        done = self.git.ask(
            "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"
        )
        if done.returncode is None or done.timed_out:
            raise failure(done, "rev-parse")
        if "dubious ownership" in done.stderr:
            raise NotPermitted(
                f"the checkout {repo} belongs to another user, whose settings git does not trust.",
                code=NO_REPOSITORY,
                remedy="Run the supervisor as that user, or if you trust its owner: "
                f"git config --global --add safe.directory {repo}",
            )
        if not done.ok:
            raise _no_repository(f"{repo} is not a checkout of git: {_last_line(done)}.")
        top, own, common = done.stdout.rstrip("\n").split("\n")
        if os.path.realpath(top) != os.path.realpath(repo):
            raise _no_repository(f"{repo} is a folder inside the checkout {top}, not a checkout.")
        return Folders(Path(own), Path(repo, common).resolve())

    def commit(self) -> str:
        """Give the id of the commit that is checked out on the branch; NotPermitted otherwise."""
        head = self.git.ask("symbolic-ref", "--quiet", "HEAD")
        wanted = f"refs/heads/{self.branch}"
        if head.stdout.strip() != wanted:
            on = head.stdout.strip().removeprefix("refs/heads/")
            where = f"on branch '{readable(on)}'" if on else "on no branch (a detached HEAD)"
            raise NotPermitted(
                f"the checkout {self.git.repo} is {where}, not on '{self.branch}'.",
                code=BRANCH,
                remedy=f"git -C {self.git.repo} switch {self.branch}, or correct deploy.branch.",
            )
        return self.resolve("HEAD")

    def check_clean(self, folders: Folders) -> None:
        """Refuse edits of tracked files, and anything somebody else has not finished."""
        for name, what in _UNFINISHED.items():
            if (folders.own / name).exists():
                raise NotPermitted(
                    f"a {what} is in the middle in {self.git.repo}.",
                    code=BUSY,
                    remedy="Finish it or abort it there (git status says how), then try again.",
                )
        if (folders.own / "index.lock").exists():
            raise NotPermitted(
                f"another git is at work in {self.git.repo}, or was killed there.",
                code=BUSY,
                remedy=f"If none runs, remove {folders.own / 'index.lock'} and try again.",
            )
        changed = self.edited()
        if changed:
            raise NotPermitted(
                f"tracked files are changed in {self.git.repo}: {_some(changed)}.",
                code=DIRTY,
                remedy="Commit them, or put them back: git restore --staged --worktree .",
            )

    def edited(self) -> list[str]:
        """List tracked files that differ from the commit; untracked ones do not count."""
        said = self.git.must(
            "status",
            "--porcelain=v1",
            "--untracked-files=no",
            "--ignore-submodules=all",
            "--no-renames",
            "-z",
            most=MUCH,
        )
        return [entry[3:] for entry in said.split("\0") if entry]

    def stands(self, commit: str) -> bool:
        """Tell whether branch and tracked files are those of a commit."""
        return self.commit() == commit and not self.edited()

    def address(self) -> Address:
        """Give the address of the remote, as git's own settings have it; NotPermitted if unfit."""
        if not is_plain_name(self.remote) or not is_plain_name(self.branch):
            raise NotPermitted(
                f"'{self.remote}' or '{self.branch}' is no possible name.", code=REMOTE
            )
        done = self.git.ask("remote", "get-url", "--all", "--", self.remote)
        urls = done.stdout.splitlines()
        if done.ok and len(urls) == 1:
            return allowed(urls[0])
        how = "has several addresses" if done.ok else "is not known"
        raise NotPermitted(
            f"the remote '{self.remote}' {how} in {self.git.repo}.",
            code=REMOTE,
            remedy=f"git -C {self.git.repo} remote -v shows what there is; correct deploy.remote.",
        )

    # What is done to it.

    def fetch(self) -> str:
        """Fetch the branch from its remote and give the commit it stands at there."""
        self.git.protocol = self.address().protocol
        packs = self._unfinished()
        target = f"refs/remotes/{self.remote}/{self.branch}"
        done = self.git.ask(
            "fetch",
            "--no-tags",
            "--no-prune",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            "--refmap=",
            "--upload-pack=git-upload-pack",
            "--end-of-options",
            self.remote,
            f"+refs/heads/{self.branch}:{target}",
            quiet=False,
        )
        if not done.ok and "couldn't find remote ref" in done.stderr:
            raise NotPermitted(
                f"the remote '{self.remote}' has no branch '{self.branch}'.",
                code=BRANCH,
                remedy="Correct deploy.branch, or push that branch.",
            )
        if not done.ok:
            self._drop_unfinished(packs)
            if os.strerror(errno.EFBIG) in done.stderr:
                raise self._too_large("what it sends is")
            raise failure(done, "fetch")
        return self.resolve(target)

    def check_size(self, older: str, newer: str) -> None:
        """Refuse what would write too much: a few bytes of a pack can unpack to any size."""
        promisor = ("--type=bool", "--default=false", "--get", f"remote.{self.remote}.promisor")
        if self.git.must("config", *promisor).strip() == "true":
            return  # a partial clone: each file would be fetched by itself to be weighed
        if self.weigh(older, newer) > self.git.most:
            raise self._too_large("what it changes comes to")

    def in_the_way(self, older: str, newer: str) -> list[str]:
        """List files nobody tracks that stand where going from one to the other would write."""
        found: dict[str, None] = {}
        for _, _, path in self.added(older, newer):
            place = self._first_that_is_no_folder(path)
            if place is None:  # a folder stands there: what is in it must go, or be tracked
                others = self.git.must("ls-files", "--others", "-z", "--", path, most=MUCH)
                found |= dict.fromkeys([other for other in others.split("\0") if other][:1])
            elif os.path.lexists(Path(self.git.repo, place)) and not self._is_tracked(place):
                found[place] = None
        return list(found)

    def check_way(self, older: str, newer: str) -> None:
        """Refuse to go where files would be overwritten that nobody else has a copy of."""
        files = self.in_the_way(older, newer)
        if files:
            raise NotPermitted(
                f"untracked files are in the way in {self.git.repo}: {_some(files)}.",
                code=IN_THE_WAY,
                remedy="Move them elsewhere: what comes has files of the same names.",
            )

    def fast_forward(self, target: str) -> None:
        """Bring the branch forward to a descendant of its commit, and nowhere else."""
        words = ("merge", "--ff-only", "--no-overwrite-ignore", "--no-verify-signatures")
        done = self.git.ask(*words, checked(target), quiet=False)
        if not done.ok:
            raise failure(done, "merge --ff-only")

    def reset(self, commit: str, *, local: bool = False) -> None:
        """Make branch and tracked files those of a commit; `local` if they have been here."""
        done = self.git.ask("reset", "--hard", checked(commit), "--", quiet=False, local=local)
        if not done.ok:
            raise failure(done, "reset --hard")

    def revert(self, commit: Commit) -> str:
        """Make the commit that undoes another and give its id; HostFailure and a tree as before."""
        before = self.commit()
        done = self._revert(commit)
        if done.ok:
            return self.commit()
        conflicts = self._conflicts()
        self.put_right(before, (commit.id, commit.parents[0]))
        if conflicts:
            raise HostFailure(
                f"{commit.line} cannot be reverted, as later changes touch the same lines of "
                f"{_some(conflicts)}.",
                code=CONFLICT,
                remedy="The revert was aborted. Revert it by hand, or roll back further.",
            )
        raise failure(done, f"revert {commit.short}")

    def remember(self, reverted: str, revert: str) -> None:
        """Keep a revert, and keep in mind that it is ours."""
        name = f"{REVERTS}/{checked(reverted)}/{checked(revert)}"
        self.git.must("update-ref", name, revert)

    def put_right(self, commit: str, *ways: tuple[str, str]) -> None:
        """Bring the tree to a commit after going one of these ways was cut anywhere.

        Files that a cut step may have added are taken away; nothing else untracked is touched.
        That nothing was in the way had been made sure of before (`check_way`).
        """
        folders = self.folders()
        clear_left_locks(self, folders, index_too=True)
        self.git.ask("revert", "--quit")
        # First of all: it may be these files that have filled the disk.
        for older, newer in ways:
            for _, _, path in self.added(older, newer):
                self._take_away(path)
        try:
            self.reset(commit, local=True)
        except HostFailure as cause:
            if "index" not in cause.message:
                raise
            # A power cut can tear it; all it says stands in the commit as well.
            (folders.own / "index").unlink(missing_ok=True)
            self.reset(commit, local=True)

    # Helpers.

    def _unfinished(self) -> set[Path]:
        return set((self.folders().common / "objects/pack").glob("tmp_*"))

    def _drop_unfinished(self, known: set[Path]) -> None:
        """Take away what a fetch left that did not end well; nobody else would for weeks."""
        left = self._unfinished() - known
        if self._others_at_work():
            return  # some of it may be what a fetch of theirs is writing
        for path in left:
            with suppress(OSError):
                path.unlink()

    def _others_at_work(self) -> bool:
        """Tell whether a git runs in any work tree of the repository, now that ours has ended."""
        common = self.folders().common
        trees = [common.parent if common.name == ".git" else common]
        for link in common.glob("worktrees/*/gitdir"):
            with suppress(OSError):  # gone meanwhile
                trees.append(Path(link.parent, link.read_text().strip()).parent)
        return any(at_work("git", tree) for tree in trees)

    def _too_large(self, what: str) -> NotPermitted:
        repo, remote, branch = self.git.repo, self.remote, self.branch
        return NotPermitted(
            f"the remote '{remote}' has too much: {what} more than {self.git.most >> 20} MiB.",
            code=TOO_LARGE,
            remedy=f"If that is meant, stop the workers and bring it in by hand: "
            f"git -C {repo} pull --ff-only {remote} {branch}",
        )

    def _revert(self, commit: Commit) -> Done:
        if self.tree(commit.id) == self.tree(commit.parents[0]):
            # git reverts no commit that changed nothing, yet it counts like the others.
            text = f'Revert "{commit.subject}"\n\nThis reverts commit {commit.id}.\n'
            words = ("commit", "--allow-empty", "--no-verify", "--cleanup=verbatim", "-F", "-")
            return self.git.ask(*words, given=text.encode(errors="replace"), quiet=False)
        mainline = ("-m", "1") if len(commit.parents) > 1 else ()
        return self.git.ask("revert", "--no-edit", *mainline, commit.id, quiet=False)

    def _conflicts(self) -> list[str]:
        said = self.git.ask("diff", "--name-only", "--diff-filter=U", "-z").stdout
        return [name for name in said.split("\0") if name]

    def _first_that_is_no_folder(self, path: str) -> str | None:
        """Follow a path down as git does, never through a link; None if all of it is folders."""
        for part in (*reversed(Path(path).parents[:-1]), Path(path)):
            place = Path(self.git.repo, part)
            if place.is_symlink() or not place.is_dir():
                return str(part)
        return None

    def _take_away(self, path: str) -> None:
        """Remove a file and the folders that are empty then, never through a link."""
        if self._first_that_is_no_folder(path) != path:
            return
        with suppress(OSError):
            Path(self.git.repo, path).unlink(missing_ok=True)
            for folder in Path(path).parents[:-1]:
                Path(self.git.repo, folder).rmdir()

    def _is_tracked(self, path: str) -> bool:
        return bool(self.git.must("ls-files", "-z", "--", path, most=MUCH))


def moved(now: str, before: str) -> NotPermitted:
    """Say that somebody else was here."""
    return NotPermitted(
        f"somebody moved the branch to {now[:12]} meanwhile; it was at {before[:12]}.",
        code=MOVED,
        remedy="See what was done there (git reflog), then try again.",
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(readable(name) for name in names[:5]) + more


def _no_repository(text: str) -> NotPermitted:
    remedy = "Clone the repository there, or correct deploy.repo."
    return NotPermitted(text, code=NO_REPOSITORY, remedy=remedy)


def _last_line(done: Done) -> str:
    lines = (done.stderr.strip() or done.error).splitlines()
    return readable(lines[-1].removeprefix("fatal: ")) if lines else ""
