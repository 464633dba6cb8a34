"""An update on a disk that fills up: the old code stays, and the update works when there is room."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.repositories import Notes, Repositories, git
from uphold.deploy.records import End, Step

MIB = 1 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, check=False).returncode != 0:
        pytest.skip("nobody here may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def there(tmp_path: Path, small: Path) -> Repositories:
    there = Repositories(tmp_path)
    git(tmp_path, "clone", "-q", str(there.remote), str(small / "checkout"))
    there.repo = small / "checkout"
    return there


@pytest.mark.accepts("T16", "P24", "P25")
def test_a_disk_that_fills_up_at_the_fetch_or_at_the_merge_leaves_the_old_code(
    there: Repositories, small: Path
):
    # Squeezes well, so that it can be fetched where it cannot be written.
    there.publish("big", big="x" * 8 * MIB, code="new\n")
    updating, notes = there.updating(), Notes()
    outcome = updating.apply(updating.check("job"), notes)
    assert (outcome.success, outcome.end) == (False, End.OLD)
    assert notes.steps == ["merging", "returning", "returned"]
    assert there.head() == there.ids[-1]
    assert (there.read(), there.status()) == ("print(3)\n", "")
    assert not (there.repo / "big").exists()
    there.publish("small again", big="x")
    assert updating.apply(updating.check("again"), Notes()).success
    assert there.read() == "new\n"


@pytest.mark.accepts("P25")
def test_what_cannot_be_put_back_for_want_of_room_is_put_back_later(
    there: Repositories, small: Path
):
    there.publish("heavy", heavy="x" * MIB)
    updating = there.updating()
    assert updating.apply(updating.check("first"), Notes()).success
    there.publish("better", code="new\n", heavy=None)
    record = replace(updating.check("job"), step=Step.MERGING)
    (there.repo / "heavy").unlink()
    filler = small / "filler"
    words = ["sh", "-c", 'cat /dev/zero > "$0"', str(filler)]
    assert subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode != 0
    outcome = updating.recover(record, Notes())
    assert (outcome.success, outcome.end) == (False, End.UNCLEAR)
    assert not outcome.record.ended
    assert not outcome.runnable
    assert "could not be put back" in outcome.error
    filler.unlink()
    later = updating.recover(outcome.record, Notes())
    assert (later.end, later.runnable) == (End.OLD, True)
    assert (len(there.read("heavy")), there.status()) == (MIB, "")
