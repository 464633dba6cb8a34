"""The last words of a supervisor, read from its journal and written for all to see."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from recorder.documents import NOW
from uphold.core.events import Note, Recorded
from uphold.core.specs import WorkerSpec
from uphold.core.statuses import SlotStatus, State
from uphold.core.times import utc_text
from uphold.journal.outgoing import Outgoing
from uphold.journal.rows import Owner
from uphold.journal.writing import open_journal
from uphold.ports.journals import Batch
from uphold.recorder.connecting import Store
from uphold.recorder.heartbeats import introduce, write_rows
from uphold.recorder.last_words import document_of
from uphold.recorder.migrating import migrate
from uphold.recorder.schema import SUPERVISORS, WORKERS


def journal_with(path, *kinds):
    """Make a journal in which a supervisor told this of itself, and close it."""
    owner = Owner(name="orion", hostname="node-1", pid=42, id="s-1")
    payloads = {
        "supervisor.failed": {"code": "UPH_SUPERVISOR_BROKEN", "error": "a bug"},
        "supervisor.heartbeat": {"heartbeat_every": 5.0},
    }
    terms = WorkerSpec(name="web", command=("web",), team="front")
    slots = (
        SlotStatus(slot="web", state=State.STOPPED, proved_wall=NOW - 9, terms=terms, why="stop"),
        SlotStatus(slot="@pump", state=State.RUNNING),
    )

    async def write():
        journal, _ = open_journal(path, boot_id="b", owner=owner, now=NOW)
        for seq, kind in enumerate(kinds, 1):
            note = Note(
                type=kind,
                entity_type="supervisor",
                entity_id="supervisor",
                payload=payloads.get(kind, {}),
            )
            recorded = Recorded(seq=seq, id=f"e{seq}", at=NOW + seq, event=note)
            await journal.append(Batch(events=[recorded], slots=slots))
        await journal.close()

    asyncio.run(write())
    return Outgoing(path)


@pytest.mark.accepts("O-31", "O-40")
@pytest.mark.parametrize(
    "kinds",
    [
        (),
        ("supervisor.started",),
        ("supervisor.started", "supervisor.heartbeat", "supervisor.paused"),
    ],
)
def test_one_that_was_killed_has_no_last_words(tmp_path, kinds):
    with journal_with(tmp_path / "journal.db", *kinds) as journal:
        assert document_of(journal) is None


@pytest.mark.accepts("O-12", "O-31", "O-32", "E-33")
@pytest.mark.parametrize("verb", ["stopped", "failed"])
def test_the_end_and_its_reason_reach_the_shared_database(tmp_path, url, verb):
    kinds = ("supervisor.started", "supervisor.heartbeat", f"supervisor.{verb}")
    with journal_with(tmp_path / "journal.db", *kinds) as journal:
        document = document_of(journal)
    with Store(url) as store:
        migrate(store, NOW)
        introduce(store, document, NOW + 10)
        write_rows(store, document, None, NOW + 10)
        with store.begin() as connection:
            (row,) = connection.execute(select(SUPERVISORS)).mappings()
            workers = {
                each["worker_id"]: each for each in connection.execute(select(WORKERS)).mappings()
            }
    assert row["status"] == {"stopped": "terminated", "failed": "failed"}[verb]
    assert row["last_heartbeat"] == utc_text(NOW + 2), "the end is no heartbeat"
    assert set(workers) == {"supervisor_orion", "web"}
    own, web = workers["supervisor_orion"], workers["web"]
    assert (own["state"], own["hostname"], own["pid"]) == ("stopped", "node-1", None)
    assert (
        own["status_summary"]
        == {
            "stopped": "terminated; 1 stopped",
            "failed": "failed; 1 stopped; a bug",
        }[verb]
    )
    assert ("a bug" in row["health_metrics"]) == (verb == "failed")
    assert (web["state"], web["team"], web["status"]) == ("stopped", "front", "stopped")
    assert web["last_heartbeat_at"] == utc_text(NOW - 9)
