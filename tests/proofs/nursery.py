"""A process that has imported the supervisor, and forks one whenever a proof needs it.

Nine tenths of a cold start are imports; thousands of crash points are only affordable without
them. What runs in the fork is the daemon's own `main`, with nothing replaced.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback


class Nursery:
    """The side of the proof: asks for supervisors and for how they ended."""

    def __init__(self, environ=None):
        self._ended = {}
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environ or {})},
        )

    def supervisor(self, home, config, errors, *more):
        """Fork a supervisor of this home; `more` are words for it; gives its process id."""
        words = ["--home", str(home), "--config", str(config), *more]
        pid = self._ask({"words": words, "errors": str(errors)})
        self._ended.pop(pid, None)  # numbers come again after some ten thousand processes
        return pid

    def ended(self, pid):
        """Give the exit code (negative: the signal) once it has ended, None before."""
        if pid not in self._ended:
            code = self._ask({"ended": pid})
            if code is None:
                return None
            self._ended[pid] = code
        return self._ended[pid]

    def close(self):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _ask(self, question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def serve():
    """Be the nursery, until nobody asks any more."""
    sys.modules["ssl"] = None  # as the daemon does, and before asyncio is imported
    import uphold.daemon.serving  # noqa: F401 - imported here so that the forks need not

    os.environ.pop("LD_PRELOAD", None)
    if "NURSERY_PYTHON" in os.environ:
        prepare_for_flags(os.environ.pop("NURSERY_PYTHON"))
    for line in sys.stdin:
        question = json.loads(line)
        answer = ended(question["ended"]) if "ended" in question else fork(question)
        print(json.dumps(answer), flush=True)


def prepare_for_flags(python):
    """Have what a pass with flags needs; its helpers are started by another name of Python."""
    import uphold.daemon.passing
    import uphold.daemon.reporting
    import uphold.daemon.sharing  # noqa: F401
    from uphold.daemon import deploying

    deploying._REST = 0.01  # two seconds for each of thousands of restarts prove no more
    sys.executable = python


def ended(pid):
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def fork(question):
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        errors = os.open(question["errors"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
            os.dup2(source, target)
        from uphold.daemon.__main__ import main

        code = main(question["words"])
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
