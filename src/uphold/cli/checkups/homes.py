"""The home: whose it is, where it lies, who owns it, its journal and its socket."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uphold.cli.checkups.findings import Finding, fail, ok, warn
from uphold.cli.owners import owner_of
from uphold.errors import UpholdError
from uphold.host.files import refuse_network_filesystem, user_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRIVATE: Final = 0o700
_LITTLE_ROOM: Final = 100_000_000
_NO_ROOM: Final = 5_000_000
_FEW_NAMES: Final = 1000
_LARGE: Final = 1_000_000_000
_PATIENCE: Final = 5.0


def home(path: str) -> Iterator[Finding]:
    """Look at the folder itself and the disk below it."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        yield from _not_made(path)
        return
    if not stat.S_ISDIR(found.st_mode):
        yield fail("home", f"{path} is not a folder.", "Move it away, or choose another --home.")
        return
    yield from _privacy(path, found)
    yield from _disk(path)


def _not_made(path: str) -> Iterator[Finding]:
    above = os.path.dirname(path)  # noqa: PTH120 - text is enough
    if os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK):  # noqa: PTH112
        yield ok("home", f"{path} is not there yet; the first start makes it.")
        yield from _disk(above)
        return
    yield fail(
        "home",
        f"{path} is not there, and {user_name(os.geteuid())} cannot make it in {above}.",
        "Make that folder writable, or choose another --home.",
    )


def _privacy(path: str, found: os.stat_result) -> Iterator[Finding]:
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        owner = user_name(found.st_uid)
        yield fail("home", f"{path} belongs to {owner}.", f"Run as its owner: sudo -u {owner}.")
    elif mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield fail(
            "home",
            f"others may write to {path} (mode {mode:o}): what is in it cannot be trusted.",
            f"Look at what is in it, then: chmod 700 {path}",
        )
    elif mode != _PRIVATE:
        yield warn(
            "home",
            f"{path} is yours, and others may look into it (mode {mode:o}).",
            f"chmod 700 {path}; the next start does so too.",
        )
    else:
        yield ok("home", f"{path} is yours alone.")


def _disk(path: str) -> Iterator[Finding]:
    try:
        refuse_network_filesystem(Path(path))
    except UpholdError as error:
        yield fail("file system", error.message, error.remedy)
    else:
        yield ok("file system", "it is local: locks can be trusted.")
    room = os.statvfs(path)
    free = room.f_bavail * room.f_frsize
    shown = f"{free / 1e9:.1f} GB" if free >= _LARGE else f"{free / 1e6:.0f} MB"
    remedy = "Free some space; `uphold logs` and logs.max_size say what logs take."
    if free < _NO_ROOM:
        yield fail("disk space", f"only {shown} are free.", remedy)
    elif free < _LITTLE_ROOM:
        yield warn("disk space", f"{shown} are free.", remedy)
    else:
        yield ok("disk space", f"{shown} are free.")
    if room.f_files > 0 and room.f_favail < _FEW_NAMES:
        yield fail(
            "disk files",
            f"only {room.f_favail} more files can be made (inodes).",
            "Remove files that nobody needs: many small ones use up a disk too.",
        )


def ownership(path: str) -> Iterator[Finding]:
    """Look at who owns the home, and whether that can be proved."""
    found = owner_of(path)
    match str(found.standing):
        case "running":
            yield ok("supervisor", f"it runs: {found.owner}.")
        case "stopped":
            yield ok("supervisor", f"none is running: {found.reason}.")
        case "stale":
            yield warn(
                "supervisor",
                f"the last one died without a word ({found.owner}): {found.reason}.",
                "uphold start goes on where it stopped; uphold stop ends what it left.",
            )
        case _:
            yield fail(
                "supervisor",
                f"the lock cannot be judged: {found.reason}.",
                "uphold start takes it over if nobody holds it.",
            )


def control_socket(path: str) -> Iterator[Finding]:
    """Look whether the supervisor answers, and that nobody else can speak to it."""
    if str(owner_of(path).standing) != "running":
        return
    from uphold.control.client import Connection

    with Connection(path) as connection:
        connection.call("ping", {}, patience=_PATIENCE)
    found = os.stat(f"{path}/control.sock")  # noqa: PTH116 - text is enough
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        yield fail(
            "control socket",
            f"others may speak to it (mode {mode:o}); each request is refused, but look why.",
            f"chmod 600 {path}/control.sock",
        )
    else:
        yield ok("control socket", "the supervisor answers, and nobody else can ask.")


def journal(path: str) -> Iterator[Finding]:
    """Look at the journal: whole, of a sensible size, and its audit unbroken."""
    file = Path(path, "journal.db")
    if not os.path.lexists(file):
        if os.path.isdir(path):  # noqa: PTH112 - text is enough
            yield ok("journal", "there is none yet.")
        return
    from uphold.journal.rescuing import find_damage

    damage = find_damage(file)
    if damage is not None:
        yield fail(
            "journal",
            f"{file} is damaged: {damage}.",
            "The next start sets it aside and goes on from what else is known.",
        )
        return
    yield _size_of(file)
    yield from _audit(path)
    aside = sorted(each.name for each in file.parent.glob("journal.db.corrupt-*"))
    if aside:
        yield warn(
            "old journals",
            f"{len(aside)} damaged ones were set aside, the last as {aside[-1]}.",
            "Look for what damages files here; remove them once nobody needs them.",
        )


def _size_of(file: Path) -> Finding:
    sizes = [each.stat().st_size for each in (file, Path(f"{file}-wal")) if each.exists()]
    shown = " + ".join(f"{size / 1e6:.1f} MB" for size in sizes)
    if sum(sizes) > _LARGE:
        remedy = "A supervisor that runs keeps it small: is one killed again and again?"
        return warn("journal", f"it is whole, and large: {shown}.", remedy)
    return ok("journal", f"it is whole: {shown}.")


def _audit(path: str) -> Iterator[Finding]:
    from uphold.cli.records import journal_of
    from uphold.journal.audit import verify

    with journal_of(path) as reader:
        problems = verify(reader)
    if problems:
        yield fail(
            "audit",
            f"it was altered: {problems[0]} ({len(problems)} breaks)",
            "Keep a copy of journal.db; all breaks: uphold audit verify --json",
        )
    else:
        yield ok("audit", "its chain is unbroken.")


def left_overs(path: str) -> Iterator[Finding]:
    """Look for processes of this home that no supervisor looks after."""
    if str(owner_of(path).standing) == "running":
        return
    from uphold.host.processes.scanning import take_snapshot
    from uphold.host.processes.slotlocks import read_record
    from uphold.host.proctable import boot_id

    files = sorted(Path(path, "slots").glob("*.lock"))
    records = [record for record in map(read_record, files) if record is not None]
    nonces = {record.nonce for record in records if record.boot_id == boot_id()}
    pids = [each.pid for each in take_snapshot().members(nonces, None)] if nonces else []
    if not pids:
        yield ok("left-overs", "no process of this home is alive.")
        return
    shown = ", ".join(map(str, sorted(pids)[:10]))
    yield warn(
        "left-overs",
        f"{len(pids)} processes live without a supervisor (pid {shown}).",
        "uphold start watches them again; uphold stop ends them.",
    )
