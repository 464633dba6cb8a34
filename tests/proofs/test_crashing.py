"""T01 in the gate: other instants each time, the seed is in every sentence."""

from __future__ import annotations

import secrets

import pytest

from proofs import crashing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.accepts("T01", "P1", "P2", "P5", "P6", "P7", "P9")
@pytest.mark.parametrize("_part", range(4))  # they mostly wait, so they may wait side by side
def test_a_thousand_kills_leave_nothing_twice_nothing_lost_and_nobody_disturbed(tmp_path, _part):
    verdict = crashing.warm(250, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count == 250


@pytest.mark.accepts("T01", "P1", "P2", "P5", "P6", "P9")
def test_fifty_kills_of_what_people_start_leave_nothing_twice_and_nothing_lost(tmp_path):
    verdict = crashing.cold(50, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count == 50
