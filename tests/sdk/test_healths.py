from __future__ import annotations

import math

import pytest

from uphold import Health


def test_nothing_said_means_well():
    assert Health() == Health("healthy", None, None, None)
    assert Health().is_good


def test_there_is_a_word_for_each_case():
    assert Health.ok("3 left", progress=4) == Health("healthy", "3 left", 4)
    assert Health.degraded("slow") == Health("degraded", error="slow")
    assert Health.failing("no disk", progress=1).error == "no disk"
    assert not Health.degraded("slow").is_good
    assert not Health("ok", error="but").is_good


@pytest.mark.parametrize("status", ["", "fine", "OK", None])
def test_a_status_that_nobody_knows_is_refused_with_those_there_are(status):
    with pytest.raises(ValueError, match="healthy, ok, running, idle, busy, degraded"):
        Health(status)


@pytest.mark.parametrize("progress", [math.nan, math.inf, -1, 1e16, 10**20])
def test_a_progress_that_is_no_amount_is_refused(progress):
    with pytest.raises(ValueError, match="progress is from 0 to 1e"):
        Health(progress=progress)
    with pytest.raises(TypeError, match="progress is a number"):
        Health(progress="half")  # type: ignore[arg-type]
