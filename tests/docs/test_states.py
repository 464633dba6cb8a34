"""The state table of the manual is the one the code enforces."""

from __future__ import annotations

import pytest

from docs.papers import page, table_rows
from uphold.core.statuses import ALIVE, TRANSITIONS, State


@pytest.mark.accepts("E-01")
def test_the_printed_table_is_the_enforced_one():
    header, *rows = table_rows(page("docs/states.md"))[: len(State) + 1]
    columns = [State(cell.strip("`")) for cell in header[1:]]
    assert sorted(columns) == sorted(State)
    printed = {
        State(row[0].strip("`")): frozenset(
            column for column, cell in zip(columns, row[1:], strict=True) if cell == "yes"
        )
        for row in rows
    }
    assert printed == TRANSITIONS


def test_the_manual_says_in_which_states_a_process_may_exist():
    text = page("docs/states.md")
    meanings = {row[0].strip("`"): row for row in table_rows(text) if len(row) == 3}
    assert {State(name) for name, row in meanings.items() if row[1] == "yes"} == ALIVE
    assert set(meanings) >= set(State)
