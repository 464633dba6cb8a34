from __future__ import annotations

from recorder.ledgers import ME, some, write
from uphold.core.events import Note, Recorded
from uphold.journal.outgoing import BEGINNING, Outgoing
from uphold.ports.journals import Batch
from uphold.recorder.connecting import Store
from uphold.recorder.holdings import holdings
from uphold.recorder.last_words import document_of
from uphold.testing.contracts.journals import status


def stopped(seq):
    note = Note(type="supervisor.stopped", entity_type="supervisor", entity_id="supervisor")
    return Recorded(seq=seq, id=f"abcdef01-{seq}", at=1770301830.0, event=note, cause=None)


def test_a_supervisor_that_ended_in_order_left_a_document(tmp_path):
    path = tmp_path / "journal.db"
    write(path, Batch(events=[stopped(1)], slots=[status("api")]))
    with Outgoing(path) as journal:
        document = document_of(journal)
    assert document["supervisor"]["id"] == ME
    assert document["supervisor"]["status"] == "terminated"
    (row,) = document["workers"]
    assert {row["name"], row["slot"]} == {"api"}
    assert {"kind", "state", "health", "condition", "why"} <= set(row)


def test_one_that_did_not_end_has_no_last_words(tmp_path):
    path = tmp_path / "journal.db"
    write(path, some(1, 1))
    with Outgoing(path) as journal:
        assert document_of(journal) is None


def test_an_empty_database_holds_nothing(tmp_path):
    with Store(f"sqlite:///{tmp_path}/copy.db") as store:
        held, cursor = holdings(store, ME)
    assert (held["events"], held["audit"], cursor) == (0, 0, BEGINNING)
