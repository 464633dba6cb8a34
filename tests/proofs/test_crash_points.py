"""T04a in the gate: a sample of the points, another one each time."""

from __future__ import annotations

import secrets

import pytest

from proofs import crash_points, faulting

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not faulting.available(), reason="no C compiler (tools/provide.sh)"),
]


@pytest.mark.accepts("P2", "P5", "P9", "P10", "P14", "P25")
def test_no_call_on_a_file_is_a_bad_moment_to_be_killed_or_refused(tmp_path):
    verdict = crash_points.points(60, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count > 40, verdict
