from __future__ import annotations

import pytest

from proofs.identities import NoNamespaceError, reuses


@pytest.mark.slow
@pytest.mark.accepts("T08", "P7", "S04")
def test_a_number_that_means_a_stranger_by_now_is_neither_signalled_nor_adopted(tmp_path):
    try:
        verdict = reuses(150, 8, tmp_path)
    except NoNamespaceError as cause:
        pytest.skip(f"numbers of processes cannot be chosen: {cause}")
    assert verdict.violations == ()
    assert verdict.count == 150
