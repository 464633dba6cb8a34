from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("crash_harness.py")


@pytest.mark.slow
@pytest.mark.timeout(420)  # a busy machine is no violation
@pytest.mark.accepts("P2", "P5", "P6", "B-83")
def test_two_hundred_kills_of_the_supervisor_leave_nothing_twice_and_nothing_lost(tmp_path):
    seed = str(secrets.randbelow(2**31))
    command = [sys.executable, str(HARNESS), str(tmp_path), "200", seed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), (
        f"seed {seed}: {done.stdout}{done.stderr}"
    )
