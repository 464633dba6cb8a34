from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from uphold.core.specs import Instant, Schedule
from uphold.core.statuses import Due, State
from uphold.errors import StoreUnavailable
from uphold.journal.recalling import recall
from uphold.journal.standing import GENERATION_SKIP, SEQ_SKIP
from uphold.ports.journals import Batch
from uphold.testing.contracts.journals import BOOT, NEXT_BOOT, news, play, status


def damage(path, record):
    with closing(sqlite3.connect(path, isolation_level=None)) as hand:
        hand.execute("UPDATE slots_t SET record = ? WHERE slot = 'api'", (record,))


def test_no_file_is_no_memory(path):
    assert recall(path, BOOT).last_seq == 0
    assert not path.exists()


@pytest.mark.accepts("P9")
def test_a_file_that_cannot_be_read_is_never_taken_for_an_empty_memory(path):
    path.write_bytes(b"SQLite format 3\0" + b"\xaa" * 4000)
    with pytest.raises(StoreUnavailable):
        recall(path, BOOT)


@pytest.mark.accepts("P9")
@pytest.mark.parametrize("record", ["", "{", "null", "[]", "\x00", "{" * 5000, '{"slot": 3}'])
def test_a_damaged_record_never_hides_its_slot(written, record):
    path = written(Batch(slots=[status(), status("web")]))
    damage(path, record)
    memory = recall(path, BOOT)
    assert memory.slots["web"] == status("web")
    kept = memory.slots["api"]
    assert (kept.state, kept.generation, kept.nonce) == (State.RUNNING, 3, "nonce-42")
    assert memory.meta["unreadable"].startswith("api: ")


def test_of_a_record_with_one_wrong_field_only_that_field_is_lost(written):
    path = written(Batch(slots=[status()]))
    plain = json.loads(_record(path))
    plain["terms"]["stop"]["grace"] = "long"
    plain["aura"] = "from the future"
    damage(path, json.dumps(plain))
    memory = recall(path, BOOT)
    assert memory.slots["api"] == replace(status(), terms=None)
    assert "$.terms.stop.grace" in memory.meta["unreadable"]


DUE = Due(at=Instant(90.0), wall=9e8, rule="every 5 s", text="then", owed=True, skipped=2)


def scheduled():
    terms = replace(status().terms, schedule=Schedule(cron="@daily", timezone="Europe/Berlin"))
    return replace(status(), terms=terms, due=DUE)


def test_a_schedule_and_the_next_run_are_remembered(written):
    path = written(Batch(slots=[scheduled()]))
    assert recall(path, BOOT).slots["api"] == scheduled()


def test_the_next_run_is_decided_anew_after_a_boot(written):
    path = written(Batch(slots=[scheduled()]))
    after = recall(path, NEXT_BOOT).slots["api"]
    assert after.due is None
    assert after.terms == scheduled().terms


@pytest.mark.accepts("T22")
def test_a_record_from_before_there_were_schedules_is_read(written):
    path = written(Batch(slots=[status()]))
    plain = json.loads(_record(path))
    del plain["due"], plain["terms"]["schedule"]
    damage(path, json.dumps(plain))
    memory = recall(path, BOOT)
    assert memory.slots["api"] == status()
    assert "unreadable" not in memory.meta


@pytest.mark.accepts("T22")
def test_a_state_only_a_newer_uphold_knows_is_reported_and_the_rest_kept(written):
    path = written(Batch(slots=[status()]))
    with closing(sqlite3.connect(path, isolation_level=None)) as hand:
        hand.execute(
            "UPDATE slots_t SET state = 'dreaming', record = json_set(record, '$.state', 'dreaming')"
        )
    memory = recall(path, BOOT)
    assert memory.slots["api"] == replace(status(), state=State.STOPPED)
    assert "dreaming" in memory.meta["unreadable"]


def test_the_skip_after_a_power_cut_is_the_same_before_and_after_it_is_written_down(
    opened, path, tmp_path
):
    """A disk that is full at start must not change which numbers the supervisor uses."""

    async def script():
        journal = opened()
        await journal.append(Batch(events=[news(1), news(2)], slots=[status()]))
        left = tmp_path / "left"
        left.mkdir()
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", left)
        await journal.close()
        before = recall(left / "journal.db", NEXT_BOOT)
        after = opened(boot_id=NEXT_BOOT, where=left / "journal.db").recall()
        assert before == after
        assert after.last_seq == 2 + SEQ_SKIP
        assert after.meta["gap"] == f"3-{2 + SEQ_SKIP}"
        assert after.slots["api"].generation == 3 + GENERATION_SKIP

    play(script)


def _record(path):
    with closing(sqlite3.connect(path)) as hand:
        return hand.execute("SELECT record FROM slots_t WHERE slot = 'api'").fetchone()[0]
