"""The configuration and each worker's program: found, and startable by its own user."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from uphold.cli.checkups.findings import Finding, fail, ok, warn
from uphold.core.specs import Kind
from uphold.core.texts import printable
from uphold.errors import HostFailure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from uphold.core.specs import Settings, WorkerSpec
    from uphold.host.environments import Account

_SHELL: Final = "/bin/sh"
_SCRIPT: Final = b"#!"
_LONGEST_FIRST_LINE: Final = 256


def configuration(settings: Settings, failing: Collection[str]) -> Iterator[Finding]:
    """Say that the file is right, and what in it deserves a look.

    Of `failing` workers the cause is told elsewhere, more exactly.
    """
    from uphold.config.advice import warnings

    count = len(settings.workers)
    yield ok("config", f"{settings.source}: {'1 worker' if count == 1 else f'{count} workers'}.")
    told = tuple(f"worker '{name}': " for name in failing)
    for each in warnings(settings, environ=os.environ):
        if not each.text.startswith(told):
            yield warn("config", str(each), "It is allowed, and will probably not work here.")


def program(spec: WorkerSpec) -> Iterator[Finding]:
    """Look whether a worker's program is there and its user could start it."""
    check = f"worker {spec.name}"
    if spec.kind is not Kind.PROCESS or not spec.command:
        return
    from uphold.host.environments import Environments, find_program
    from uphold.host.processes.spawning import account_of

    try:
        account = account_of(spec)
        environment = Environments(os.environ).compose(
            spec, slot=spec.name, nonce="", account=account
        )
        command = _SHELL if spec.shell else spec.command[0]
        path = find_program(command, environment.get("PATH"), spec.working_dir)
    except HostFailure as error:
        yield fail(check, error.message, error.remedy or "Install it, or give its full path.")
        return
    if not os.path.isdir(spec.working_dir):  # noqa: PTH112 - text is enough
        remedy = "Make it, or correct working_dir."
        yield fail(check, f"its folder {spec.working_dir} does not exist.", remedy)
        return
    wrong = _unusable(path, account) or _unusable_interpreter(path, account)
    if wrong:
        yield fail(check, wrong, "Correct its permissions, or the command.")
    else:
        who = f" as {account.name or account.uid}" if account is not None else ""
        yield ok(check, f"{printable(path)}{who}.")


def _unusable(path: str, account: Account | None) -> str | None:
    """Say why a user could not execute this file, judged by its mode and that of each folder."""
    if account is None or account.uid == 0:
        return None  # looked at by `find_program`, as the user we are
    folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120 - text is enough
    while True:
        if not _may_enter(folder, account):
            return f"user {account.name or account.uid} may not enter {folder}."
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            break
        folder = above
    if not _may_enter(path, account):
        return f"user {account.name or account.uid} may not execute {path}."
    return None


def _may_enter(path: str, account: Account) -> bool:
    found = os.stat(path)  # noqa: PTH116 - text is enough
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid or found.st_gid in account.groups:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _unusable_interpreter(path: str, account: Account | None) -> str | None:
    """Say why a script could not be started: its first line names what runs it."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - text is enough
            first = file.readline(_LONGEST_FIRST_LINE)
    except OSError:
        return None  # it may be started without being readable
    if not first:
        return f"{path} is empty."
    words = first[len(_SCRIPT) :].split() if first.startswith(_SCRIPT) else []
    if not words:
        return None
    named = os.fsdecode(words[0])
    if not os.path.isfile(named) or not os.access(named, os.X_OK):  # noqa: PTH113
        return f"{path} is to be run by {named}, which is not there or not executable."
    return _unusable(named, account)
