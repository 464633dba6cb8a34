from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, resource, signal, sys
from uphold.host.processes.birth import birth
right = birth()
child = os.posix_spawn("/bin/sh", ["sh", "-c", "ls /proc/$$/fd > {0}/child"], dict(os.environ))
os.waitpid(child, 0)
prctl = __import__("ctypes").CDLL(None).prctl
flag = __import__("ctypes").c_int()
prctl(37, __import__("ctypes").byref(flag), 0, 0, 0)
answer = dict(
    nofile=right.nofile, now=resource.getrlimit(resource.RLIMIT_NOFILE), reaper=right.sub_reaper,
    flag=flag.value, environment=sorted(os.environ), standard=[os.path.exists(f"/proc/self/fd/{{n}}") for n in (0, 1, 2)],
    mask=[int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    child=signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
)
open("{0}/answer", "w").write(json.dumps(answer))
"""


@pytest.mark.accepts("S25", "S46", "P16")
def test_a_newborn_supervisor_passes_nothing_on_and_takes_orphans_in(tmp_path):
    leak = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leak, True)

    def before():
        os.closerange(0, 2)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))

    environment = {**os.environ, "UPHOLD_NONCE": "outer", "UPHOLD_HOME": "x"}
    subprocess.run(
        [sys.executable, "-c", PROGRAM.format(tmp_path)],
        preexec_fn=before,
        pass_fds=[leak],
        env=environment,
        check=True,
    )
    os.close(leak)
    answer = json.loads((tmp_path / "answer").read_text())
    assert answer["nofile"] == [64, 128]
    assert answer["now"] == [64, 128], "raised when slots need it, not before"
    assert answer["reaper"]
    assert answer["flag"] == 1
    assert not [name for name in answer["environment"] if name.startswith("UPHOLD_")]
    assert answer["standard"] == [True, True, True]
    assert answer["mask"] == [signal.SIGCHLD], "kept for the reaper"
    assert answer["child"]
    inherited = {int(name) for name in (tmp_path / "child").read_text().split()}
    assert leak not in inherited
    assert inherited <= {0, 1, 2, 10}, "10 is the shell's own"
