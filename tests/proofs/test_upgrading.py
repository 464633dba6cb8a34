"""T22 in the gate: there and back."""

from __future__ import annotations

import secrets

import pytest

from proofs import upgrading

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.accepts("T22", "P6", "P13")
def test_workers_do_not_notice_that_one_version_hands_over_to_another_and_back(tmp_path):
    verdict = upgrading.upgrades(2, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count == 2
