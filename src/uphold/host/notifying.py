"""The socket on which workers speak of themselves: where it lies, and reading it without haste.

Its path goes into workers' environments and outlives supervisors, so it is short, and the same
for the same home. Who a sender is and what is meant is found out elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import stat
import struct
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Final

from uphold.errors import HostFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from uphold.host.homes import Home

    Hear = Callable[[bytes, int, int], None]

_CREDENTIALS: Final = struct.Struct("3i")
_ANCILLARY: Final = socket.CMSG_SPACE(_CREDENTIALS.size)
"""Room for the credentials alone: passed descriptors find none, and the kernel closes them."""
LONGEST: Final = 4096
AT_ONCE: Final = 64
"""Datagrams that are read before the loop gets its turn."""
_BREATH: Final = 0.01
"""Pause after a full batch: whoever floods us waits, everybody else goes on."""
_SOON: Final = 0.005
"""If the next comes so soon after the last, more are coming: they are read together."""
_FOLDER: Final = "uphold-notify"
"""Not `uphold`, which people choose as a home: that is for its owner alone."""
_LONGEST_PATH: Final = 100
_LEFT_OVER: Final = 60.0
_STEPS: Final = 50
_STEP: Final = 0.02
_MOST_SWEPT: Final = 256


class NotifySocket:
    """Receives datagrams and tells (data, pid, uid), as the kernel knows the sender."""

    def __init__(self, home: Home, environ: Mapping[str, str] | None = None) -> None:
        """Bind. The folder is in `environ`'s runtime directory, or where it was the last time."""
        self._link = home.path / "notify.sock"
        self._hear: Hear | None = None
        self._resume: asyncio.TimerHandle | None = None
        self._woken = 0.0
        self._read = 0
        self._mode = 0o600
        for path in _candidates(self._link, environ or {}):
            bound = _bind(path, self._mode)
            if bound is not None:
                self.path = str(path)
                self._file = path
                self._socket = bound
                break
        else:
            raise HostFailure(
                "there is no folder in which workers could reach the notify socket.",
                code="UPH_NOTIFY_UNAVAILABLE",
                remedy="Set XDG_RUNTIME_DIR to a folder of your own with a short name.",
            )
        self._inode = _inode(path)
        _point(self._link, path)

    def admit_others(self) -> None:
        """Let processes of other users send; for workers that run as somebody else."""
        if self._mode != 0o666:
            self._mode = 0o666
            with suppress(OSError):  # it was removed: made anew with this mode by `restore`
                self._file.chmod(self._mode)

    def listen(self, hear: Hear) -> None:
        """Tell every datagram from now on, also those that have waited; needs the running loop."""
        self._hear = hear
        self._look = select.poll()
        self._look.register(self._socket.fileno(), select.POLLIN)
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._wake)

    def drain(self) -> bool:
        """Read what waits, up to a limit; False if there may be more."""
        hear = self._hear
        if hear is None:
            return True
        if not self._look.poll(0):
            return True  # for whoever ends; asking a socket that is empty costs ten times as much
        receive = self._socket.recvmsg
        for _ in range(AT_ONCE):
            try:
                # One byte more than is allowed shows that there was more.
                data, ancillary, _, _ = receive(LONGEST + 1, _ANCILLARY)
            except BlockingIOError:
                return True
            except OSError:
                return True  # an error of the socket itself: the next one tells more
            self._read += 1
            pid, uid = _sender(ancillary)
            hear(data, pid, uid)
        return False

    def restore(self) -> bool:
        """Make the socket anew if somebody removed its file; True if that was needed."""
        if _inode(self._file) == self._inode:
            return False
        bound = _bind(self._file, self._mode)
        if bound is None:
            return False
        hear = self._hear
        self._let_go()
        self._socket = bound
        self._inode = _inode(self._file)
        if hear is not None:
            self.listen(hear)
        return True

    def close(self) -> None:
        """Stop listening. The link in the home stays: it says where the next one must be."""
        self._let_go()
        if _inode(self._file) == self._inode:
            with suppress(OSError):
                self._file.unlink()

    def _let_go(self) -> None:
        if self._resume is not None:
            self._resume.cancel()
            self._resume = None
        if self._hear is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._hear = None
        self._socket.close()

    def _wake(self) -> None:
        """Read what came; the first at once, and those of a rush a few at a time.

        To be woken costs more than to read. Whoever sends meanwhile waits in the queue.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        pause = _SOON if now - self._woken < _SOON else 0.0
        self._woken = now
        if not self.drain():
            pause = _BREATH
        if pause:
            loop.remove_reader(self._socket.fileno())
            self._resume = loop.call_later(pause, self._go_on)

    def _go_on(self) -> None:
        """Read what came during the pause; be woken again when nothing has."""
        loop = asyncio.get_running_loop()
        before = self._read
        pause = _SOON if self.drain() else _BREATH
        if self._read == before:
            self._resume = None
            loop.add_reader(self._socket.fileno(), self._wake)
        else:
            self._resume = loop.call_later(pause, self._go_on)


def _sender(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int]:
    """Give pid and uid by the kernel's word; 0 and -1 if it gave none."""
    pid, uid = 0, -1
    for level, kind, content in ancillary:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_CREDENTIALS and len(content) >= _CREDENTIALS.size:
            pid, uid, _ = _CREDENTIALS.unpack_from(content)
        elif kind == socket.SCM_RIGHTS:
            for (descriptor,) in struct.iter_unpack("i", content[: len(content) // 4 * 4]):
                os.close(descriptor)
    return pid, uid


def _candidates(link: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Name the places to try: where it was the last time comes first, for those who know it."""
    name = sha256(os.fsencode(link)).hexdigest()[:16]
    with suppress(OSError):
        before = link.readlink()
        # Not if it was the socket of another home, of which this one is a copy.
        ours = before.is_absolute() and before.name.startswith(name[:8])
        if ours and _usable_folder(before.parent):
            yield before
    for folder in map(Path, _folders(environ)):
        path = folder / f"{name}.sock"
        if len(os.fsencode(path)) <= _LONGEST_PATH and _usable_folder(folder):
            _sweep(folder, path)
            yield path
            # Taken by somebody who lives, which cannot be a supervisor of this home.
            yield folder / f"{name[:8]}-{os.getpid()}.sock"


def _folders(environ: Mapping[str, str]) -> Iterator[str]:
    user = os.geteuid()
    if user == 0:
        yield f"/run/{_FOLDER}"
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and _owner(Path(runtime)) == user:
        yield f"{runtime.rstrip('/')}/{_FOLDER}"
    # Whoever else has made the first of these keeps us from it, not from speaking at all.
    yield f"/tmp/uphold-{user}"  # noqa: S108 - checked before it is used
    yield f"/tmp/uphold-{user}-{os.urandom(8).hex()}"  # noqa: S108 - as above


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def _usable_folder(folder: Path) -> bool:
    """Make a folder of ours that others may pass through and nobody else may write to."""
    try:
        folder.mkdir(mode=0o711, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        if stat.S_IMODE(found.st_mode) != 0o711:
            os.fchmod(descriptor, 0o711)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _bind(path: Path, mode: int) -> socket.socket | None:
    """Make a socket at this path in place of a dead one; None if somebody lives there."""
    # A supervisor that was just killed may take a moment to let go of everything.
    for _ in range(_STEPS):
        if not _somebody_listens(path):
            break
        sleep(_STEP)
    else:
        return None
    # Under another name first: at no time may a worker find nothing there.
    temporary = path.with_suffix(f".{os.getpid()}")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        temporary.unlink(missing_ok=True)
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        os.fchmod(bound.fileno(), 0o600)
        bound.bind(str(temporary))
        temporary.chmod(mode)
        temporary.rename(path)
    except OSError:
        bound.close()
        return None
    return bound


def _somebody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _sweep(folder: Path, own: Path) -> None:
    """Remove sockets of supervisors that were killed and never came back; they serve nobody."""
    with suppress(OSError):
        newest = folder.stat().st_mtime - _LEFT_OVER
        for path, _ in zip(folder.iterdir(), range(_MOST_SWEPT), strict=False):
            found = path.lstat()
            old = stat.S_ISSOCK(found.st_mode) and found.st_mtime < newest
            if old and path != own and not _somebody_listens(path):
                path.unlink()


def _inode(path: Path) -> tuple[int, int]:
    try:
        found = path.lstat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _point(link: Path, path: Path) -> None:
    """Let the home say where its socket is; a home that cannot be written to goes without."""
    with suppress(OSError):
        temporary = link.with_suffix(".tmp")
        temporary.unlink(missing_ok=True)  # of a supervisor that was killed at this very point
        if link.is_symlink() and link.readlink() == path:
            return
        temporary.symlink_to(path)
        temporary.rename(link)
