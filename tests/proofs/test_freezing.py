from __future__ import annotations

import pytest

from proofs.freezing import frozen


@pytest.mark.slow
@pytest.mark.accepts("T09", "P26")
def test_workers_that_stand_still_are_found_and_come_back(tmp_path):
    verdict = frozen(12, 9, tmp_path, limit=None)
    assert verdict.violations == ()
    assert verdict.count == 12
