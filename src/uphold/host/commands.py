"""Running other people's programs to their end: git, pip, and whatever else takes a moment.

Workers are started elsewhere (`host.processes`). Here a program is waited for, its output is
kept up to a bound, and what it does is limited in time. Nothing is raised: a program that is
missing, too slow or unhappy is an answer too. Call it on a thread, never on the loop.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess  # noqa: TID251 - host starts programs
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from uphold.host import childsignals
from uphold.host.clock import MachineClock
from uphold.host.environments import BASE, DEFAULT_PATH
from uphold.host.proctable import main_children, read_proc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LIMIT: Final = 30.0
"""Seconds a program gets unless somebody says otherwise."""
MOST: Final = 64 * 1024
"""Bytes of each of its two outputs that are kept unless somebody says otherwise."""
_GRACE: Final = 2.0
"""Seconds between asking a program to end and ending it: git takes its lock files away."""
_REST: Final = 0.5
"""Seconds that output may still come after a program has ended."""
_PAUSE: Final = 0.005
_LAST_LOOKS: Final = 64
"""Often enough for what a pipe can hold, and not for ever if a stranger goes on writing."""
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a program ended."""

    argv: tuple[str, ...]
    returncode: int | None
    """As programs end; negative for a signal; None if it never ran."""
    stdout: str
    stderr: str
    timed_out: bool = False
    error: str = ""
    """A sentence on what went wrong, empty if it ended with 0."""
    whole: bool = True
    """Whether all of its output is here."""

    @property
    def ok(self) -> bool:
        """Tell whether it ran and said that all is well."""
        return not self.error


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much a program, and each one it starts, may use of the machine."""

    file: int | None
    """Bytes of the largest file that it may write; None sets no limit."""
    memory: int
    """Bytes of memory of its own."""


def clean_environment(
    inherited: Mapping[str, str], also: Sequence[str] = (), **own: str
) -> dict[str, str]:
    """Compose what a program is started with: the harmless variables and those named here.

    A name that ends with `*` stands for all that begin so.
    """
    exact = {name for name in also if not name.endswith("*")} | BASE
    starts = ("LC_", *(name[:-1] for name in also if name.endswith("*")))
    kept = {
        name: value for name, value in inherited.items() if name in exact or name.startswith(starts)
    }
    return {"PATH": DEFAULT_PATH, **kept, **own}


def run(  # noqa: PLR0913 - what a program is started with
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    limit: float = LIMIT,
    environment: Mapping[str, str] | None = None,
    input: bytes = b"",  # noqa: A002 - what the standard library calls it
    most: int = MOST,
    keep: Sequence[int] = (),
    allowance: Allowance | None = None,
) -> Done:
    """Run a program to its end, without a shell, and tell how it went; never raises.

    It gets a process group of its own, and all of that group is ended before this returns: at
    once when the program has ended, asked first when the limit is over. Only what leaves its
    group escapes. `keep` names descriptors that it inherits besides 0, 1 and 2.
    """
    words = tuple(argv)
    if environment is None:
        environment = clean_environment(os.environ)
    try:
        # In our own session: children there are ours to wait for (see `processes.reaping`).
        with childsignals.as_usual():
            process = subprocess.Popen(
                words,
                cwd=os.fspath(cwd),
                env=environment,
                stdin=subprocess.PIPE if input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                pass_fds=tuple(keep),
                preexec_fn=None if allowance is None else _enforcing(allowance),  # noqa: PLW1509 - plain system calls only
            )
    except (OSError, ValueError, subprocess.SubprocessError) as cause:
        return _never_ran(words, os.fspath(cwd), cause)
    with ExitStack() as closing:
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                closing.callback(_close, pipe)
        return _Watch(process, words, limit, input, most).to_the_end()


def at_work(name: str, folder: str | os.PathLike[str]) -> list[int]:
    """List processes of this name that stand in a folder or below it, as far as we may see."""
    top = os.path.realpath(folder)
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH208, PTH112
        if entry.isdigit():
            with suppress(OSError):
                called = read_proc(f"/proc/{entry}/comm").decode(errors="replace").strip()
                cwd = os.readlink(f"/proc/{entry}/cwd")  # noqa: PTH115
                if called == name and (cwd == top or cwd.startswith(f"{top}/")):
                    found.append(int(entry))
    return found


class _Kept:
    """Output up to a bound: its beginning and its end, where the reasons stand."""

    def __init__(self, most: int) -> None:
        self._half = max(most // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.left_out = 0

    def add(self, chunk: bytes) -> None:
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room < len(chunk) else b""
        beyond = len(self._tail) - self._half
        if beyond > 0:
            del self._tail[:beyond]
            self.left_out += beyond

    def text(self) -> str:
        gap = f"\n… {self.left_out} bytes left out …\n".encode() if self.left_out else b""
        # As file names are: whatever is no UTF-8 can be given back to the machine as it was.
        return (bytes(self._head) + gap + bytes(self._tail)).decode(errors="surrogateescape")


class _Watch:
    """One program that is running."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        argv: tuple[str, ...],
        limit: float,
        given: bytes,
        most: int,
    ) -> None:
        self._process = process
        self._argv = argv
        self._limit = limit
        self._rest = memoryview(given)
        self._kept = {1: _Kept(most), 2: _Kept(most)}
        self._clock = MachineClock()
        self._ended = False

    def to_the_end(self) -> Done:
        with selectors.DefaultSelector() as selector, ExitStack() as closing:
            self._listen(selector, closing)
            limit = self._now() + self._limit
            on_time = self._attend(selector, limit) and self._outwaited(limit)
            if not on_time:
                self._signal(signal.SIGTERM)
                self._attend(selector, self._now() + _GRACE)
            # Before it is waited for: until then its number, and its group's, is nobody else's.
            self._signal(signal.SIGKILL)
            self._attend(selector, self._now() + _REST)
            self._drain(selector)
            self._bury(self._now() + _REST)
        return self._told(self._wait(_GRACE), timed_out=not on_time)

    def _listen(self, selector: selectors.BaseSelector, closing: ExitStack) -> None:
        process = self._process
        for number, pipe in ((1, process.stdout), (2, process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, number)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE, 0)
        # Elsewhere a left-over that keeps its output open is waited for until the limit.
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                pidfd = os.pidfd_open(process.pid)
                closing.callback(os.close, pidfd)
                selector.register(pidfd, selectors.EVENT_READ, None)

    def _attend(self, selector: selectors.BaseSelector, until: float) -> bool:
        """Read and write until it has ended and all is said; False if time is over before."""
        while selector.get_map():
            left = until - self._now()
            if left <= 0:
                return self._ended
            for key, _ in selector.select(left):
                if key.data is None:
                    self._ended = True
                    selector.unregister(key.fileobj)
                    until = min(until, self._now() + _REST)
                elif not self._move(key):
                    selector.unregister(key.fileobj)
                    if key.data == 0:
                        _close(key.fileobj)  # type: ignore[arg-type]
        return True

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is there already: we may have slept through all of the time for it."""
        for _ in range(_LAST_LOOKS):
            ready = [key for key, _ in selector.select(0) if key.data in self._kept]
            if not ready:
                return
            for key in ready:
                if not self._move(key):
                    selector.unregister(key.fileobj)

    def _outwaited(self, until: float) -> bool:
        """Wait for its end where only its output told of that."""
        return self._ended or self._wait(max(until - self._now(), 0.0)) is not None

    def _move(self, key: selectors.SelectorKey) -> bool:
        """Pass on what there is; False when there will be no more."""
        try:
            if key.data == 0:
                self._rest = self._rest[os.write(key.fd, self._rest[:_CHUNK]) :]
                return bool(self._rest)
            chunk = os.read(key.fd, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # it does not want to read any more
            return False
        self._kept[key.data].add(chunk)
        return bool(chunk)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _bury(self, until: float) -> None:
        """Take those of its group that came to us, as a supervisor takes in orphans.

        They are of our own session, where nobody else looks for them.
        """
        while self._ended and self._now() < until:
            left = [pid for pid in main_children() if self._is_orphan(pid)]
            if not left:
                return
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
            time.sleep(_PAUSE)

    def _is_orphan(self, pid: int) -> bool:
        try:
            return pid != self._process.pid and os.getpgid(pid) == self._process.pid
        except OSError:
            return False

    def _wait(self, seconds: float) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _told(self, returncode: int | None, *, timed_out: bool) -> Done:
        name = self._argv[0]
        error = ""
        if timed_out:
            error = f"'{name}' did not end within {self._limit:g} s and was ended."
        elif returncode is None:
            error = f"'{name}' cannot be ended: the kernel does not let go of it."
        elif returncode < 0:
            error = f"'{name}' was ended by signal {-returncode}."
        elif returncode > 0:
            error = f"'{name}' ended with {returncode}."
        return Done(
            argv=self._argv,
            returncode=returncode,
            stdout=self._kept[1].text(),
            stderr=self._kept[2].text(),
            timed_out=timed_out,
            error=error,
            whole=not (self._kept[1].left_out or self._kept[2].left_out),
        )

    def _now(self) -> float:
        return self._clock.now().mono


def _enforcing(allowance: Allowance) -> Callable[[], None]:
    """Give what has the kernel see to an allowance, to be called in a child before it is one."""
    import resource  # noqa: PLC0415 - there is none on Windows

    wanted = {
        resource.RLIMIT_FSIZE: allowance.file,
        resource.RLIMIT_DATA: allowance.memory,
        resource.RLIMIT_CORE: 0,
    }
    limits = []
    for kind, most in wanted.items():
        if most is None:
            continue
        _, hard = resource.getrlimit(kind)
        lower = most if hard == resource.RLIM_INFINITY else min(most, hard)
        limits.append((kind, (lower, lower)))

    def enforce() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then it hears of it, and can say so
        for kind, pair in limits:
            resource.setrlimit(kind, pair)

    return enforce


def _never_ran(argv: tuple[str, ...], cwd: str, cause: Exception) -> Done:
    what = getattr(cause, "strerror", None) or str(cause)
    name = argv[0] if argv else ""
    if isinstance(cause, OSError) and cause.filename == cwd:
        error = f"'{name}' cannot be run in the folder {cwd}: {what}."
    elif isinstance(cause, FileNotFoundError):
        error = f"there is no program '{name}' in the PATH."
    else:
        error = f"'{name}' cannot be run: {what}."
    return Done(argv=argv, returncode=None, stdout="", stderr="", error=error)


def _close(pipe: IO[bytes]) -> None:
    with suppress(OSError):  # what it did not read is lost with it
        pipe.close()
