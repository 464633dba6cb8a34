"""T02 in the gate: 500 simulated hours and the seeds that once found something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofs import simulating

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PARTS = 4
EACH = 125


@pytest.mark.accepts(
    "T02", "T05", "T11", "T12", "P5", "P8", "P11", "P15", "P17", "P20", "P21", "P22"
)
@pytest.mark.parametrize("part", range(PARTS))
def test_an_hour_of_troubles_breaks_no_promise(part, tmp_path):
    verdict = simulating.seeds(EACH, 1000 + part * EACH, tmp_path)
    assert verdict.violations == ()
    assert verdict.count == EACH


@pytest.mark.accepts("T02")
def test_what_once_found_something_finds_nothing_any_more():
    kept = simulating.kept_seeds()
    for later in (False, True):
        verdict = simulating.lived(kept, later=later)
        assert verdict.violations == ()
        assert verdict.count == len(kept) > 0


@pytest.mark.accepts("T11", "P15")
def test_jumps_of_the_wall_clock_change_nothing():
    for seed in range(2000, 2006):
        jumping = simulating.live(seed, always=("jumps",))
        steady = simulating.live(seed, always=("jumps",), jumps=False)
        assert jumping.eye.counts["jumps"] > 50
        assert jumping.eye.digest == steady.eye.digest, f"seed {seed}"


@pytest.mark.accepts("T02", "P15", "P17", "P20")
def test_with_a_share_too_a_seed_is_one_hour_whatever_the_wall_clock_shows():
    for seed in range(3000, 3004):
        jumping = simulating.live(seed, always=("jumps", "share"))
        steady = simulating.live(seed, always=("jumps", "share"), jumps=False)
        assert jumping.operator.receipts
        assert jumping.eye.violations == []
        assert jumping.eye.digest == steady.eye.digest, f"seed {seed}"


@pytest.mark.accepts("T02")
def test_a_seed_is_the_same_hour_in_every_process():
    program = (
        "from proofs.simulating import live\n"
        "print([live(n, always=('share',) * (n % 2)).eye.digest for n in range(4)])"
    )
    here = str([simulating.live(n, always=("share",) * (n % 2)).eye.digest for n in range(4)])
    for hash_seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": str(Path(__file__).parent.parent),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == here, f"with hash seed {hash_seed}"
