"""T20 in the gate: a small house for some seconds; nothing here depends on the machine's speed."""

from __future__ import annotations

import pytest

from proofs.soaking import churn


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.accepts("T20")
def test_nothing_is_lost_doubled_or_kept_open_while_workers_and_a_database_die(tmp_path):
    verdict = churn(12, 20, tmp_path, workers=50, share=5.0, outages=4.0, in_gate=True)
    assert verdict.violations == ()
