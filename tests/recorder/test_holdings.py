from __future__ import annotations

from recorder.ledgers import ME
from uphold.journal.outgoing import BEGINNING
from uphold.recorder.connecting import Store
from uphold.recorder.holdings import holdings


def test_an_empty_database_holds_nothing(tmp_path):
    with Store(f"sqlite:///{tmp_path}/copy.db") as store:
        held, cursor = holdings(store, ME)
    assert (held["events"], held["audit"], cursor) == (0, 0, BEGINNING)
