"""Starting one program: in a session of its own, with nothing of ours but what it is meant to have.

It inherits 0 (nothing to read), 1 and 2 (its output) and 3 (its slot's lock). The fast way is
`posix_spawn`, which threads may use side by side; another user, limits or a umask are set by the
child itself, after a fork on the loop's own thread: ours are shared by all our threads. Taking
locks and watching is done elsewhere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import resource
import signal
import subprocess  # noqa: TID251 - host starts programs; this is the slower way
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from uphold.errors import HostFailure
from uphold.host.environments import NOT_EXECUTABLE, NOT_FOUND, Account
from uphold.host.processes.groups import NO_GROUP
from uphold.host.processes.quick_spawning import can_enter_groups, is_available, spawn_quickly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from uphold.core.specs import Limits, WorkerSpec

LOCK_DESCRIPTOR: Final = 3
NO_FOLDER: Final = "UPH_START_NO_DIRECTORY"
NO_USER: Final = "UPH_START_NO_USER"
NOT_PERMITTED: Final = "UPH_START_NOT_PERMITTED"
NO_RESOURCES: Final = "UPH_START_NO_RESOURCES"
HOPELESS: Final = frozenset(
    {NOT_FOUND, NOT_EXECUTABLE, NO_FOLDER, NO_USER, NOT_PERMITTED, NO_GROUP}
)
"""Failures that the next try cannot mend; somebody has to change something first."""
_ALL_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


class Program(NamedTuple):
    """Everything about one start: what, where, as whom, with which descriptors."""

    path: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    working_dir: str
    out: int
    err: int
    lock: int | None
    umask: int | None
    account: Account | None
    limits: Limits
    group: int | None = None
    """The folder of the control group that keeps its processes together."""
    caps: tuple[int, ...] = ()
    """Those of the ones that limit them, where they are others."""
    extra: tuple[int, int] | None = None
    """One more descriptor it gets: ours, and the number it has there."""


def account_of(spec: WorkerSpec) -> Account | None:
    """Look up whom a worker runs as; None if that is the supervisor's own user and group."""
    if spec.user is None and spec.group is None:
        return None
    try:
        person = None if spec.user is None else _user(spec.user)
        gid = _gid(spec.group) if spec.group else person.pw_gid if person else os.getegid()
    except KeyError as cause:
        raise HostFailure(
            f"there is no user or group {cause.args[0]} on this machine.",
            code=NO_USER,
            remedy="Create it, or correct user and group of the worker.",
        ) from None
    uid = os.geteuid() if person is None else person.pw_uid
    if (uid, gid) == (os.geteuid(), os.getegid()):
        return None
    if os.geteuid() != 0:
        who = f"user {spec.user}" if spec.user else f"group {spec.group}"
        raise HostFailure(
            f"only root can start a program as {who}; this supervisor is user {os.geteuid()}.",
            code=NOT_PERMITTED,
            remedy="Run the supervisor as root, or remove user and group of the worker.",
        )
    if person is None:
        return Account(uid, gid)
    groups = tuple(os.getgrouplist(person.pw_name, gid))
    return Account(uid, gid, groups, person.pw_name, person.pw_dir, person.pw_shell)


def is_quick(program: Program) -> bool:
    """Tell whether any thread may start it: nothing of our own process changes for it."""
    if not _is_plain(program):
        return False
    return is_available() if program.group is None else can_enter_groups()


def spawn(program: Program, nofile: tuple[int, int] | None = None, *, alone: bool = True) -> int:
    """Start a program and give its number; HostFailure with a full sentence if that fails.

    `nofile` is the limit on open files that the supervisor itself was started with. Only what
    `is_quick` may be started on another thread than the loop's, and then not `alone`.
    """
    try:
        if is_quick(program):
            pid = _spawn_quickly(program, alone=alone)
        elif program.group is None and _is_plain(program) and sys.platform == "linux":
            pid = _spawn_plain(program)
        else:
            return _spawn_forked(program, nofile)
        _hand_back_limit(pid, nofile)
    except subprocess.SubprocessError as cause:
        raise HostFailure(
            f"'{program.path}' was not started: its user, group or limits could not be set.",
            code=NOT_PERMITTED,
            remedy="Does the supervisor have the right to set them (root, capabilities)?",
        ) from cause
    except OSError as cause:
        raise _explained(program, cause) from cause
    return pid


def _is_plain(program: Program) -> bool:
    """Tell whether it runs as we do."""
    limits = program.limits
    plain = limits.nofile is None and limits.nice is None and program.umask is None
    return plain and program.account is None and not program.caps


def _spawn_quickly(program: Program, *, alone: bool) -> int:
    descriptors = {1: program.out, 2: program.err}
    if program.lock is not None:
        descriptors[LOCK_DESCRIPTOR] = program.lock
    if program.extra is not None:
        descriptors[program.extra[1]] = program.extra[0]
    return spawn_quickly(
        program.path,
        program.argv,
        program.environment,
        folder=program.working_dir,
        descriptors=descriptors,
        alone=alone,
        group=program.group,
    )


def _spawn_plain(program: Program) -> int:
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, program.out, 1),
        (os.POSIX_SPAWN_DUP2, program.err, 2),
    ]
    if program.lock is not None:
        actions.append((os.POSIX_SPAWN_DUP2, program.lock, LOCK_DESCRIPTOR))
    if program.extra is not None:
        actions.append((os.POSIX_SPAWN_DUP2, *program.extra))
    with _standing_in(program):
        return os.posix_spawn(
            program.path,
            program.argv,
            program.environment,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=_ALL_SIGNALS,
        )


@contextmanager
def _standing_in(program: Program) -> Iterator[None]:
    """Stand in the worker's folder for the length of a spawn, which has none of its own here.

    This is the loop's own thread, all our paths are absolute, and no other thread spawns.
    """
    try:
        before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        before = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(program.working_dir)
        try:
            yield
        finally:
            os.fchdir(before)
    finally:
        os.close(before)


def _spawn_forked(program: Program, nofile: tuple[int, int] | None) -> int:
    wanted = {} if program.lock is None else {LOCK_DESCRIPTOR: program.lock}
    if program.extra is not None:
        wanted[program.extra[1]] = program.extra[0]
    with _reserved(wanted) as passed:
        child = subprocess.Popen(
            program.argv,
            executable=program.path,
            env=program.environment,
            cwd=program.working_dir,
            stdin=subprocess.DEVNULL,
            stdout=program.out,
            stderr=program.err,
            start_new_session=True,
            umask=-1 if program.umask is None else program.umask,
            pass_fds=passed,
            preexec_fn=_before_exec(program, nofile),  # noqa: PLW1509 - plain system calls only
        )
    # Whoever holds the process reaps it; this object must not, nor complain that it did not.
    child.returncode = 0
    return child.pid


@contextmanager
def _reserved(wanted: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """Keep these numbers taken while we fork, so that nothing of Popen's own comes to lie there."""
    made: list[int] = []
    try:
        for number, source in wanted.items():
            try:
                fcntl.fcntl(number, fcntl.F_GETFD)
            except OSError:
                os.dup2(source, number, inheritable=False)
                made.append(number)
        yield tuple(wanted)
    finally:
        for number in made:
            os.close(number)


def _before_exec(program: Program, nofile: tuple[int, int] | None) -> Callable[[], None]:
    """Prepare what the child does to itself: limits while it may still set them, then its user."""
    limits, account, lock = program.limits, program.account, program.lock
    extra = program.extra
    allowed = nofile if limits.nofile is None else (limits.nofile, limits.nofile)
    groups = (*(() if program.group is None else (program.group,)), *program.caps)

    def prepare() -> None:
        for door in groups:
            # Before anything of the worker runs, so that nothing of it is born outside.
            os.write(os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=door), b"0")
        if lock is not None:
            os.dup2(lock, LOCK_DESCRIPTOR, inheritable=True)
        if extra is not None:
            os.dup2(*extra, inheritable=True)
        for number in _ALL_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if allowed is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
        if limits.nice is not None:
            os.setpriority(os.PRIO_PROCESS, 0, limits.nice)
        if account is not None:
            os.setgroups(account.groups)
            os.setregid(account.gid, account.gid)
            os.setreuid(account.uid, account.uid)

    return prepare


def _hand_back_limit(pid: int, nofile: tuple[int, int] | None) -> None:
    if nofile is not None:
        with suppress(OSError):  # it may have ended already, or be another user's by now
            resource.prlimit(pid, resource.RLIMIT_NOFILE, nofile)


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(name)) if _is_number(name) else pwd.getpwnam(name)
    except KeyError:
        raise KeyError(f"'{name}'") from None


def _gid(name: str) -> int:
    import grp  # noqa: PLC0415 - few declare one

    try:
        return int(name) if _is_number(name) else grp.getgrnam(name).gr_gid
    except KeyError:
        raise KeyError(f"'{name}'") from None


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _explained(program: Program, cause: OSError) -> HostFailure:
    """Say in a sentence what the kernel said with a number."""
    what = cause.strerror or str(cause)
    if cause.filename == program.working_dir:
        return HostFailure(
            f"cannot start '{program.argv[0]}' in the folder {program.working_dir}: {what}.",
            code=NO_FOLDER,
            remedy="Create the folder, or correct working_dir.",
        )
    if cause.errno == errno.ENOENT:
        return HostFailure(
            f"'{program.path}' cannot be started: what its first line (#!) names does not exist.",
            code=NOT_FOUND,
        )
    if cause.errno in (errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP):
        who = "" if program.account is None else f" by user {program.account.uid}"
        return HostFailure(
            f"'{program.path}' cannot be started{who} from {program.working_dir}: {what}.",
            code=NOT_EXECUTABLE,
        )
    if cause.errno == errno.ENOEXEC:
        return HostFailure(
            f"'{program.path}' is not a program: it has no first line naming its interpreter (#!).",
            code=NOT_EXECUTABLE,
        )
    busy = cause.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY)
    code = NO_RESOURCES if busy else "UPH_START_FAILED"
    return HostFailure(f"'{program.path}' could not be started: {what}.", code=code)
