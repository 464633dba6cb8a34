"""T13 in the gate: a few cycles on each server, others each time."""

from __future__ import annotations

import secrets

import pytest

from proofs import outages

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.accepts("T13", "T04", "P10", "P18", "B-38", "B-87")
@pytest.mark.parametrize("proof", [outages.mariadb, outages.postgresql])
def test_servers_and_recorders_that_are_killed_lose_nothing_and_double_nothing(proof, tmp_path):
    verdict = proof(4, secrets.randbelow(2**31), tmp_path)
    assert verdict.violations == ()
    assert verdict.count == 4
