"""T04 of the journal in the gate: a sample of the points, another one each time."""

from __future__ import annotations

import secrets

import pytest

from proofs import faulting, journal_points

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not faulting.available(), reason="no C compiler (tools/provide.sh)"),
]


@pytest.mark.accepts("P10", "P14")
def test_no_call_on_the_journal_is_a_bad_moment_to_be_killed_or_refused(tmp_path):
    verdict = journal_points.points(25, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count > 15, verdict
