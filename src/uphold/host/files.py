"""Files of the home: written whole or not at all, in folders nobody else can write to.

Contents are somebody else's business; so are locks.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import sys
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.errors import EXIT_NOT_PERMITTED, HostFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEMP_SUFFIX: Final = ".tmp"
_turn: Final = count()

NETWORK_FILE_SYSTEMS: Final = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x65735546: "FUSE",
    0x01021997: "9p",
    0x5346414F: "AFS",
    0x6B414653: "AFS",
    0x73757245: "Coda",
    0x564C: "NCP",
    0x00C36400: "Ceph",
    0x47504653: "GPFS",
    0x0BD00BD0: "Lustre",
    0x01161970: "GFS2",
    0x7461636F: "OCFS2",
    0x19830326: "FhGFS",
}
"""Where `flock` does not reach, or does not mean what it means on a local disk."""
_BTRFS: Final = 0x9123683E
_NO_COPY: Final = 0x00800000  # FS_NOCOW_FL, as `chattr +C` sets it
# FS_IOC_GETFLAGS and FS_IOC_SETFLAGS; the size of a long is part of their numbers.
_GET_FLAGS: Final = 0x80006601 | struct.calcsize("l") << 16
_SET_FLAGS: Final = 0x40006602 | struct.calcsize("l") << 16


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace a file: at any instant, power cut included, it is whole, old or new."""
    _remove_left_over_temps(path)
    temp, descriptor = _open_temp(path, mode)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
        temp.replace(path)
    except BaseException:
        with suppress(OSError):
            temp.unlink()
        raise
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte: a disk that fills up writes a part first and fails only then."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Make renames and new names in a folder durable."""
    with _opened(folder) as descriptor:
        os.fsync(descriptor)


def make_private_folder(path: Path) -> None:
    """Make a folder only we can enter, or make sure that it is one; HostFailure if it cannot be."""
    _refuse_open_parent(path)
    try:
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
    except OSError as cause:
        raise HostFailure(
            f"cannot make the folder {path}: {cause.strerror}.",
            code="UPH_HOME_DENIED",
            remedy="Run this as somebody who may write there, or choose another --home.",
            exit_code=EXIT_NOT_PERMITTED,
        ) from cause
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as cause:
        raise HostFailure(
            f"{path} is not a folder that can be used: {cause.strerror}.",
            code="UPH_HOME_UNSAFE",
            remedy="Remove what is there (a link is never followed) or choose another home.",
        ) from cause
    try:
        _make_private(path, descriptor)
    finally:
        os.close(descriptor)


def refuse_network_filesystem(path: Path) -> None:
    """Raise HostFailure where locks cannot be trusted. Only Linux says what a path lies on."""
    kind = network_filesystem(_filesystem_type(path)) if sys.platform == "linux" else None
    if kind is None:
        return
    raise HostFailure(
        f"the home {path} lies on {kind}, where a lock does not prove who owns it.",
        code="UPH_HOME_ON_NETWORK",
        remedy="Choose a home on a local disk: uphold --home DIR, or [supervisor] home.",
    )


def keep_in_place(folder: Path) -> None:
    """See to it that files made here from now on are overwritten where they lie.

    btrfs writes each change to a new place. Once it is full, nothing that is there already can be
    changed any more, neither a slot's record nor the index that SQLite maps into memory: a change
    of that ends whoever makes it.
    """
    if sys.platform != "linux" or _filesystem_type(folder) & 0xFFFFFFFF != _BTRFS:
        return
    with suppress(OSError), _opened(folder) as descriptor:  # if it will not: as it was made
        flags = _flags(descriptor)
        if not flags & _NO_COPY:
            fcntl.ioctl(descriptor, _SET_FLAGS, struct.pack("l", flags | _NO_COPY))


def is_kept_in_place(folder: Path) -> bool:
    """Tell whether this is a folder of btrfs that `keep_in_place` has seen to."""
    if sys.platform != "linux":
        return False
    try:
        with _opened(folder) as descriptor:
            return bool(_flags(descriptor) & _NO_COPY)
    except OSError:
        return False


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _flags(descriptor: int) -> int:
    answer = fcntl.ioctl(descriptor, _GET_FLAGS, struct.pack("l", 0))
    (flags,) = struct.unpack("l", answer)
    return int(flags)


def network_filesystem(f_type: int) -> str | None:
    """Name the network file system with this magic number; None for a local one."""
    return NETWORK_FILE_SYSTEMS.get(f_type & 0xFFFFFFFF)


def _open_temp(path: Path, mode: int) -> tuple[Path, int]:
    """Open a new file beside the target. It is locked while its writer lives (see the clean-up)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        temp = path.with_name(f".{path.name}.{os.getpid()}.{next(_turn)}{_TEMP_SUFFIX}")
        try:
            descriptor = os.open(temp, flags, mode)
        except FileExistsError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, mode)
            if os.fstat(descriptor).st_nlink:
                return temp, descriptor
        except BlockingIOError:
            pass  # somebody cleaning up found it before it was locked: take another name
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_left_over_temps(path: Path) -> None:
    """Remove temporary files of this target whose writers are dead: nobody holds their lock."""
    prefix = f".{path.name}."
    with os.scandir(path.parent) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.name.startswith(prefix) and entry.name.endswith(_TEMP_SUFFIX)
        ]
    for name in names:
        with suppress(OSError):
            _remove_if_unlocked(path.with_name(name))


def _remove_if_unlocked(temp: Path) -> None:
    descriptor = os.open(temp, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temp.unlink()
    finally:
        os.close(descriptor)


def _refuse_open_parent(path: Path) -> None:
    try:
        parent = path.parent.stat()
    except OSError as cause:
        raise HostFailure(
            f"cannot make the folder {path}: {cause.strerror} ({path.parent}).",
            code="UPH_HOME_UNSAFE",
            remedy="Make the folder above it first, or choose another home.",
        ) from cause
    others = parent.st_mode & stat.S_IWOTH or (
        parent.st_mode & stat.S_IWGRP and parent.st_gid != os.getegid()
    )
    if others and not parent.st_mode & stat.S_ISVTX:
        raise HostFailure(
            f"{path.parent} can be written to by other users, so {path} could be swapped.",
            code="UPH_HOME_UNSAFE",
            remedy=f"chmod go-w {path.parent}, or choose another home.",
        )


def _make_private(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise HostFailure(
            f"{path} belongs to user {user_name(found.st_uid)}, not to {user_name(os.geteuid())} "
            "who runs uphold.",
            code="UPH_HOME_UNSAFE",
            remedy=f"Run it as the owner: sudo -u {user_name(found.st_uid)} uphold ...; or choose "
            "another home. What runs there is left alone.",
            exit_code=EXIT_NOT_PERMITTED,
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise HostFailure(
            f"{path} could be written to by other users; what lies in it cannot be trusted.",
            code="UPH_HOME_UNSAFE",
            remedy=f"Look at what is in it, then chmod 700 {path}.",
        )
    if stat.S_IMODE(found.st_mode) != 0o700:
        os.fchmod(descriptor, 0o700)


def user_name(uid: int) -> str:
    """Name a user as `sudo -u` takes it; one without a name by its number."""
    import pwd  # noqa: PLC0415 - needed for messages only

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"


def _filesystem_type(path: Path) -> int:
    import ctypes  # noqa: PLC0415 - asked once, at start

    libc = ctypes.CDLL(None, use_errno=True)
    answer = ctypes.create_string_buffer(512)
    if libc.statfs(os.fsencode(path), answer) != 0:
        number = ctypes.get_errno()
        raise HostFailure(
            f"cannot tell what file system {path} lies on: {os.strerror(number)}.",
            remedy="Is it there, and may you enter it?",
        )
    # The type is the first field of the answer.
    return ctypes.c_long.from_buffer(answer).value
