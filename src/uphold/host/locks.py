"""Who owns a home: the one lock that lets a supervisor act, and how readers learn of it.

The lock is the kernel's (`flock`), so it ends with its owner; the JSON inside names the owner
for people and readers. Readers never take the lock: a probing reader would make starts fail.
Slot locks live in `uphold.host.processes.slotlocks`.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from enum import StrEnum

from uphold.core.times import parse_utc, utc_text
from uphold.errors import AlreadyRunning, HostFailure
from uphold.host.proctable import boot_id, dying, lives, pidfd_inode, read_stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Final, NamedTuple

    from uphold.host.homes import Home
else:
    from uphold.tuples import NamedTuple

_STEP: Final = 0.02
_BLOCK: Final = 1024
"""The record is padded to this, so that replacing it needs no new room on a full disk."""
_OPEN: Final = os.O_NOFOLLOW | os.O_CLOEXEC


class Owner(NamedTuple):
    """One supervisor process, told apart from any other that ever has its number."""

    pid: int
    start_ticks: int
    boot_id: str
    host: str
    supervisor_id: str
    since: float
    """Wall time of its start, for people."""
    pidfd_inode: int = 0
    extra: tuple[tuple[str, str], ...] = ()
    """More for people and scripts: the configuration file, the version."""

    @classmethod
    def this_process(
        cls, supervisor_id: str, since: float, extra: Mapping[str, str] | None = None
    ) -> Owner:
        """Describe the calling process as the owner."""
        pid = os.getpid()
        stat = read_stat(pid)
        return cls(
            pid=pid,
            start_ticks=stat.start_ticks if stat else 0,
            boot_id=boot_id(),
            host=os.uname().nodename,
            supervisor_id=supervisor_id,
            since=since,
            pidfd_inode=_own_inode(),
            extra=tuple((extra or {}).items()),
        )

    def __str__(self) -> str:
        return f"pid {self.pid}, started {utc_text(self.since)}, boot id {self.boot_id}"


class Standing(StrEnum):
    """How a home stands with its owner."""

    RUNNING = "running"
    STALE = "stale"
    STOPPED = "stopped"
    CORRUPT = "corrupt"


class Ownership(NamedTuple):
    """What a reader can prove about the owner of a home."""

    standing: Standing
    owner: Owner | None = None
    stopped_at: float | None = None
    reason: str = ""
    """One clause saying how that is known."""

    def keeps_out(self) -> bool:
        """Tell whether a live owner forbids anybody else to start here.

        One that was killed and has not ended yet keeps its lock for a moment; whoever starts
        waits for the lock then, instead of being sent away by a dead supervisor.
        """
        running = self.standing is Standing.RUNNING and self.owner is not None
        return running and not dying(self.owner.pid)  # type: ignore[union-attr]


class HomeLock:
    """The right to act on a home, held until `release` or the end of this process."""

    def __init__(self, home: Home, owner: Owner, descriptors: tuple[int, ...]) -> None:
        self._home = home
        self._owner = owner
        self._descriptors = descriptors

    @classmethod
    def take(cls, home: Home, owner: Owner, retry: float = 3.0) -> HomeLock:
        """Become the owner, or raise AlreadyRunning naming the one there is.

        A proven live owner is named at once and nothing is changed. A held lock without one,
        or whose owner is dying, is what a kill leaves for some milliseconds, so it is tried
        again for `retry` seconds.
        """
        for left in range(round(retry / _STEP), -1, -1):
            descriptors = _try_lock(home)
            if descriptors is not None:
                break
            found = read_owner(home)
            if found.keeps_out() or not left:
                raise _already_running(home, found)
            time.sleep(_STEP)
        assert descriptors is not None
        lock = cls(home, owner, descriptors)
        try:
            _write(descriptors[-1], owner, None)
        except OSError as cause:
            lock.let_go()
            raise HostFailure(
                f"cannot write the owner of the home into {home.lock}: {cause.strerror}.",
                code="UPH_HOME_UNWRITABLE",
                remedy="Is the disk full or read-only?",
            ) from cause
        return lock

    def intact(self) -> bool:
        """Tell whether the lock file is still the one that was locked (nobody removed it)."""
        return bool(self._descriptors) and _is_at(self._descriptors[-1], self._home)

    def restore(self) -> bool:
        """Put the lock file back if somebody removed it; True if that was needed.

        The folder has been locked all the time, so nobody can have become owner meanwhile.
        """
        if not self._descriptors or self.intact():
            return False
        folder, old = self._descriptors
        try:
            file = os.open(self._home.lock, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
        except OSError:
            return False  # the home itself is gone or replaced: that is not ours to mend
        try:
            if not _locked(file):
                raise BlockingIOError
            _write(file, self._owner, None)
        except OSError:
            os.close(file)
            return False  # a full disk, or somebody probing: it is tried again
        os.close(old)
        self._descriptors = (folder, file)
        return True

    def release(self, stopped_at: float) -> None:
        """Write down a clean end and let go. The very last thing a supervisor does."""
        if not self._descriptors:
            return
        try:  # noqa: SIM105 - contextlib costs a command 0.6 ms
            _write(self._descriptors[-1], self._owner, stopped_at)
        except OSError:
            pass
        self.let_go()

    def let_go(self) -> None:
        """Give the home back without a word, as a death would: the next one has to look."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = ()


def read_owner(home: Home) -> Ownership:
    """Say who owns a home without touching the lock."""
    content, inode = _read(home)
    if content is None:
        return Ownership(Standing.STOPPED, reason="no supervisor has ever run here")
    if not content.strip(b"\0 \n"):
        return Ownership(Standing.CORRUPT, reason="the lock file has not been written yet")
    record = _parse(content)
    if record is None:
        return Ownership(Standing.CORRUPT, reason=f"{home.lock} is not readable as a record")
    try:
        return _judge(record, inode)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as cause:
        return Ownership(Standing.CORRUPT, reason=f"{home.lock} has no valid {cause}")


def _judge(record: dict[str, Any], inode: int) -> Ownership:
    owner = _owner_of(record)
    if record.get("stopped_at") is not None:
        stopped_at = parse_utc(record["stopped_at"])
        return Ownership(Standing.STOPPED, owner, stopped_at, "it ended cleanly")
    if record.get("lock_inode", inode) != inode:
        return Ownership(Standing.STALE, owner, None, "the lock file is a copy of another home's")
    same_boot = owner.boot_id == boot_id()
    if same_boot and lives(owner.pid, owner.start_ticks, owner.pidfd_inode):
        return Ownership(Standing.RUNNING, owner, None, "its process runs")
    if owner.host != os.uname().nodename:
        # Its number means nothing here: another machine, another container, or a new name.
        # Only the lock itself can tell, and whoever starts a supervisor takes that.
        return Ownership(Standing.CORRUPT, owner, None, f"it was recorded on host {owner.host}")
    if not same_boot:
        return Ownership(Standing.STALE, owner, None, "the machine has restarted since")
    return Ownership(Standing.STALE, owner, None, "its process is gone")


def _try_lock(home: Home) -> tuple[int, int] | None:
    """Lock the folder and the lock file; None if somebody else holds one of them.

    The folder too, because removing the lock file would otherwise make room for a second
    owner beside the first.
    """
    folder = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY | _OPEN)
    if not _locked(folder):
        os.close(folder)
        return None
    while True:
        try:
            file = os.open(home.lock, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
        except OSError as cause:
            os.close(folder)
            raise HostFailure(
                f"cannot open the lock {home.lock}: {cause.strerror}.",
                code="UPH_HOME_UNSAFE",
                remedy="It must be a plain file of your own; a link is never followed.",
            ) from cause
        if not _locked(file):
            os.close(file)
            os.close(folder)
            return None
        if _is_at(file, home):
            return folder, file
        os.close(file)


def _locked(descriptor: int) -> bool:
    import fcntl  # noqa: PLC0415 - readers, who are most, take no lock

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, home: Home) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(home.lock))
    except FileNotFoundError:
        return False


def _write(descriptor: int, owner: Owner, stopped_at: float | None) -> None:
    """Replace the record in place, in one write; the checksum tells a reader who came between."""
    record: dict[str, object] = {
        "pid": owner.pid,
        "start_ticks": owner.start_ticks,
        "boot_id": owner.boot_id,
        "host": owner.host,
        "supervisor_id": owner.supervisor_id,
        "since": utc_text(owner.since),
        "stopped_at": None if stopped_at is None else utc_text(stopped_at),
        "pidfd_inode": owner.pidfd_inode,
        "lock_inode": os.fstat(descriptor).st_ino,
        **dict(owner.extra),
    }
    record["check"] = _checksum(record)
    content = json.dumps(record).encode()
    size = max(_BLOCK, len(content) + 1, os.fstat(descriptor).st_size)
    block = content.ljust(size - 1) + b"\n"
    if os.pwrite(descriptor, block, 0) != size:
        raise OSError(28, os.strerror(28))


def _read(home: Home) -> tuple[bytes | None, int]:
    """Read the record; again if it was being replaced at that very moment."""
    content, inode = b"", 0
    for _ in range(5):
        try:
            descriptor = os.open(home.lock, os.O_RDONLY | os.O_NONBLOCK | _OPEN)
        except FileNotFoundError:
            return None, 0
        except OSError:
            return b"?", 0
        try:
            content, inode = os.read(descriptor, 65536), os.fstat(descriptor).st_ino
        except OSError:
            return b"?", 0
        finally:
            os.close(descriptor)
        if _parse(content) is not None:
            break
        time.sleep(0.002)
    return content, inode


def _parse(content: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    check = record.pop("check", None)
    return None if check is not None and check != _checksum(record) else record


def _checksum(record: Mapping[str, object]) -> int:
    return zlib.crc32(json.dumps(dict(record)).encode())


def _owner_of(record: dict[str, Any]) -> Owner:
    known = {*Owner._fields, "stopped_at", "lock_inode"}
    return Owner(
        pid=int(record["pid"]),
        start_ticks=int(record["start_ticks"]),
        boot_id=str(record["boot_id"]),
        host=str(record["host"]),
        supervisor_id=str(record["supervisor_id"]),
        since=parse_utc(record["since"]),
        pidfd_inode=int(record.get("pidfd_inode", 0)),
        extra=tuple((key, str(value)) for key, value in record.items() if key not in known),
    )


def _own_inode() -> int:
    if not hasattr(os, "pidfd_open"):
        return 0
    pidfd = os.pidfd_open(os.getpid())
    try:
        return pidfd_inode(pidfd)
    finally:
        os.close(pidfd)


def _already_running(home: Home, found: Ownership) -> AlreadyRunning:
    if found.standing is Standing.RUNNING:
        return AlreadyRunning(
            f"a supervisor already owns {home.path}: {found.owner}.",
            remedy="uphold status shows it; uphold stop ends it.",
        )
    last = f" The last recorded owner was {found.owner}." if found.owner else ""
    return AlreadyRunning(
        f"somebody holds the lock of {home.path} and cannot be named ({found.reason}).{last}",
        remedy=f"fuser {home.lock} names the processes that have it open.",
    )
