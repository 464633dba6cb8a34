from __future__ import annotations

import pytest

from proofs.orphans import bombs, capped, orphans

pytestmark = pytest.mark.slow


@pytest.mark.accepts("T09", "P16", "P4")
def test_orphans_are_let_go_of_and_a_frozen_worker_is_stopped(tmp_path):
    assert orphans(150, 9, tmp_path, limit=60).violations == ()


@pytest.mark.accepts("T09", "P3")
def test_nothing_of_a_fork_bomb_outlives_its_stop(tmp_path):
    assert bombs(1, 9, tmp_path, limit=60).violations == ()


@pytest.mark.accepts("T09", "P16", "S23")
def test_a_worker_that_forks_for_ever_stays_within_its_limit_and_ends(tmp_path):
    verdict = capped(1, 9, tmp_path, limit=60)
    if not verdict.count:
        pytest.skip(*verdict.figures)
    assert verdict.violations == ()
