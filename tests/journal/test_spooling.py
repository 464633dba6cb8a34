"""How far the copy has come: a file of another process, believed only where it makes sense."""

from __future__ import annotations

import json

import pytest

from uphold.journal.spooling import Copied, copied_of


@pytest.fixture
def said(tmp_path):
    def say(content):
        (tmp_path / "spool").mkdir(exist_ok=True)
        (tmp_path / "spool" / "recorder.json").write_text(content)
        return copied_of(tmp_path / "journal.db")

    return say


def test_the_three_places_are_read(said):
    document = {"state": "caught_up", "copied": {"events": 7, "audit": 3, "jobs": 12}}
    assert said(json.dumps(document)) == Copied(events=7, audit=3, jobs=12)


def test_no_file_means_that_nothing_is_copied(tmp_path):
    assert copied_of(tmp_path / "journal.db") == Copied(0, 0, 0)


@pytest.mark.parametrize(
    "content",
    ["", "{", "7", '{"copied": []}', '{"copied": {"events": "9", "audit": true}}', "[" * 99999],
)
def test_what_makes_no_sense_means_that_nothing_is_copied(said, content):
    assert said(content) == Copied(0, 0, 0)


def test_a_number_below_nothing_is_nothing(said):
    assert said('{"copied": {"events": -5, "jobs": 2}}') == Copied(0, 0, 2)
