"""T04c in the gate: some cuts, on a disk in memory."""

from __future__ import annotations

import secrets

import pytest

from proofs import disks, power_cuts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.accepts("P9", "P10")
def test_a_power_cut_takes_nothing_that_was_acknowledged(tmp_path):
    if reason := disks.why_not_loop():
        pytest.skip(reason)
    verdict = power_cuts.cuts(20, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
