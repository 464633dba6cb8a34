"""T15 in the gate: ten thousand hostile files, in four parts, and contents that are swapped."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from proofs.hostile_flags import hostile, swaps
from proofs.hostile_kinds import KINDS


@pytest.fixture
def quick_folder(tmp_path):
    """A folder in memory where there is one: thousands of files are made and moved here."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="uphold-proof-") as folder:
        yield Path(folder)


def test_there_are_at_least_forty_kinds():
    assert len(KINDS) >= 40


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.accepts("T15", "P20", "P21", "P22", "P23", "S06", "S07", "S09", "S10", "S11", "C-105")
@pytest.mark.parametrize("seed", [151, 152, 153, 154])
def test_no_hostile_file_is_obeyed_touches_another_or_stops_anything(seed, quick_folder):
    assert hostile(2_500, seed, quick_folder).violations == ()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.accepts("T15", "S08", "B-58")
def test_what_is_swapped_while_two_supervisors_claim_is_obeyed_once_and_as_written(tmp_path):
    assert swaps(1_000, 15, tmp_path).violations == ()
