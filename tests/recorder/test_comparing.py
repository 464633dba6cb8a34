"""The comparison by itself; test_migrating.py plays it on all three databases."""

from __future__ import annotations

from sqlalchemy import text

from uphold.recorder.comparing import compare
from uphold.recorder.connecting import Store
from uphold.recorder.schema import METADATA


def test_everything_is_missing_in_an_empty_file_and_nothing_is_done(tmp_path):
    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        for _ in range(2):
            with store.begin() as connection:
                found = compare(connection)
            assert found.problems == []
            made = [f"make table {table.name}" for table in METADATA.sorted_tables]
            assert [change.text for change in found.changes] == [*made, "make view events_v"]


def test_lengths_and_columns_of_others_are_their_business(tmp_path):
    with Store(f"sqlite:///{tmp_path}/x.db") as store, store.begin() as connection:
        METADATA.create_all(connection)
        connection.execute(text("ALTER TABLE jobs_t ADD COLUMN colour VARCHAR(3)"))
        found = compare(connection)
    assert ([change.text for change in found.changes], found.problems) == (
        ["make view events_v"],
        [],
    )
