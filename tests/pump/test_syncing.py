"""Syncing: once a second, what changed, and not what a flood has pushed out."""

from __future__ import annotations

import os
import queue
from pathlib import Path

from uphold.pump.chains import Chain
from uphold.pump.logfiles import LogFile
from uphold.pump.settings import LogSettings
from uphold.pump.syncing import EVERY, Syncer


def test_it_is_due_a_second_after_a_change_and_never_while_nothing_changes(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    (tmp_path / "w.log").write_text("text\n")
    log = LogFile(Chain(folder, "w.log"), LogSettings())
    bell: queue.Queue[None] = queue.Queue()
    syncer = Syncer(ring=lambda: bell.put(None))
    assert syncer.next_due() is None
    syncer.changed(log, 10.0)
    syncer.changed(log, 10.5)
    assert syncer.next_due() == 10.0 + EVERY
    syncer.work(10.9)
    assert bell.empty()
    syncer.work(11.0)
    bell.get(timeout=20)
    assert syncer.next_due() is None
    os.close(folder)


def test_rotated_files_are_included_unless_all_that_is_kept_is_new() -> None:
    log = LogFile(Chain(7, "w.log"), LogSettings(keep=3))
    assert Syncer._names(log) == [(7, "w.log")]
    log.rotations = 1
    assert Syncer._names(log) == [(7, "w.log"), (7, "w.log.1"), (7, "w.log.2")]
    assert log.rotations == 0
    log.rotations = 3
    assert len(Syncer._names(log)) == 4
    log.rotations = 4
    assert Syncer._names(log) == []
