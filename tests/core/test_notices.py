"""What workers say, as values."""

from __future__ import annotations

import pytest

from uphold.core.notices import GOOD_STATUSES, NO_ERROR, Beat, Notice, Refused


@pytest.mark.accepts("C-110")
@pytest.mark.parametrize("status", sorted(GOOD_STATUSES))
def test_a_beat_with_a_good_status_is_good(status):
    assert Beat(status=status).good
    assert Beat(status=status.upper()).good


@pytest.mark.parametrize("status", ["", "error", "stopping", "fine", "healthy?"])
def test_any_other_status_is_not(status):
    assert not Beat(status=status).good


@pytest.mark.accepts("C-111")
def test_a_beat_with_an_error_is_not_good_whatever_its_status_says():
    assert not Beat(status="healthy", error="disk full").good


def test_a_notice_says_nothing_that_it_was_not_told():
    assert Notice() == Notice(
        ready=False, stopping=False, reloading=False, status=None, watchdog=None, error=None
    )
    assert Refused("empty") == Refused("empty", "")
    assert (NO_ERROR.code, NO_ERROR.message) == ("", "")
