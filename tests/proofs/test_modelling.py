from __future__ import annotations

import pytest

from proofs.modelling import steps


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.accepts("T03", "P5", "P8", "P12")
def test_the_engine_and_a_small_reference_of_it_agree_after_each_step(tmp_path):
    """The same steps each time: what is new is looked for by `make soak`, with new seeds."""
    verdict = steps(10_000, 3, tmp_path, derandomize=True)
    assert verdict.violations == ()
    assert verdict.count >= 10_000
