from __future__ import annotations

import pytest

from proofs import logging_lines

pytestmark = pytest.mark.slow


@pytest.mark.accepts("T06", "P13", "P6")
def test_no_line_is_lost_doubled_or_torn_when_the_supervisor_is_killed(tmp_path):
    assert logging_lines.kills(3, 6, tmp_path).violations == ()


@pytest.mark.accepts("T06", "P13")
def test_no_line_is_lost_doubled_or_torn_by_rotation_under_a_pump_that_dies(tmp_path):
    verdict = logging_lines.rotations(40, 6, tmp_path)
    assert verdict.violations == ()
    assert verdict.count >= 40


@pytest.mark.accepts("T06", "P13", "S22")
def test_the_newest_lines_of_a_flood_are_whole_and_without_a_gap(tmp_path):
    assert logging_lines.flood(1, 6, tmp_path, limit=None).violations == ()


@pytest.mark.accepts("T06", "P13")
def test_the_one_line_of_a_worker_that_exits_at_once_is_kept(tmp_path):
    verdict = logging_lines.one_liners(150, 6, tmp_path)
    assert verdict.violations == ()
    assert verdict.count >= 150


@pytest.mark.accepts("T06", "P13")
def test_a_worker_whose_reader_is_gone_waits_and_loses_nothing(tmp_path):
    assert logging_lines.no_reader(1, 6, tmp_path).violations == ()
