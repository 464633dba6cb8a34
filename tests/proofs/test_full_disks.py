"""T10 in the gate: some disks, another sample each time."""

from __future__ import annotations

import secrets

import pytest

from proofs import disks, full_disks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.accepts("T10", "P14", "P9")
def test_a_disk_that_takes_nothing_stops_nothing_and_is_caught_up_with(tmp_path):
    if reason := disks.why_not_loop():
        pytest.skip(reason)
    verdict = full_disks.rounds(3, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count == 3
