"""What is done with files on a share, one function each (helper's side).

Every function gets a share that was verified a moment ago. A file of strangers is opened only
when it is a regular one, never through a link, and read once. Stands alone, as `folders` does.
"""

from __future__ import annotations

import errno
import os
import stat
from binascii import a2b_base64, b2a_base64
from contextlib import suppress

from uphold.inbox.folders import Top, Wrong, checked
from uphold.inbox.trusting import user_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from uphold.inbox.trusting import Trusted

LARGEST_FLAG = 64 * 1024
REASON = ".reason.txt"
"""What the file beside a rejected flag ends with."""
_LONGEST_NAME = 255
_ROOM_BESIDE = 48
"""Bytes that what we add to a name needs at most."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CLOSED = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO})
"""Why one file cannot be opened: it is not ours to read, or it has just become a link or socket."""
_TEMP = ".uphold.tmp"
_PUT = frozenset({"outbox", "state", "logs", "diagnostics", "inbox"})
_REMOVED = frozenset({"state", "processing"})
_LONGEST_REASON = 2_000
_ABANDONED = 3600.0
"""Seconds after which an unfinished file of ours has surely been given up."""


class Shelves:
    """Does what is asked, on a share that is there."""

    def __init__(self, top: Top, owner: str, trusted: Trusted | None = None) -> None:
        self._top = top
        self._owner = owner
        self._trusted = trusted

    def peek(self, name: str) -> dict[str, Any]:
        """Read a flag where it lies."""
        return take_if_there(self._top.folder("inbox"), checked(name), self._trusted)

    def claim(self, name: str, token: str) -> dict[str, Any]:
        """Make a flag ours by moving it to `processing/`, then read it there, once."""
        inbox, processing = self._top.folder("inbox"), self._top.folder("processing")
        before = f"{self._owner}.{checked(token)}."
        taken = before + shortened(checked(name), len(before))
        try:
            os.rename(name, taken, src_dir_fd=inbox, dst_dir_fd=processing)
        except FileNotFoundError:
            # Over a network a rename that worked may be tried again and not find the file.
            if not exists(processing, taken):
                return {"gone": True}
        except PermissionError as cause:
            # A stranger's folder, or anything of theirs where the inbox is sticky: that one only.
            if not (_may_change(inbox) and _may_change(processing)):
                raise
            return {"kept": cause.strerror}
        return {"claimed": taken, **take(processing, taken, LARGEST_FLAG, trusted=self._trusted)}

    def give_back(self, claimed: str, name: str) -> bool:
        """Put a claimed flag back where it lay; False if another one lies there by now."""
        inbox, processing = self._top.folder("inbox"), self._top.folder("processing")
        if exists(inbox, checked(name)):
            return False
        os.rename(checked(claimed), name, src_dir_fd=processing, dst_dir_fd=inbox)
        return True

    def reread(self, claimed: str) -> dict[str, Any]:
        """Read again what was claimed earlier."""
        processing = self._top.folder("processing")
        found = take_if_there(processing, checked(claimed), self._trusted)
        return {"claimed": claimed, **found}

    def reject(self, folder: str, name: str, kept: str, reason: str) -> str | None:
        """Move a flag to `rejected/` and lay the reason beside it; None if it is gone."""
        if folder not in {"inbox", "processing"}:
            raise Wrong(f"nothing is rejected from {folder}")
        rejected = self._top.folder("rejected")
        place = shortened(checked(kept), _ROOM_BESIDE)
        try:
            source = self._top.folder(folder)
            os.rename(checked(name), place, src_dir_fd=source, dst_dir_fd=rejected)
        except FileNotFoundError:
            if not exists(rejected, place):
                return None
        # Straight under its name: it is nobody's order, and whoever floods us pays for less work.
        beside = os.open(f"{place}{REASON}", _CREATE, 0o666, dir_fd=rejected)
        try:
            write_all(beside, reason.encode("utf-8", "backslashreplace"))
        finally:
            os.close(beside)
        return place

    def dismiss(
        self, receipt: str, content: bytes, claimed: str, kept: str, reason: str
    ) -> str | None:
        """Leave the receipt of a flag that is refused, then reject it.

        Both may be done again with the same names. Neither is waited for until it is on a disk:
        it is nobody's order, and anybody can cause any number of them.
        """
        put(self._top.folder("outbox"), checked(receipt), content, durable=False)
        return self.reject("processing", claimed, kept, reason)

    def reason(self, rejected: str) -> str:
        """Read the reason that lies beside a rejected flag, shortened; empty if none does."""
        try:
            folder = self._top.folder("rejected", make=False)
            found = take(folder, checked(f"{rejected}{REASON}"), _LONGEST_REASON, end=True)
        except FileNotFoundError:
            return ""
        return a2b_base64(found.get("raw", "")).decode("utf-8", "replace").strip()

    def put(self, folder: str, name: str, content: bytes, *, new: bool, durable: bool) -> None:
        """Write a file, whole or not at all; `new`: never in place of another."""
        if folder not in _PUT:
            raise Wrong(f"nothing is written to {folder}")
        put(self._top.folder(folder), checked(name), content, new=new, durable=durable)

    def remove(self, folder: str, name: str) -> bool:
        """Remove a file of ours; False if it was not there."""
        if folder not in _REMOVED:
            raise Wrong(f"nothing is removed from {folder}")
        try:
            os.unlink(checked(name), dir_fd=self._top.folder(folder))
        except FileNotFoundError:
            return False
        return True

    def read(self, path: str, limit: int, *, end: bool) -> dict[str, Any] | None:
        """Read a file below the top, its end if it is longer; None if it is not there."""
        try:
            folder, name = self._top.parent_of(path)
            return take(folder, name, limit, end=end, linked=True)
        except FileNotFoundError:
            return None

    def look(self, path: str) -> dict[str, Any] | None:
        """Tell size and time of a file; None if it is not there."""
        try:
            folder, name = self._top.parent_of(path)
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return {"size": found.st_size, "modified": found.st_mtime, "odd": oddity(found)}

    def append(self, name: str, lines: bytes, max_size: int, keep: int) -> None:
        """Add lines to a log; one that is full becomes `.1`, and so on."""
        logs = self._top.folder("logs")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        flags |= os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(checked(name), flags, 0o666, dir_fd=logs)
        try:
            found = os.fstat(log)
            if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                # A second name could be that of a file that is no business of anybody here.
                raise Wrong(f"{name} is {oddity(found) or 'a file with several names'}, not a log")
            if found.st_size and found.st_size + len(lines) > max_size:
                os.close(log)
                _rotate(logs, name, keep)
                log = os.open(name, flags, 0o666, dir_fd=logs)
                found = os.fstat(log)
            try:
                write_all(log, lines)
            except OSError:
                os.ftruncate(log, found.st_size)  # no half line stays where a disk is full
                raise
        finally:
            os.close(log)

    def sweep(self) -> int:
        """Remove unfinished files that a helper left behind when it was ended."""
        removed = 0
        for folder in ("state", "outbox", "logs", "diagnostics", "rejected"):
            descriptor = self._top.folder(folder)
            with os.scandir(descriptor) as entries:
                names = [each.name for each in entries if each.name.endswith(_TEMP)]
            now = _time_there(descriptor) if names else 0.0
            for name in names:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if now - found.st_mtime > _ABANDONED:
                    os.unlink(name, dir_fd=descriptor)
                    removed += 1
        return removed


def take(  # noqa: PLR0913 - on which terms
    folder: int,
    name: str,
    limit: int,
    *,
    end: bool = False,
    linked: bool = False,
    trusted: Trusted | None = None,
) -> dict[str, Any]:
    """Read a file of strangers, or say what is odd about it; it is never waited for.

    If it belongs to none of the users that are `trusted`, the answer names that stranger.
    """
    first = os.stat(name, dir_fd=folder, follow_symlinks=False)
    odd = oddity(first)
    if odd:  # a device could do something when it is opened, so it is not
        return {"odd": odd, "modified": first.st_mtime}
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError as cause:
        if cause.errno not in _CLOSED:
            raise
        return {"odd": f"not readable ({cause.strerror})", "modified": first.st_mtime}
    try:
        found = os.fstat(descriptor)
        odd = oddity(found)
        if not odd and found.st_nlink > 1 and not linked:
            odd = "a file with several names (hard links)"
        if not odd and found.st_size > limit and not end:
            odd = f"larger than {limit} bytes"
        if odd:
            return {"odd": odd, "modified": found.st_mtime}
        if end and found.st_size > limit:
            os.lseek(descriptor, -limit, os.SEEK_END)
        raw = _read(descriptor, limit + (not end))
    finally:
        os.close(descriptor)
    if len(raw) > limit:
        return {"odd": f"larger than {limit} bytes", "modified": found.st_mtime}
    text = b2a_base64(raw, newline=False).decode()
    answer = {"raw": text, "modified": found.st_mtime, "size": found.st_size}
    if trusted is not None and found.st_uid not in trusted:
        answer["stranger"] = user_of(found.st_uid)
    return answer


def take_if_there(folder: int, name: str, trusted: Trusted | None = None) -> dict[str, Any]:
    """Read a flag, unless somebody was faster."""
    try:
        return take(folder, name, LARGEST_FLAG, trusted=trusted)
    except FileNotFoundError:
        return {"gone": True}


def put(folder: int, name: str, content: bytes, *, new: bool = False, durable: bool = True) -> None:
    """Write a file so that nobody ever sees a part of it; `durable`: not after a power cut either.

    What anybody can cause in any number is not waited for until it is on a disk.
    """
    temp = f".{shortened(name, _ROOM_BESIDE)}.{os.urandom(6).hex()}{_TEMP}"
    descriptor = os.open(temp, _CREATE, 0o666, dir_fd=folder)
    try:
        try:
            write_all(descriptor, content)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if new:
            _refuse_existing(folder, name)
        os.rename(temp, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        _forget(folder, temp)
        raise
    if durable:
        _sync_folder(folder)


def oddity(found: os.stat_result) -> str:
    """Say what a file is if it is no regular one; an empty text if it is."""
    kinds = (
        (stat.S_ISREG, ""),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    for check, word in kinds:
        if check(found.st_mode):
            return word
    return "a device"


def shortened(name: str, room_for: int) -> str:
    """Cut a name so that this many more bytes fit; people may use up all a system allows."""
    raw = os.fsencode(name)[: _LONGEST_NAME - room_for]
    return os.fsdecode(raw)


def exists(folder: int, name: str) -> bool:
    """Tell whether anything has this name."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte: a disk that fills up writes a part first and fails only then."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _may_change(folder: int) -> bool:
    return os.access(".", os.W_OK | os.X_OK, dir_fd=folder, effective_ids=True)


def _read(descriptor: int, limit: int) -> bytes:
    raw = b""
    while len(raw) < limit and (part := os.read(descriptor, limit - len(raw))):
        raw += part
    return raw


def _rotate(folder: int, name: str, keep: int) -> None:
    for number in range(keep - 1, -1, -1):
        old = f"{name}.{number}" if number else name
        try:
            os.rename(old, f"{name}.{number + 1}", src_dir_fd=folder, dst_dir_fd=folder)
        except FileNotFoundError:
            continue


def _sync_folder(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as cause:
        if cause.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EBADF}:
            raise  # those mean that folders cannot be synced on this kind of share


def _refuse_existing(folder: int, name: str) -> None:
    if exists(folder, name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def _forget(folder: int, name: str) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _time_there(folder: int) -> float:
    """Ask the share what time it is: its clock need not be ours."""
    name = f".{os.urandom(6).hex()}{_TEMP}"
    descriptor = os.open(name, _CREATE, 0o600, dir_fd=folder)
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        _forget(folder, name)
