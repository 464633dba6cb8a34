from __future__ import annotations

import pytest

from proofs.trees import trees


@pytest.mark.slow
@pytest.mark.accepts("T07", "P3", "P4", "S24")
def test_nothing_of_a_stopped_tree_is_left_when_its_end_is_told(tmp_path):
    verdict = trees(8, 7, tmp_path, limit=60)
    assert verdict.violations == ()
    assert verdict.count >= 64
