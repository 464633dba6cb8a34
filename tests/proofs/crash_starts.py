"""Two ways to start a supervisor that is to be killed: from a fork that has all imports, and cold.

Both run the daemon's own `main` with nothing replaced. What they start are children of this
process, or become that when theirs dies.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

from proofs.witnessing import PATIENCE, children
from uphold.testing.waiting import until

TRACEBACK = "Traceback"
APART = ("uphold.cli", "uphold.testing", "uphold.pump")
"""Programs of their own."""


class Warm:
    """Forks supervisors from this process."""

    def __init__(self, folder):
        self._errors = Path(folder, "errors")
        sys.modules["ssl"] = None  # as the daemon does, and before asyncio is imported
        import_all()

    def begin(self, home, config):
        """Fork a supervisor; gives its process and the pipe on which it says that it is up."""
        return self.begin_together(home, config, 1)[0]

    def begin_together(self, home, config, count):
        """Fork supervisors that begin at the same instant."""
        gate, starts = os.pipe(), []
        for _ in range(count):
            reading, writing = os.pipe()
            words = ["--home", str(home), "--config", str(config), "--ready-fd", str(writing)]
            starts.append((self._fork(words, reading, gate), reading))
            os.close(writing)
        for each in gate:
            os.close(each)
        return starts

    def ready(self, start, patience=PATIENCE):
        """Wait until it is up; False if it refused, ended, or took longer."""
        said = b""
        while not said.endswith(b"\n"):
            if not select.select([start[1]], [], [], patience)[0]:
                return False
            chunk = os.read(start[1], 65536)
            if not chunk:
                return False
            said += chunk
        return b'"ready"' in said

    def kill(self, start):
        """Kill it now; gives its exit code if it had ended by itself, else None."""
        os.kill(start[0], signal.SIGKILL)  # not reaped yet, so the number is its own
        code = self._code(start)
        return None if code == -signal.SIGKILL else code

    def second(self, home, config):
        """Start another one where one lives; gives its exit code."""
        return self._code(self.begin(home, config))

    def signal(self, start, number):
        os.kill(start[0], number)

    def leave(self, home, start, rng):
        """Stop everything, by the supervisor or after its death; gives the exit code."""
        if rng.random() < 0.3:
            self.kill(start)
            reading, writing = os.pipe()
            number = self._fork(["--home", str(home), "--stop-left-overs"], reading, None)
            os.close(writing)
            return self._code((number, reading))
        os.kill(start[0], signal.SIGTERM)
        return self._code(start)

    def last_words(self):
        """Give what a supervisor left on its standard error by mistake, once."""
        text = self._errors.read_text() if self._errors.exists() else ""
        self._errors.unlink(missing_ok=True)
        return text if TRACEBACK in text else ""

    def _code(self, start):
        os.close(start[1])
        return ending(start[0])

    def _fork(self, words, foreign, gate):
        number = os.fork()
        if number:
            return number
        code = 70
        try:
            os.setsid()
            os.close(foreign)
            if gate is not None:
                os.close(gate[1])
                os.read(gate[0], 1)
                os.close(gate[0])
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            nothing = os.open(os.devnull, os.O_RDWR)
            errors = os.open(self._errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
                os.dup2(source, target)
            from uphold.daemon.__main__ import main

            code = main(words)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)


def import_all():
    """Import whatever a supervisor may need, so that its forks need not."""
    import tomllib  # noqa: F401 - the daemon imports it when it reads the file

    import uphold

    for found in pkgutil.walk_packages(uphold.__path__, "uphold."):
        if not found.name.startswith(APART) and not found.name.endswith("__main__"):
            importlib.import_module(found.name)


class Cold:
    """Starts supervisors as people do, by the command line."""

    def __init__(self, folder):
        self._folder = folder
        self._output = Path(folder, "output")

    def begin(self, home, config):
        """Run `uphold start`; gives its process, its exit code, and whether nobody else does."""
        return [self._uphold(home, config, "start"), None, True]

    def begin_together(self, home, config, count):
        starts = [self.begin(home, config) for _ in range(count)]
        return [[*start[:2], count == 1] for start in starts]

    def ready(self, start, patience=PATIENCE):
        """Wait for the end of the command; False if it reports anything but success."""
        until(lambda: self._has_ended(start) or not patience, PATIENCE, "the end of `uphold start`")
        return start[1] == 0

    def kill(self, start):
        """Kill command and supervisor; None, unless the command had failed or nobody lived."""
        ended = self._has_ended(start)
        if not ended:
            os.kill(start[0], signal.SIGSTOP)  # so that it starts nothing while we look
        found = self._supervisors(start)
        for number in found:
            os.kill(number, signal.SIGKILL)
        if start[1] == 0 and start[2] and not found:
            return "nobody knows what, after it had said that it was up"
        if not ended:
            os.kill(start[0], signal.SIGKILL)
            ending(start[0])
        return start[1] or None

    def second(self, home, config):
        """Run `uphold start` where a supervisor lives; gives its exit code."""
        return ending(self._uphold(home, config, "start"))

    def signal(self, start, number):
        for each in self._supervisors(start):
            os.kill(each, number)

    def leave(self, home, start, rng):
        """Run `uphold stop`, with the supervisor or after its death; gives the exit code."""
        if rng.random() < 0.3:
            self.kill(start)
        return ending(self._uphold(home, Path(self._folder, "uphold.toml"), "stop"))

    def last_words(self):
        text = self._output.read_text() if self._output.exists() else ""
        self._output.unlink(missing_ok=True)
        return text if TRACEBACK in text else ""

    def _supervisors(self, start):
        """Find the supervisor: what the command has started, or left to us by its own end."""
        command = set() if start[1] is not None else {start[0]}
        return [
            number
            for number, parent in children({os.getpid(), *command})
            if parent in command or b"uphold.daemon" in _command_line(number)
        ]

    def _uphold(self, home, config, verb):
        words = [sys.executable, "-m", "uphold", "--home", str(home), "-c", str(config), verb]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return os.posix_spawn(
            sys.executable,
            words,
            {"PATH": os.environ["PATH"], "HOME": str(self._folder)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self._output), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )

    def _has_ended(self, start):
        if start[1] is None:
            ended, status = os.waitpid(start[0], os.WNOHANG)
            start[1] = os.waitstatus_to_exitcode(status) if ended else None
        return start[1] is not None


def ending(number):
    """Wait for the end of a child and give its exit code; one that does not end is killed."""
    limit = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(number, os.WNOHANG))[0]:
        if time.monotonic() > limit:
            os.kill(number, signal.SIGKILL)
        time.sleep(0.0005)
    return os.waitstatus_to_exitcode(ended[1])


def _command_line(number):
    with suppress(OSError):
        return Path(f"/proc/{number}/cmdline").read_bytes()
    return b""
