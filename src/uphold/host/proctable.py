"""What the machine's process table says about one process.

By /proc on Linux, by `ps` elsewhere. Nothing here signals, waits or remembers; kept light
because the command line imports it to prove who owns a home.
"""

from __future__ import annotations

import os
import select
import sys
from functools import cache
from stat import S_IXUSR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final, NamedTuple
else:
    from uphold.tuples import NamedTuple

_NONCE: Final = b"UPHOLD_NONCE="
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_ABSENT: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
_PROC: Final = sys.platform == "linux"
_LEAVING: Final = 0x4 | 0x400
"""Flags of a process: it is on its way out, it was killed by a signal (the kernel's sched.h)."""
_KILL: Final = 1 << 8
"""SIGKILL in a mask of signals."""


class Stat(NamedTuple):
    """One line of the process table."""

    pid: int
    state: str
    """One letter; `Z` and `X` are dead."""
    ppid: int
    session: int
    threads: int
    start_ticks: int
    """When it began, in the table's own unit: comparable on this boot only."""

    @property
    def dead(self) -> bool:
        """Tell whether nothing of it runs. A dead leader with living threads is not dead."""
        return self.state in "ZX" and self.threads <= 1


def parse_stat(raw: bytes) -> Stat:
    """Read a line of /proc/PID/stat; the command may contain anything, also spaces and ')'."""
    head, _, tail = raw.rpartition(b")")
    fields = tail.split()
    return Stat(
        pid=int(head.partition(b" ")[0]),
        state=fields[0].decode(),
        ppid=int(fields[1]),
        session=int(fields[3]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
    )


def read_stat(pid: int) -> Stat | None:
    """Look a process up; None if there is none."""
    if not _PROC:
        return next(iter(stats_by_ps(pid)), None)
    raw = read_proc(f"/proc/{pid}/stat", at_once=True)
    return parse_stat(raw) if raw else None


def read_nonce(pid: int) -> str | None:
    """Read the nonce a process was born with; None if it has none or does not let us look."""
    raw = read_proc(f"/proc/{pid}/environ")
    start = 0 if raw.startswith(_NONCE) else raw.find(b"\0" + _NONCE) + 1
    if not start and not raw.startswith(_NONCE):
        return None
    value, _, _ = raw[start + len(_NONCE) :].partition(b"\0")
    return value.decode("ascii", "replace")


def read_proc(path: str, *, at_once: bool = False) -> bytes:
    """Read a whole file of /proc; empty if the process is gone or closed to us.

    Any other failure (no descriptor left, say) is raised: it must never look like absence.
    `at_once` is for files of one line, which the kernel gives whole in the first answer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _ABSENT:
        return b""
    try:
        parts = [os.read(descriptor, 4096 if at_once else 65536)]
        while parts[-1] and not at_once:
            parts.append(os.read(descriptor, 65536))
        return b"".join(parts)
    except _ABSENT:
        return b""
    finally:
        os.close(descriptor)


def main_children() -> list[int]:
    """List our main thread's children: those it started, and those that came to us."""
    raw = read_proc(f"/proc/self/task/{os.getpid()}/children")
    return [int(number) for number in raw.split()]


@cache
def boot_id() -> str:
    """Name the current boot of this machine; every recorded process number is void after it."""
    try:
        told = read_proc(_BOOT_ID, at_once=True)
    except OSError:
        told = b""
    return told.decode("ascii").strip() or _boot_id_by_sysctl()


def _boot_id_by_sysctl() -> str:
    return _run(["sysctl", "-n", "kern.bootsessionuuid"]).strip() or "unknown"


def pidfd_inode(pidfd: int) -> int:
    """Give the number that tells this process from all others of this boot; 0 if there is none.

    Since Linux 6.9 pidfds live in their own file system (mode 0700), one inode for each
    process ever; before, all of them shared one nameless inode (mode 0600).
    """
    status = os.fstat(pidfd)
    return status.st_ino if status.st_mode & S_IXUSR else 0


def is_another(pid: int, inode: int) -> bool:
    """Tell whether a number now means another process than the one with this pidfd inode.

    False as well if nobody has it, or if the kernel gives no telling inode.
    """
    if not inode:
        return False
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return False
    try:
        return pidfd_inode(pidfd) not in (0, inode)
    finally:
        os.close(pidfd)


def lives(pid: int, start_ticks: int, inode: int = 0) -> bool:
    """Tell whether exactly this process, recorded on this boot, still runs."""
    if pid <= 0:
        return False
    if not hasattr(os, "pidfd_open"):
        return _matches(pid, start_ticks)
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, OverflowError):
        return False
    try:
        known = pidfd_inode(pidfd)
        if inode and known and inode != known:
            return False
        # The number is looked up while the pidfd is open: if the process it names still
        # runs afterwards, the line that was read is its own.
        return _matches(pid, start_ticks) and not ended(pidfd)
    finally:
        os.close(pidfd)


def ended(pidfd: int) -> bool:
    """Tell whether the process behind a pidfd has ended (reaped or not)."""
    return bool(ended_of((pidfd,)))


def ended_of(pidfds: Iterable[int]) -> frozenset[int]:
    """Tell which of these are of processes that have ended, with one look at all of them."""
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    return frozenset(pidfd for pidfd, _ in poll.poll(0))


def dying(pid: int) -> bool:
    """Tell whether a process that still exists can do nothing any more but end.

    Between a SIGKILL and the end there is a moment, longer if a thread waits for the disk, in
    which the process still has its locks. False where there is no /proc.
    """
    if not _PROC:
        return False
    _, _, tail = read_proc(f"/proc/{pid}/stat", at_once=True).rpartition(b")")
    fields = tail.split()
    if len(fields) < 7 or fields[0] in (b"Z", b"X") or int(fields[6]) & _LEAVING:
        return True
    pending = 0
    for line in read_proc(f"/proc/{pid}/status").splitlines():
        if line.startswith((b"SigPnd:", b"ShdPnd:")):
            pending |= int(line.split()[1], 16)
    return bool(pending & _KILL)


def stats_by_ps(pid: int | None = None) -> list[Stat]:
    """Read the table through `ps`, for systems without /proc: all of it, or one process."""
    which = ["-A"] if pid is None else ["-p", str(pid)]
    text = _run(["ps", *which, "-o", "pid=,ppid=,state=,lstart="])
    found = (_parse_ps(line) for line in text.splitlines())
    return [stat for stat in found if stat is not None]


def _parse_ps(line: str) -> Stat | None:
    """Read `PID PPID STATE Sun Nov 16 00:37:00 2025`; the session is asked of the kernel."""
    fields = line.split()
    if len(fields) < 8 or fields[4] not in _MONTHS:
        return None
    from calendar import timegm  # noqa: PLC0415 - only where there is no /proc

    hour, minute, second = (int(part) for part in fields[6].split(":"))
    month = _MONTHS.index(fields[4]) // 3 + 1
    born = timegm((int(fields[7]), month, int(fields[5]), hour, minute, second))
    pid = int(fields[0])
    try:
        session = os.getsid(pid)
    except OSError:
        session = 0
    return Stat(pid, fields[2][0], int(fields[1]), session, 1, born)


def _matches(pid: int, start_ticks: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.start_ticks == start_ticks and not stat.dead


def _run(command: list[str]) -> str:
    import subprocess  # noqa: PLC0415, TID251 - host may start programs; only where there is no /proc

    plain = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=plain, check=False)
    except OSError:
        return ""
    return done.stdout
