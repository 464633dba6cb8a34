from __future__ import annotations

import errno
import os
import signal
import sys

import pytest

from uphold.host.processes.quick_spawning import is_available, spawn_quickly

pytestmark = pytest.mark.skipif(
    not is_available(), reason="the C library here cannot start a program in a folder"
)
LOOK = r"""
import os, signal, json
print(json.dumps({
    "folder": os.getcwd(),
    "said": os.environ,
    "leads": os.getsid(0) == os.getpid(),
    "open": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")),
    "hears": str(signal.getsignal(signal.SIGPIPE)) + str(signal.getsignal(signal.SIGUSR1)),
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "read": os.read(0, 1).decode(),
}, default=dict))
"""


@pytest.mark.parametrize("alone", [True, False])
def test_a_program_gets_its_folder_its_environment_and_nothing_of_ours(tmp_path, alone):
    import json

    reading, writing = os.pipe()
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        pid = spawn_quickly(
            sys.executable,
            [sys.executable, "-I", "-S", "-c", LOOK],
            {"NAME": "vålue"},
            folder=str(tmp_path),
            descriptors={1: writing, 2: writing},
            alone=alone,
        )
    finally:
        signal.signal(signal.SIGUSR1, before)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        seen = json.loads(file.read())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert seen["folder"] == str(tmp_path)
    assert seen["said"]["NAME"] == "vålue"
    assert "PATH" not in seen["said"]
    assert seen["leads"]
    assert {1, 2} <= set(seen["open"])
    assert "SIG_IGN" not in seen["hears"].replace("Handlers.SIG_IGN", "", 1)
    assert (seen["blocked"], seen["read"]) == (0, "")


@pytest.mark.parametrize(
    ("path", "folder", "named"),
    [
        ("/bin/sh", "/no/such/folder", "/no/such/folder"),
        ("/no/such/program", "/", "/no/such/program"),
    ],
)
def test_what_is_missing_is_named(path, folder, named):
    with pytest.raises(OSError) as caught:
        spawn_quickly(path, ["x"], {}, folder=folder, descriptors={}, alone=True)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, named)


def test_a_word_with_a_zero_byte_is_refused():
    with pytest.raises(ValueError, match="null"):
        spawn_quickly("/bin/sh", ["a\0b"], {}, folder="/", descriptors={}, alone=True)
