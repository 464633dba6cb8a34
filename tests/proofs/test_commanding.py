from __future__ import annotations

import pytest

from proofs.commanding import operations


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.accepts("T21", "P5", "P27")
def test_what_fifty_clients_were_answered_has_an_order_that_explains_it(tmp_path):
    verdict = operations(500, 21, tmp_path, limit=None)
    assert verdict.violations == ()
    assert verdict.count >= 500
