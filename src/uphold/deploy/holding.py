"""Having a checkout to oneself.

Whoever works on it holds a lock, and so does every git and pip that is started meanwhile: a
supervisor that is killed leaves one running perhaps, and the next must wait for its end. Lock
files that a killed git has left are taken away then, as nobody else will.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from uphold.deploy.guarding import GIT_FAILED
from uphold.errors import HostFailure, NotPermitted
from uphold.host.clock import MachineClock
from uphold.host.commands import at_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from uphold.deploy.git import Checkout, Folders

BUSY: Final = "UPH_DEPLOY_BUSY"
PATIENCE: Final = 35.0
"""Seconds: a git that was left over has its limit too, but nobody who ends it."""
_EVERY: Final = 0.05


@contextmanager
def held(checkout: Checkout, patience: float = PATIENCE) -> Iterator[Folders]:
    """Hold a checkout; NotPermitted if somebody else still does after a while."""
    folders = checkout.folders()
    path = folders.common / "uphold.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as cause:
        raise HostFailure(
            f"{path} cannot be opened: {cause.strerror}.",
            code=GIT_FAILED,
            remedy="May the supervisor's user write there, and is the disk not full?",
        ) from cause
    try:
        _lock(lock, checkout, patience)
        checkout.git.keep = (lock,)
        yield folders
    finally:
        checkout.git.keep = ()
        os.close(lock)


def clear_left_locks(checkout: Checkout, folders: Folders, *, index_too: bool) -> None:
    """Take away lock files of a git that was killed; NotPermitted while another is at work.

    The index's only if `index_too`: while an editor is open for a commit, it is somebody's.
    """
    found = [path for path in _lock_files(checkout, folders, index_too=index_too) if path.exists()]
    if not found:
        return
    limit = _now() + PATIENCE
    while at_work("git", checkout.git.repo):
        if _now() > limit:
            raise _busy(checkout)
        time.sleep(_EVERY)
    for path in found:
        with suppress(OSError):
            path.unlink()


def _lock_files(checkout: Checkout, folders: Folders, *, index_too: bool) -> Iterator[Path]:
    own, common = folders.own, folders.common
    yield common / "shallow.lock"
    yield common / "refs/remotes" / checkout.remote / f"{checkout.branch}.lock"
    yield from (common / "refs/uphold").glob("**/*.lock")
    if index_too:
        yield common / "packed-refs.lock"
        yield common / "refs/heads" / f"{checkout.branch}.lock"
        yield from (own / f"{name}.lock" for name in ("index", "HEAD", "ORIG_HEAD"))


def _lock(lock: int, checkout: Checkout, patience: float) -> None:
    limit = _now() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _now() > limit:
                raise _busy(checkout) from None
            time.sleep(_EVERY)
        else:
            return


def _busy(checkout: Checkout) -> NotPermitted:
    return NotPermitted(
        f"somebody else is at work on the checkout {checkout.git.repo}.",
        code=BUSY,
        remedy="Wait until the other update, rollback or git command has ended.",
    )


def _now() -> float:
    return MachineClock().now().mono
