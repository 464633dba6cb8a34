from __future__ import annotations

import pytest

from proofs.looping import flapping


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.accepts("T05", "P8")
def test_workers_that_crash_for_ever_are_started_as_often_as_promised(tmp_path):
    verdict = flapping(50, 5, tmp_path, limit=None, retries=4)
    assert verdict.violations == ()
    assert verdict.count == 50
