"""What workers say, as values."""

from __future__ import annotations

import pytest

from uphold.core.notices import GOOD_STATUSES, NO_ERROR, Beat, FileBeat, Notice, Refused


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


def file_beat(modified=1000.0, **beat):
    return FileBeat(beat=Beat(**beat), modified=modified)


@pytest.mark.accepts("C-109", "C-119")
def test_a_file_is_as_old_as_the_older_of_its_two_times():
    assert file_beat(1000.0).age(1007.0) == 7.0
    assert file_beat(1000.0, at=995.0).age(1007.0) == 12.0
    assert file_beat(1000.0, at=1005.0).age(1007.0) == 7.0
    assert file_beat(1010.0).age(1007.0) == 0.0


@pytest.mark.accepts("P15")
def test_when_a_file_was_written_does_not_move_with_a_clock_that_is_set_back():
    assert file_beat(1000.0).written == 1000.0
    assert (file_beat(1000.0, at=995.0).written, file_beat(995.0, at=1000.0).written) == (995, 995)


@pytest.mark.accepts("C-109", "C-110", "C-111")
@pytest.mark.parametrize(
    ("found", "word"),
    [
        (file_beat(), ""),
        (file_beat(700.0), "300 s old"),
        (file_beat(at=600.0), "400 s old"),
        (file_beat(2000.0), "future"),
        (file_beat(error="disk full"), "an error: disk full"),
        (file_beat(status="stuck"), "'stuck'"),
        (file_beat(status=""), "'nothing'"),
    ],
)
def test_a_file_speaks_of_a_healthy_worker_only_if_it_is_fresh_good_and_without_error(found, word):
    trouble = found.trouble(1000.0, 300.0)
    assert word in trouble
    assert bool(trouble) is bool(word)
