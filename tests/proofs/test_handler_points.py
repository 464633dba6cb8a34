"""T04a on the handlers of flags in the gate: a sample of the points; `make soak` has them all."""

from __future__ import annotations

import shutil

import pytest

from proofs import faulting, handler_points

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not faulting.available(), reason="no C compiler (tools/provide.sh)"),
    pytest.mark.skipif(not shutil.which("git"), reason="no git"),
]


@pytest.mark.accepts("P9", "P10", "P20", "P24", "P25", "T16")
def test_no_call_on_a_file_is_a_bad_moment_for_a_flag(tmp_path):
    verdict = handler_points.points(9, 1, tmp_path)
    assert verdict.violations == ()
    assert verdict.count > 5, verdict
