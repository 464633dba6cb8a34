"""Starting the supervisor's own program, and hearing from it when it is ready.

`os.posix_spawn` and a pipe: the `subprocess` module would cost every start 15 ms.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from uphold.errors import HostFailure, UpholdError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DAEMON_OUTPUT: Final = "daemon.out"
_NOTICE_AFTER: Final = 1.0
_TAIL: Final = 2000
_CHUNK: Final = 1 << 16


class Started(NamedTuple):
    """A supervisor that has been spawned: its process and the pipe it speaks on once."""

    pid: int
    ready: int


def prepare_home(home: str) -> None:
    """Make the home and its log folder, for the owner alone."""
    from pathlib import Path

    from uphold.host.files import make_private_folder

    make_private_folder(Path(home))
    make_private_folder(Path(home, "logs"))


def prove_home(home: str) -> None:
    """Raise what would keep a supervisor from using this home; it is made if it is not there."""
    from uphold.host.files import make_private_folder, refuse_network_filesystem
    from uphold.host.homes import Home

    prepare_home(home)
    place = Home(home)
    refuse_network_filesystem(place.path)
    for folder in (place.slots, place.run, place.spool):
        make_private_folder(folder)
    os.close(_open_output(f"{home}/logs/{DAEMON_OUTPUT}"))


def spawn_supervisor(
    home: str, config: str, *, foreground: bool, own_output: bool, forgive: bool = False
) -> Started:
    """Start the supervisor; in the background it gets a session and an output file of its own.

    `own_output` false leaves it this terminal for its messages. Either way it stands in a
    process group of its own, so that Ctrl-C reaches it once, through us. `forgive` lets it try
    failed workers again.
    """
    prepare_home(home)
    reading, writing = os.pipe()
    try:
        pid = _spawn(
            ["--home", home, "--config", config, "--ready-fd", str(writing)]
            + (["--foreground"] if foreground else [])
            + (["--forgive"] if forgive else []),
            output=f"{home}/logs/{DAEMON_OUTPUT}" if own_output else None,
            passed=writing,
            session=not foreground,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return Started(pid, reading)


def spawn_pass(home: str, config: str, *, worker_id: str | None, quiet: bool) -> Started:
    """Start the supervisor's program for a single pass; what it logs goes to our stderr too."""
    prepare_home(home)
    reading, writing = os.pipe()
    try:
        pid = _spawn(
            ["--once", "--home", home, "--config", config, "--ready-fd", str(writing)]
            + ([] if worker_id is None else ["--worker-id", worker_id])
            + (["--quiet"] if quiet else []),
            output=None,
            passed=writing,
            session=False,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return Started(pid, reading)


def become_supervisor(home: str, config: str) -> NoReturn:
    """Run the supervisor's program in place of this one, with our process number."""
    prepare_home(home)
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    command = [sys.executable, "-I", "-m", "uphold.daemon"]
    command += ["--home", home, "--config", config, "--foreground"]
    try:
        os.execve(sys.executable, command, os.environ)  # noqa: S606 - our own program
    except OSError as cause:
        raise HostFailure(
            f"cannot start {sys.executable}: {cause.strerror}.", code="UPH_SUPERVISOR_START_FAILED"
        ) from cause


def wait_until_ready(
    started: Started,
    home: str,
    *,
    patience: float | None = None,
    notice: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Wait for the one line a supervisor says when it is up; raise what it reports instead."""
    try:
        line = _first_line(started.ready, patience, notice)
    finally:
        os.close(started.ready)
    try:
        told = json.loads(line) if line else {}
    except ValueError:
        told = {}
    if "error" in told:
        from uphold.control.client import reported

        raise reported(told["error"])
    if not told.get("ready"):
        raise UpholdError(
            f"the supervisor ended before it was ready{_ending(started.pid)}.",
            code="UPH_SUPERVISOR_START_FAILED",
            remedy=_last_words(home),
        )
    return dict(told)


def stop_left_overs(home: str, **authorship: str) -> dict[str, Any]:
    """Have the workers of a dead supervisor stopped, verified, by a helper that takes the lock."""
    prepare_home(home)
    reading, writing = os.pipe()
    try:
        pid = _spawn(
            [
                *("--home", home, "--stop-left-overs"),
                *(word for key, text in authorship.items() for word in (f"--{key}", text)),
            ],
            output=_output_or_nothing(f"{home}/logs/{DAEMON_OUTPUT}"),
            passed=writing,
            session=True,
            stdout=writing,
        )
    finally:
        os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        spoken = pipe.read()
    _, status = os.waitpid(pid, 0)
    lines = spoken.decode(errors="replace").splitlines()
    try:
        told = json.loads(lines[-1])
    except (ValueError, IndexError):
        told = {}
    if "error" in told:
        from uphold.control.client import reported

        raise reported(told["error"])
    if not told:
        raise UpholdError(
            "the recorded workers could not be stopped: the helper that was to do it ended "
            f"with {_exit_words(status)}.",
            code="UPH_SUPERVISOR_STOP_FAILED",
            remedy=_last_words(home),
        )
    told.setdefault("ok", status == 0)
    return dict(told)


def _spawn(
    words: Sequence[str],
    *,
    output: str | None,
    passed: int,
    session: bool,
    stdout: int | None = None,
) -> int:
    """Start the supervisor's program with exactly these descriptors: 0, 1, 2 and the pipe."""
    os.set_inheritable(passed, True)
    kept = [] if output is None else [_open_output(output)]
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, nothing, 0)]
    for file in kept:
        actions += [
            (os.POSIX_SPAWN_DUP2, file if stdout is None else stdout, 1),
            (os.POSIX_SPAWN_DUP2, file, 2),
        ]
    kept.append(nothing)
    actions += [(os.POSIX_SPAWN_CLOSE, each) for each in _inherited() if each != passed]
    command = [sys.executable, "-I", "-m", "uphold.daemon", *words]
    placement: dict[str, Any] = {"setsid": True} if session else {"setpgroup": 0}
    try:
        return os.posix_spawn(
            sys.executable,
            command,
            os.environ,
            file_actions=actions,
            setsigmask=(),
            # Whoever started us may ignore these, as nohup and shells with `&` do.
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
            **placement,
        )
    except OSError as cause:
        raise HostFailure(
            f"cannot start {sys.executable}: {cause.strerror}.", code="UPH_SUPERVISOR_START_FAILED"
        ) from cause
    finally:
        for descriptor in kept:
            os.close(descriptor)


def _open_output(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError as cause:
        raise HostFailure(
            f"cannot open {path} for what the supervisor may have to say: {cause.strerror}.",
            code="UPH_HOME_UNWRITABLE",
            remedy="Is the disk full or read-only?",
        ) from cause


def _output_or_nothing(path: str) -> str:
    """Have no file rather than fail, where the disk is full: that keeps nobody from stopping."""
    try:
        os.close(_open_output(path))
    except HostFailure as problem:
        cause = problem.__cause__
        if not isinstance(cause, OSError) or cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return os.devnull
    return path


def _inherited() -> list[int]:
    """List what somebody handed us beyond 0, 1 and 2; a daemon that kept it would block them."""
    found = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - strings throughout
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the listing itself, closed by now
    return found


def _first_line(
    descriptor: int, patience: float | None, notice: Callable[[], None] | None
) -> bytes:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    read = b""
    left = float("inf") if patience is None else patience
    step = min(_NOTICE_AFTER, left)
    while not read.endswith(b"\n"):
        if not poll.poll(None if step == float("inf") else step * 1000):
            left -= step
            if left <= 0:
                raise UpholdError(
                    f"the supervisor was not ready within {patience:g} s; it goes on starting.",
                    code="UPH_SUPERVISOR_START_TIMEOUT",
                    remedy="`uphold status` shows how far it has come.",
                )
            if notice is not None:
                notice()
            step = left
            continue
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            break
        read += chunk
    return read


def _ending(pid: int) -> str:
    """Say how a child ended; it has closed its pipe, so its end is near."""
    _, status = os.waitpid(pid, 0)
    return f" ({_exit_words(status)})"


def _exit_words(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _last_words(home: str) -> str:
    path = f"{home}/logs/{DAEMON_OUTPUT}"
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - strings throughout
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            tail = file.read().decode(errors="replace").strip()
    except OSError:
        tail = ""
    last = tail.splitlines()[-1] if tail else "nothing"
    return f"Its last words were: {last} (more in {path})."
