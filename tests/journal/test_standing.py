from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from uphold.journal.audit import BEGINNING, Link, verify
from uphold.journal.reading import JournalReader
from uphold.journal.standing import (
    INTERRUPTED,
    SEQ_SKIP,
    gap_after,
    link_of,
    numbers_were_lost,
)
from uphold.journal.tables import AUDIT_COUNT, AUDIT_HEAD, BOOT, CLEAN, GAP
from uphold.ports.journals import AuditEntry, Batch
from uphold.testing.contracts.journals import job, news, play


@pytest.mark.parametrize(
    ("meta", "lost"),
    [
        ({}, False),
        ({BOOT: "now", CLEAN: "0"}, False),
        ({BOOT: "now"}, False),
        ({BOOT: "before", CLEAN: "1"}, False),
        ({BOOT: "before", CLEAN: "0"}, True),
        ({BOOT: "before"}, True),
    ],
)
def test_numbers_are_lost_only_when_the_machine_went_down_while_the_journal_was_open(meta, lost):
    assert numbers_were_lost(meta, "now") is lost


def test_a_gap_that_nobody_was_told_of_grows():
    assert gap_after({}, 7) == (f"8-{7 + SEQ_SKIP}", 7 + SEQ_SKIP)
    assert gap_after({GAP: "8-100"}, 100) == (f"8-{100 + SEQ_SKIP}", 100 + SEQ_SKIP)


def test_a_chain_without_rows_stands_at_its_beginning():
    assert link_of({}) == Link(BEGINNING, 0)
    assert link_of({AUDIT_HEAD: "abc", AUDIT_COUNT: "3"}) == Link("abc", 3)


@pytest.mark.accepts("P11")
def test_two_power_cuts_in_a_row_are_one_gap_and_a_kill_between_changes_nothing(
    opened, path, tmp_path
):
    places = tmp_path / "places"
    places.mkdir()

    async def script():
        journal = opened(boot_id="boot-1")
        await journal.append(Batch(events=[news(1)]))
        shutil.copytree(path.parent, places / "0", ignore=shutil.ignore_patterns("*-shm", "places"))
        await journal.close()
        gaps = []
        for turn, boot_id in enumerate(("boot-2", "boot-2", "boot-3"), start=1):
            where = shutil.copytree(places / str(turn - 1), places / str(turn)) / "journal.db"
            memory = opened(boot_id=boot_id, where=where).recall()
            gaps.append((memory.meta["gap"], memory.last_seq))
        once, twice = 1 + SEQ_SKIP, 1 + 2 * SEQ_SKIP
        assert gaps == [(f"2-{once}", once), (f"2-{once}", once), (f"2-{twice}", twice)]

    play(script)


def test_of_an_order_that_was_under_way_nothing_is_said_that_nobody_saw(opened, written):
    """It may stand, as a stop does, or not, as an update: which one is not told from here."""
    running = job("running")
    path = written(Batch(jobs=[running, replace(running, id="job-2", state="succeeded")]))

    async def script():
        await opened().close()

    play(script)
    with JournalReader(path) as journal:
        told = {row["job_id"]: (row["state"], row["last_error"]) for row in journal.jobs()}
    text = "interrupted: the supervisor ended first, so nobody saw how this ended"
    assert told == {"job-1": ("failed", text), "job-2": ("succeeded", None)}


def test_the_audit_says_of_such_an_order_that_it_was_interrupted(opened, written):
    asked = AuditEntry(
        id="job-1",
        actor="ann",
        action="update",
        target_type="worker",
        target_id="web",
        label="nightly",
        at=1.0,
        details={"origin": "cli", "task_id": "task_1"},
    )
    path = written(Batch(jobs=[job("running")], audit=[asked]))

    async def script():
        for _ in range(2):  # once, however often it is opened
            await opened().close()

    play(script)
    with JournalReader(path) as journal:
        first, told = journal.audit()
        assert verify(journal) == []
    assert (told["audit_id"], told["action"]) == ("job-1.interrupted", "update.interrupted")
    assert [told[key] for key in ("actor", "target_id", "label")] == ["ann", "web", "nightly"]
    assert told["details"]["task_id"] == first["details"]["task_id"] == "task_1"
    assert told["details"]["error"] == INTERRUPTED
