"""T11 in the gate: a few jumps, others each time."""

from __future__ import annotations

import secrets

import pytest

from proofs import clocks, faulting

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not faulting.available(), reason="no C compiler (tools/provide.sh)"),
]


@pytest.mark.accepts("T11", "P15")
def test_no_jump_of_the_wall_clock_has_any_effect(tmp_path):
    verdict = clocks.jumps(12, secrets.randbelow(2**31), tmp_path, limit=None)
    assert verdict.violations == ()
    assert verdict.count == 12
