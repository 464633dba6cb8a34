"""Holding, signalling and reaping one process on Linux, by its pidfd.

A pidfd never names another process, so what was verified once stays verified. Exits of
processes that are not our children are read with PIDFD_GET_INFO (Linux 6.15 and later).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import struct
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from uphold.core.statuses import Identity
from uphold.host.processes.containment import Containment, Ending
from uphold.host.proctable import boot_id, ended, pidfd_inode, read_nonce, read_stat

if TYPE_CHECKING:
    from collections.abc import Iterator

_GET_INFO: Final = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_INFO: Final = struct.Struct("<QQ11Ii")
_WANTED: Final = 0xF
_HAS_EXIT: Final = 8
_TO_GROUP: Final = 4
_SUBREAPER: Final = 36
_IS_SUBREAPER: Final = 37
_CLOEXEC_ALL: Final = 4


class Process:
    """One process, held so that its number cannot come to mean another."""

    __slots__ = ("child", "descriptor", "identity")

    def __init__(self, identity: Identity, descriptor: int, *, child: bool) -> None:
        self.identity = identity
        self.descriptor = descriptor
        """Becomes readable when the process ends; -1 once closed."""
        self.child = child

    def alive(self) -> bool:
        """Tell whether it still runs."""
        return self.descriptor >= 0 and not ended(self.descriptor)

    def reap(self) -> Ending | None:
        """Learn how it ended, and let a child of ours go; None if that is not known yet."""
        if self.child:
            try:
                return _reap(os.P_PIDFD, self.descriptor)
            except ChildProcessError:
                self.child = False  # somebody else waited for it; the kernel may still know
        return _exit_of_stranger(self.descriptor)

    def send(self, number: int) -> bool:
        """Send a signal to it; False if it is gone or not ours to signal."""
        return _send(self.descriptor, number, 0)

    def send_group(self, number: int) -> bool:
        """Send a signal to the process group it leads, also after its own end."""
        try:
            signal.pidfd_send_signal(self.descriptor, number, None, _TO_GROUP)
        except ProcessLookupError:
            return False
        except OSError:
            return self._send_group_by_number(number)
        return True

    def close(self) -> None:
        """Let go of it. Whoever watches the descriptor stops watching first."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _send_group_by_number(self, number: int) -> bool:
        # Before Linux 6.9. While the leader lives its number cannot be anybody else's group.
        if not self.alive():
            return False
        try:
            os.killpg(self.identity.pid, number)
        except OSError:
            return False
        return True


def hold_child(pid: int, nonce: str) -> Process:
    """Hold a process just started by us. Unreaped, its number is still its own."""
    descriptor = os.pidfd_open(pid)
    with _closed_on_failure(descriptor):
        stat = read_stat(pid)
        assert stat is not None, "an unreaped child is in the process table"
        identity = Identity(
            pid=pid,
            start_ticks=stat.start_ticks,
            boot_id=boot_id(),
            inode=pidfd_inode(descriptor),
            nonce=nonce,
        )
        return Process(identity, descriptor, child=True)


def find(identity: Identity) -> Process | None:
    """Hold exactly this process again, alive or not yet reaped; None if it is gone.

    Boot, number and start must agree, and the pidfd's inode; where the kernel gives no
    telling inode the nonce must agree instead.
    """
    if identity.boot_id != boot_id():
        return None
    try:
        descriptor = os.pidfd_open(identity.pid)
    except (OSError, OverflowError):
        return None
    with _closed_on_failure(descriptor):
        if _is_same(identity, descriptor):
            return Process(identity, descriptor, child=_is_child(descriptor))
    os.close(descriptor)
    return None


def hold_sighted(pid: int, start_ticks: int, nonce: str) -> Process | None:
    """Hold a process that was seen in the process table a moment ago; None if it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    with _closed_on_failure(descriptor):
        stat = read_stat(pid)
        if stat is not None and stat.start_ticks == start_ticks and not ended(descriptor):
            identity = Identity(
                pid=pid,
                start_ticks=start_ticks,
                boot_id=boot_id(),
                inode=pidfd_inode(descriptor),
                nonce=nonce,
            )
            return Process(identity, descriptor, child=_is_child(descriptor))
    os.close(descriptor)
    return None


def become_reaper() -> bool:
    """Have orphaned descendants come to us instead of to process 1."""
    return bool(ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0) == 0)


def is_reaper() -> bool:
    """Tell whether orphaned descendants come to us."""
    answer = ctypes.c_int(0)
    known = ctypes.CDLL(None).prctl(_IS_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0
    return bool(known and answer.value)


def can_reap() -> bool:
    """Tell whether this kernel lets orphans come to us, without asking for them."""
    answer = ctypes.c_int(0)
    return bool(ctypes.CDLL(None).prctl(_IS_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0)


def close_on_exec(first: int) -> bool:
    """Mark every descriptor from this one on to be closed at exec; False if the kernel cannot."""
    libc = ctypes.CDLL(None)
    try:
        close_range = libc.close_range
    except AttributeError:
        return False
    return bool(close_range(first, ctypes.c_uint(0xFFFFFFFF), _CLOEXEC_ALL) == 0)


def containment() -> Containment:
    """Say what holds on this kernel."""
    own = os.pidfd_open(os.getpid())
    try:
        sure, exits = pidfd_inode(own) != 0, _knows_exits(own)
    finally:
        os.close(own)
    return Containment(
        level="B",
        means="session, sub-reaper and nonce scan",
        sure_identity=sure,
        exits_of_adopted=exits,
        gap="a process that leaves its session, its environment and the slot lock behind",
    )


@contextmanager
def _closed_on_failure(descriptor: int) -> Iterator[None]:
    """Let go of a descriptor if who it means cannot be found out, for want of another one, say."""
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def _is_same(identity: Identity, descriptor: int) -> bool:
    stat = read_stat(identity.pid)
    if stat is None or stat.start_ticks != identity.start_ticks:
        return False
    inode = pidfd_inode(descriptor)
    if identity.inode and inode:
        return inode == identity.inode
    return stat.dead or read_nonce(identity.pid) == identity.nonce


def _is_child(descriptor: int) -> bool:
    try:
        os.waitid(os.P_PIDFD, descriptor, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reap(kind: int, which: int) -> Ending | None:
    result = os.waitid(kind, which, os.WEXITED | os.WNOHANG)
    if result is None:
        return None
    if result.si_code == os.CLD_EXITED:
        return Ending(code=result.si_status)
    return Ending(signal=result.si_status)


def _exit_of_stranger(descriptor: int) -> Ending | None:
    answer = _info(descriptor)
    if answer is None or not answer[0] & _HAS_EXIT:
        return None
    status = os.waitstatus_to_exitcode(answer[-1])
    return Ending(signal=-status) if status < 0 else Ending(code=status)


def _info(descriptor: int) -> tuple[int, ...] | None:
    answer = bytearray(_INFO.pack(_WANTED, 0, *[0] * 11, 0))
    try:
        fcntl.ioctl(descriptor, _GET_INFO, answer)
    except OSError:
        return None
    return _INFO.unpack(answer)


def _knows_exits(descriptor: int) -> bool:
    # The answer to PIDFD_GET_INFO exists since 6.13, the exit in it since 6.15.
    major, minor = os.uname().release.split(".")[:2]
    number = int("".join(takewhile(str.isdigit, minor)))
    return _info(descriptor) is not None and (int(major), number) >= (6, 15)


def _send(descriptor: int, number: int, flags: int) -> bool:
    try:
        signal.pidfd_send_signal(descriptor, number, None, flags)
    except (ProcessLookupError, PermissionError):
        return False
    return True
